import { CfnOutput, Duration, RemovalPolicy, Stack, type StackProps } from 'aws-cdk-lib';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import { BlockPublicAccess, Bucket, BucketEncryption } from 'aws-cdk-lib/aws-s3';
import type { Construct } from 'constructs';
import { OutputName } from '../../src/contracts/settings.ts';
import { carriedPrefix } from '../../src/contracts/task-files.ts';
import { acknowledge } from '../constructs/acknowledge.ts';
import { recordsTable } from '../constructs/records-table.ts';
import { addSharedParameters } from '../constructs/shared-parameters.ts';
import { addZonalBuckets } from '../constructs/zonal-storage.ts';
import { leftoverDays, type OutriderConfig } from '../config.ts';

export interface StorageStackProps extends StackProps {
  readonly config: OutriderConfig;
}

/** What outlives every other stack: data, records, logs. Bucket and table stay even when the stack is deleted. */
export class StorageStack extends Stack {
  /** Intermediate data under `jobs/`, default outputs under `output/`. */
  readonly dataBucket: Bucket;
  readonly table: Table;
  /** One group for all that runs jobs, so that the log of a job is one query. */
  readonly jobLogs: LogGroup;

  constructor(scope: Construct, id: string, props: StorageStackProps) {
    super(scope, id, { description: 'Outrider: data and records of jobs', ...props });
    addSharedParameters(this);
    this.dataBucket = addDataBucket(this, props.config);
    addZonalBuckets(this, props.config);
    this.table = recordsTable(this, 'Table');
    this.jobLogs = new LogGroup(this, 'JobLogs', {
      retention: props.config.logRetentionDays,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    new CfnOutput(this, OutputName.dataBucket, { value: this.dataBucket.bucketName });
    new CfnOutput(this, OutputName.table, { value: this.table.tableName });
    new CfnOutput(this, OutputName.logGroup, { value: this.jobLogs.logGroupName });
  }
}

function addDataBucket(scope: Construct, config: OutriderConfig): Bucket {
  const bucket = new Bucket(scope, 'Data', {
    blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
    encryption: BucketEncryption.S3_MANAGED,
    enforceSSL: true,
    removalPolicy: RemovalPolicy.RETAIN,
    lifecycleRules: [
      { id: 'expire-intermediate-data', prefix: 'jobs/', expiration: Duration.days(config.intermediateDays) },
      // Each submission writes anew what comes with its job, so that nothing goes before the longest job has ended.
      {
        id: 'expire-carried-files',
        prefix: carriedPrefix,
        expiration: Duration.days(config.intermediateDays),
      },
      // Attempts that died leave uploads behind which Finish may not have seen. Before the longest job has ended
      // they may be its output, which Finish completes.
      { id: 'abort-dead-uploads', abortIncompleteMultipartUploadAfter: Duration.days(leftoverDays) },
    ],
  });
  acknowledge(bucket, {
    'AwsSolutions-S1':
      'Access logs would cost a write per request of a shuffle; CloudTrail data events can be had.',
  });
  return bucket;
}
