import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import {
  ArnPrincipal,
  Effect,
  type IRole,
  PolicyStatement,
  Role,
  SessionTagsPrincipal,
} from 'aws-cdk-lib/aws-iam';
import type { Construct } from 'constructs';
import { forecastPrefix } from '../../src/contracts/keys.ts';
import { SessionTag } from '../../src/contracts/settings.ts';
import { acknowledgeWildcards } from './acknowledge.ts';
import { grantZonal, type ZonalStorage } from './zonal-storage.ts';
import { acknowledgeObjects, type BucketArns, dataBucketExport, grantKeys, itemsOf } from './grants.ts';

export interface JobAccessRoleProps {
  /** Who makes sessions for jobs, and nobody else. */
  readonly scheduler: IRole;
  readonly table: Table;
  readonly dataBucket: BucketArns;
  /** Buckets of other owners that jobs may read, and those that they may write to. */
  readonly inputs: readonly BucketArns[];
  readonly outputs: readonly BucketArns[];
  /** Where jobs may have intermediate data besides the data bucket. */
  readonly zonal: ZonalStorage;
  /** Names of all those buckets. */
  readonly bucketNames: readonly string[];
  /** ARNs of the keys by which they are encrypted. */
  readonly keys: readonly string[];
}

/** The job of a session, as policies name it. Ids of jobs hold letters, digits and hyphens only: no pattern. */
const job = `\${aws:PrincipalTag/${SessionTag.job}}`;

const writes = ['s3:PutObject', 's3:AbortMultipartUpload'];

/**
 * The role whose sessions attempts work with. Each session carries its job as a tag, which it must have to be made,
 * and the policy bounds it to that job: records of its tasks, reading what lies under its prefix, writing and
 * removing its data. Besides it may read inputs and upload to outputs, in the system's own bucket wherever no job's
 * data lie, and remove nothing there. In directory buckets, which know no rights to single objects,
 * it may do all. A session's own policy narrows that to the buckets of its job and the one prefix of its output, and keeps
 * jobs out of directory buckets whose data is not there.
 */
export function jobAccessRole(scope: Construct, id: string, props: JobAccessRoleProps): Role {
  const { dataBucket } = props;
  const role = new Role(scope, id, {
    description: 'Outrider: what the attempts of one job may do',
    assumedBy: new SessionTagsPrincipal(
      new ArnPrincipal(props.scheduler.roleArn).withConditions({
        StringLike: { [`aws:RequestTag/${SessionTag.job}`]: '?*' },
        'ForAllValues:StringEquals': { 'aws:TagKeys': [SessionTag.job] },
      }),
    ),
  });
  const inAll = (buckets: readonly BucketArns[]): string[] =>
    [dataBucket, ...buckets].map((bucket) => bucket.arnForObjects('*'));
  const own = (suffix: string): string => dataBucket.arnForObjects(`jobs/${job}/${suffix}`);
  const records = ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'];
  const statements = [
    // The mark ends the id: without it the job a-1 would reach the records of a-12.
    itemsOf(props.table, records, `J#${job}#*`),
    new PolicyStatement({ actions: ['s3:GetObject'], resources: [own('*')] }),
    new PolicyStatement({ actions: [...writes, 's3:DeleteObject'], resources: [own('data/*')] }),
    // Policies cannot say "the bucket without a prefix": what is neither data of jobs, nor learned of them, nor outside of
    // the buckets.
    new PolicyStatement({
      actions: ['s3:GetObject', ...writes],
      notResources: ['jobs/', forecastPrefix].map((prefix) => dataBucket.arnForObjects(`${prefix}*`)),
    }),
    deny(['s3:GetObject'], inAll(props.inputs)),
    deny(writes, inAll(props.outputs)),
  ];
  for (const statement of statements) role.addToPolicy(statement);
  grantZonal(role, props.zonal, 'ReadWrite');
  grantKeys(role, props.keys);
  acknowledgeWildcards(
    role,
    ['*', 'data/*'].map(
      (rest) => `${dataBucketExport(role)}/jobs/<aws:PrincipalTag/${SessionTag.job}>/${rest}`,
    ),
    'Objects are named when jobs run; the wildcard follows the prefix of one job.',
  );
  acknowledgeObjects(role, props.bucketNames);
  return role;
}

const deny = (actions: readonly string[], elsewhere: readonly string[]): PolicyStatement =>
  new PolicyStatement({ effect: Effect.DENY, actions: [...actions], notResources: [...elsewhere] });
