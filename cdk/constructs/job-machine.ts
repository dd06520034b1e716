import { CfnElement, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { LogGroup, type RetentionDays } from 'aws-cdk-lib/aws-logs';
import {
  Choice,
  Condition,
  DefinitionBody,
  Fail,
  JitterType,
  JsonPath,
  LogLevel,
  Pass,
  QueryLanguage,
  Result,
  StateMachine,
  StateMachineType,
  Timeout,
} from 'aws-cdk-lib/aws-stepfunctions';
import { LambdaInvoke } from 'aws-cdk-lib/aws-stepfunctions-tasks';
import type { Construct } from 'constructs';
import { ErrorName } from '../../src/contracts/errors.ts';
import { limits } from '../../src/contracts/limits.ts';
import { acknowledgeWildcards } from './acknowledge.ts';

export interface JobMachineProps {
  readonly plan: IFunction;
  readonly schedule: IFunction;
  readonly finish: IFunction;
  readonly fail: IFunction;
  readonly logRetention: RetentionDays;
}

/** Faults that pass: of stores, of the Lambda service, and of a sandbox that died under its function. */
export const passingErrors = [
  ErrorName.StoreUnavailable,
  ErrorName.LaunchThrottled,
  'Lambda.ServiceException',
  'Lambda.AWSLambdaException',
  'Lambda.SdkClientException',
  'Lambda.TooManyRequestsException',
  'Lambda.Unknown',
  'Runtime.ExitError',
  'Sandbox.Timedout',
  'States.Timeout',
] as const;

/** A minute more than Lambda's longest invocation: reached only where an answer was lost. */
const TASK_MINUTES = 16;

/**
 * Plan, then Schedule again and again until it says `finish`, then Finish; Fail records whatever else ends a job.
 *
 * An execution holds 25,000 events. Each entry of Schedule takes 7 and lasts up to 13 minutes, which makes
 * 32 days, four times the length of a job; retries take 3 each.
 */
export function jobMachine(scope: Construct, id: string, props: JobMachineProps): StateMachine {
  const machine = new StateMachine(scope, id, {
    definitionBody: DefinitionBody.fromChainable(jobSteps(scope, props)),
    stateMachineType: StateMachineType.STANDARD,
    queryLanguage: QueryLanguage.JSON_PATH,
    timeout: Duration.millis(limits.longestExecutionMs),
    tracingEnabled: true,
    logs: {
      level: LogLevel.ALL,
      includeExecutionData: true,
      destination: new LogGroup(scope, `${id}Logs`, {
        // Groups under this prefix need no line each in the account's one policy for log delivery.
        logGroupName: `/aws/vendedlogs/states/${Stack.of(scope).stackName}-${id}`,
        retention: props.logRetention,
        removalPolicy: RemovalPolicy.DESTROY,
      }),
    },
  });
  const versions = [props.plan, props.schedule, props.finish, props.fail].flatMap(({ node, stack }) =>
    CfnElement.isCfnElement(node.defaultChild) ? [`<${stack.getLogicalId(node.defaultChild)}.Arn>:*`] : [],
  );
  acknowledgeWildcards(machine, ['*'], 'Delivery of logs and traces has no resources to name.');
  acknowledgeWildcards(machine, versions, 'A step may be invoked in any of its versions.');
  return machine;
}

function jobSteps(scope: Construct, props: JobMachineProps): LambdaInvoke {
  const ended = new Fail(scope, 'JobFailed', { errorPath: '$.error.Error', causePath: '$.error.Cause' });
  // Its result is dropped: the error that ended the job is what the execution ends with.
  const fail = step(scope, 'Fail', props.fail, { resultPath: JsonPath.DISCARD });
  fail.next(ended);

  const finish = step(scope, 'Finish', props.finish);
  const schedule = step(scope, 'Schedule', props.schedule);
  const unknownOutcome = new Pass(scope, 'UnknownOutcome', {
    result: Result.fromObject({
      Error: ErrorName.BrokenInvariant,
      Cause: 'Schedule answered an unknown outcome',
    }),
    resultPath: '$.error',
  });
  unknownOutcome.next(fail);
  const decide = new Choice(scope, 'IsDone')
    .when(Condition.stringEquals('$.outcome', 'finish'), finish)
    .when(Condition.stringEquals('$.outcome', 'continue'), schedule)
    .otherwise(unknownOutcome);
  schedule.next(decide);

  const plan = step(scope, 'Plan', props.plan, { resultPath: JsonPath.DISCARD });
  plan.next(schedule);
  for (const caught of [plan, schedule, finish]) {
    caught.addCatch(fail, { errors: ['States.ALL'], resultPath: '$.error' });
  }
  return plan;
}

function step(
  scope: Construct,
  id: string,
  lambdaFunction: IFunction,
  options: { readonly resultPath?: string } = {},
): LambdaInvoke {
  const invoke = new LambdaInvoke(scope, id, {
    lambdaFunction,
    payloadResponseOnly: true,
    retryOnServiceExceptions: false,
    taskTimeout: Timeout.duration(Duration.minutes(TASK_MINUTES)),
    ...(options.resultPath === undefined ? {} : { resultPath: options.resultPath }),
  });
  // A scheduler that Step Functions lost may tick on until its function ends, and holds the lease that long.
  invoke.addRetry({
    errors: [ErrorName.LeaseHeld],
    interval: Duration.seconds(3),
    backoffRate: 1,
    maxAttempts: 320,
  });
  invoke.addRetry({
    errors: [...passingErrors],
    interval: Duration.seconds(1),
    backoffRate: 2,
    maxDelay: Duration.seconds(30),
    maxAttempts: 12,
    jitterStrategy: JitterType.FULL,
  });
  return invoke;
}
