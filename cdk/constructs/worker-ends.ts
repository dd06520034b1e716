import { Duration } from 'aws-cdk-lib';
import type { Table } from 'aws-cdk-lib/aws-dynamodb';
import type { CfnCluster } from 'aws-cdk-lib/aws-ecs';
import { Rule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction as FunctionTarget } from 'aws-cdk-lib/aws-events-targets';
import { type IGrantable, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction, IDestination } from 'aws-cdk-lib/aws-lambda';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { Setting } from '../../src/contracts/settings.ts';
import { handlerCode } from './bundle.ts';
import { itemsOf } from './grants.ts';
import { functionRole, jobFunction } from './job-function.ts';

/** The word of a death is worth something for as long as its attempt would be waited for, and harms nobody later. */
const retries = { attempts: 2, maxAge: Duration.minutes(15) } as const;

/** What records that a worker is gone, told by Lambda and ECS. It may end attempts, and read which word a job has. */
export function workerEnded(
  scope: Construct,
  {
    table,
    logs,
    concurrency,
  }: { readonly table: Table; readonly logs: ILogGroup; readonly concurrency: number | undefined },
): LambdaFunction {
  const role = functionRole(scope, 'EndedWorkerRole', logs);
  role.addToPolicy(
    itemsOf(
      table,
      ['dynamodb:GetItem', 'dynamodb:BatchGetItem', 'dynamodb:UpdateItem', 'dynamodb:PutItem'],
      'J#*',
    ),
  );
  role.addToPolicy(itemsOf(table, ['dynamodb:GetItem'], 'JOB#*'));
  return jobFunction(scope, 'EndedWorker', {
    description: 'Outrider: records why a worker is gone',
    code: handlerCode('worker-ended'),
    memoryMb: 256,
    timeout: Duration.minutes(1),
    environment: { [Setting.table]: table.tableName },
    logs,
    role,
    retries,
    concurrency,
  });
}

/**
 * A function as the destination of others' failures. The CDK's own would let them call each of its versions, too.
 * `caller` is the role that they share.
 */
export function failuresTo(target: LambdaFunction, caller: IGrantable): IDestination {
  caller.grantPrincipal.addToPrincipalPolicy(
    new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: [target.functionArn] }),
  );
  return { bind: () => ({ destination: target.functionArn }) };
}

/** Calls `target` for each task of a cluster that stops, however it ended: a worker that ended well has said so. */
export function tellOfStoppedTasks(scope: Construct, cluster: CfnCluster, target: LambdaFunction): void {
  new Rule(scope, 'TaskEnds', {
    description: 'Outrider: tasks that stopped',
    eventPattern: {
      source: ['aws.ecs'],
      detailType: ['ECS Task State Change'],
      detail: { clusterArn: [cluster.attrArn], lastStatus: ['STOPPED'] },
    },
    targets: [new FunctionTarget(target, { retryAttempts: 10, maxEventAge: Duration.minutes(15) })],
  });
}
