import { Aws, CfnCondition, Fn, type Stack } from 'aws-cdk-lib';
import { type IGrantable, PolicyDocument, PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { CfnBucketPolicy, CfnDirectoryBucket } from 'aws-cdk-lib/aws-s3express';
import { zonalZoneParameters } from '../../src/contracts/settings.ts';
import { leftoverDays, type OutriderConfig } from '../config.ts';
import { physicalName } from '../names.ts';
import { sharedParameter } from './shared-parameters.ts';

/** The directory bucket of a zone, as a stack is told of it. */
interface ZonalBucket {
  readonly zone: string;
  readonly name: string;
  /** Holds where the deployment has that zone. */
  readonly isThere: CfnCondition;
}

/** The directory buckets of a deployment, as one of its stacks is told of them. */
export interface ZonalStorage {
  readonly buckets: readonly ZonalBucket[];
  /** Their names, comma-separated; of zones that the deployment has not, nothing between the commas. */
  readonly names: string;
  /** Of zones that the deployment has not, an ARN that no bucket can have. */
  readonly arns: readonly string[];
}

/**
 * The zones of the tier `zonal`, as a stack is told: each stack has the parameters itself. Names follow from account
 * and zone, so that no stack exports any. Zones are chosen by parameters and not at synthesis, since which zones have S3 Express One Zone differs between regions.
 */
export function zonalStorage(stack: Stack, config: OutriderConfig): ZonalStorage {
  const buckets = zonalZoneParameters.map((parameterName): ZonalBucket => {
    const zone = sharedParameter(stack, parameterName);
    return {
      zone,
      name: Fn.join('', [physicalName(config), '-', Aws.ACCOUNT_ID, '--', zone, '--x-s3']),
      isThere: new CfnCondition(stack, `Has${parameterName}`, {
        expression: Fn.conditionNot(Fn.conditionEquals(zone, '')),
      }),
    };
  });
  const arnOf = ({ name }: ZonalBucket): string =>
    stack.formatArn({ service: 's3express', resource: 'bucket', resourceName: name });
  return {
    buckets,
    names: Fn.join(
      ',',
      buckets.map(({ name, isThere }) => Fn.conditionIf(isThere.logicalId, name, '').toString()),
    ),
    arns: buckets.map(arnOf),
  };
}

/**
 * Makes the directory buckets. What jobs leave goes by itself, as in the data bucket. They are deleted with their zones, and
 * not retained: a name follows from account and zone, so that a bucket which stays is in the way of the next deployment. One that is
 * not empty stays anyway; the README says what to do before.
 */
export function addZonalBuckets(stack: Stack, config: OutriderConfig): void {
  zonalStorage(stack, config).buckets.forEach(({ zone, name, isThere }, place) => {
    const bucket = new CfnDirectoryBucket(stack, `Zonal${String(place + 1)}`, {
      bucketName: name,
      dataRedundancy: 'SingleAvailabilityZone',
      locationName: zone,
      bucketEncryption: {
        serverSideEncryptionConfiguration: [{ serverSideEncryptionByDefault: { sseAlgorithm: 'AES256' } }],
      },
      lifecycleConfiguration: {
        rules: [
          {
            id: 'expire-intermediate-data',
            status: 'Enabled',
            prefix: 'jobs/',
            expirationInDays: config.intermediateDays,
          },
          {
            id: 'abort-dead-uploads',
            status: 'Enabled',
            abortIncompleteMultipartUpload: { daysAfterInitiation: leftoverDays },
          },
        ],
      },
    });
    const policy = new CfnBucketPolicy(stack, `ZonalPolicy${String(place + 1)}`, {
      bucket: bucket.ref,
      policyDocument: lifecyclePolicy(bucket),
    });
    for (const resource of [bucket, policy]) resource.cfnOptions.condition = isThere;
  });
}

/**
 * What lets the rules of a directory bucket's lifecycle have an effect. There they are carried out by a service that needs a
 * session, as everybody does; without the right to one the rules are taken, and nothing ever goes. In the words of S3's guide: no
 * condition on the account, since nothing says that the service tells it, and only the bucket's owner gives the bucket rules.
 */
const lifecyclePolicy = (bucket: CfnDirectoryBucket): PolicyDocument =>
  new PolicyDocument({
    statements: [
      new PolicyStatement({
        principals: [new ServicePrincipal('lifecycle.s3.amazonaws.com')],
        actions: ['s3express:CreateSession'],
        resources: [bucket.attrArn],
        conditions: { StringEquals: { 's3express:SessionMode': 'ReadWrite' } },
      }),
    ],
  });

/** The right to sessions of the directory buckets: to all that is in them, since they know no rights to single objects. */
export function grantZonal(
  grantee: IGrantable,
  { arns }: ZonalStorage,
  mode: 'ReadOnly' | 'ReadWrite',
): void {
  grantee.grantPrincipal.addToPrincipalPolicy(
    new PolicyStatement({
      actions: ['s3express:CreateSession'],
      resources: [...arns],
      ...(mode === 'ReadOnly' ? { conditions: { StringEquals: { 's3express:SessionMode': mode } } } : {}),
    }),
  );
}
