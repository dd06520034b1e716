import { Duration } from 'aws-cdk-lib';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Bucket } from 'aws-cdk-lib/aws-s3';
import type { Construct } from 'constructs';
import { forecastPrefix } from '../../src/contracts/keys.ts';
import { Setting } from '../../src/contracts/settings.ts';
import { handlerCode } from './bundle.ts';
import { acknowledgeObjects, grantObjectReads } from './grants.ts';
import { functionRole, jobFunction } from './job-function.ts';

/** A whole vCPU, and half an hour: what is older, a later run of the job has overtaken. */
const memoryMb = 1_769;
const retries = { attempts: 1, maxAge: Duration.minutes(30) } as const;

/**
 * What computes C(p, a) of recurring jobs after they have ended. It reads and writes what was learned, and reaches neither
 * records nor any other object.
 */
export function forecastFunction(
  scope: Construct,
  {
    dataBucket,
    logs,
    totalSlots,
    concurrency,
  }: {
    readonly dataBucket: Bucket;
    readonly logs: ILogGroup;
    /** Of all jobs together: up to so many a job is forecast on. */
    readonly totalSlots: string;
    readonly concurrency: number | undefined;
  },
): LambdaFunction {
  const role = functionRole(scope, 'ForecastRole', logs);
  acknowledgeObjects(role);
  grantObjectReads(role, dataBucket, forecastPrefix);
  role.addToPolicy(
    new PolicyStatement({
      actions: ['s3:PutObject'],
      resources: [dataBucket.arnForObjects(`${forecastPrefix}*`)],
    }),
  );
  return jobFunction(scope, 'Forecast', {
    description: 'Outrider: computes what jobs are expected to take',
    code: handlerCode('forecast'),
    memoryMb,
    timeout: Duration.minutes(5),
    environment: { [Setting.dataBucket]: dataBucket.bucketName, [Setting.totalSlots]: totalSlots },
    logs,
    role,
    retries,
    concurrency,
  });
}
