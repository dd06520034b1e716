import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import { type IGrantable, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { Arn, ArnFormat, type Stack } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { forecastPrefix } from '../../src/contracts/keys.ts';
import { exportName } from '../names.ts';
import { acknowledgeWildcards } from './acknowledge.ts';

const allow = (grantee: IGrantable, actions: readonly string[], resources: readonly string[]): void => {
  grantee.grantPrincipal.addToPrincipalPolicy(
    new PolicyStatement({ actions: [...actions], resources: [...resources] }),
  );
};

/** Reading and writing items, and queries of the indexes named; no scans, no deletions, nothing on the table itself. */
export function grantItems(grantee: IGrantable, table: Table, indexes: readonly string[] = []): void {
  allow(
    grantee,
    [
      'dynamodb:GetItem',
      'dynamodb:BatchGetItem',
      'dynamodb:Query',
      'dynamodb:PutItem',
      'dynamodb:UpdateItem',
    ],
    [table.tableArn],
  );
  if (indexes.length === 0) return;
  allow(
    grantee,
    ['dynamodb:Query'],
    indexes.map((name) => `${table.tableArn}/index/${name}`),
  );
}

/**
 * Single items of partitions whose key is like one of the patterns. Requests that name no partition match no pattern either:
 * a condition for all values holds where there are none, so that there are some is a condition of its own.
 */
export function itemsOf(
  table: Table,
  actions: readonly string[],
  ...partitions: readonly string[]
): PolicyStatement {
  return new PolicyStatement({
    actions: [...actions],
    resources: [table.tableArn],
    conditions: {
      'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [...partitions] },
      Null: { 'dynamodb:LeadingKeys': 'false' },
    },
  });
}

/** What a grant needs to know of a bucket. */
export interface BucketArns {
  readonly bucketArn: string;
  arnForObjects(pattern: string): string;
}

/** Listing a bucket and reading the objects under a prefix ("" for all of them). */
export function grantObjectReads(grantee: IGrantable, bucket: BucketArns, prefix = ''): void {
  allow(grantee, ['s3:ListBucket'], [bucket.bucketArn]);
  allow(grantee, ['s3:GetObject'], [bucket.arnForObjects(`${prefix}*`)]);
}

/** Writing whole and in parts under a prefix ("" for the whole bucket), and giving up uploads. Removes nothing. */
export function grantObjectWrites(grantee: IGrantable, bucket: BucketArns, prefix = ''): void {
  allow(grantee, ['s3:PutObject', 's3:AbortMultipartUpload'], [bucket.arnForObjects(`${prefix}*`)]);
}

/** Removing objects under a prefix ("" for the whole bucket): for whoever ends jobs, and for a job's own data. */
export function grantObjectRemoval(grantee: IGrantable, bucket: BucketArns, prefix = ''): void {
  allow(grantee, ['s3:DeleteObject'], [bucket.arnForObjects(`${prefix}*`)]);
}

/** What KMS is asked for where objects are written in parts under a key, which are read again as they are joined. */
const keyUses = ['kms:Decrypt', 'kms:GenerateDataKey'] as const;

/** Using these keys for what lies in S3, for nothing else: reading it, and writing it as well. */
export function grantKeys(
  grantee: IGrantable,
  keys: readonly string[],
  uses: readonly (typeof keyUses)[number][] = keyUses,
): void {
  if (keys.length === 0) return;
  grantee.grantPrincipal.addToPrincipalPolicy(
    new PolicyStatement({
      actions: [...uses],
      resources: [...keys],
      // In some partitions the name of a service ends otherwise.
      conditions: { StringLike: { 'kms:ViaService': 's3.*.amazonaws.com*' } },
    }),
  );
}

/** Finding uploads that nobody has completed. */
export function grantUploadListing(grantee: IGrantable, bucket: BucketArns): void {
  allow(grantee, ['s3:ListBucketMultipartUploads'], [bucket.bucketArn]);
}

/** Buckets of other owners, by name. */
export function namedBuckets(stack: Stack, names: readonly string[]): readonly BucketArns[] {
  return names.map((name) => {
    const arn = (resource: string): string =>
      Arn.format(
        { service: 's3', region: '', account: '', resource, arnFormat: ArnFormat.NO_RESOURCE_NAME },
        stack,
      );
    return { bucketArn: arn(name), arnForObjects: (pattern) => arn(`${name}/${pattern}`) };
  });
}

/** The data bucket's ARN as a stack of the same deployment imports it. */
export const dataBucketExport = (construct: IConstruct): string =>
  exportName(construct, 'Storage', 'ExportsOutputFnGetAttData666C94C7Arn0D7E21B7');

/** Accepts the wildcards of the grants above: in the data bucket, and in the buckets named. */
export function acknowledgeObjects(construct: IConstruct, otherBuckets: Iterable<string> = []): void {
  const buckets = [
    dataBucketExport(construct),
    ...[...otherBuckets].map((name) => `arn:<AWS::Partition>:s3:::${name}`),
  ];
  acknowledgeWildcards(
    construct,
    buckets.flatMap((bucket) => ['', 'jobs/', forecastPrefix].map((prefix) => `${bucket}/${prefix}*`)),
    'Objects are named when jobs run; the wildcard follows the name of one bucket.',
  );
}
