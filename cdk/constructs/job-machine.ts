import { CfnElement, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Policy, PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IFunction } from 'aws-cdk-lib/aws-lambda';
import { LogGroup, type RetentionDays } from 'aws-cdk-lib/aws-logs';
import {
  DefinitionBody,
  Fail,
  IntegrationPattern,
  JitterType,
  JsonPath,
  LogLevel,
  QueryLanguage,
  StateMachine,
  StateMachineType,
  TaskInput,
  Timeout,
} from 'aws-cdk-lib/aws-stepfunctions';
import { LambdaInvoke } from 'aws-cdk-lib/aws-stepfunctions-tasks';
import type { Construct } from 'constructs';
import { ErrorName } from '../../src/contracts/errors.ts';
import { limits } from '../../src/contracts/limits.ts';
import { acknowledgeWildcards } from './acknowledge.ts';
import { scheduleRetries, stepRetries, type StepRetry } from './step-retries.ts';

export interface JobMachineProps {
  readonly plan: IFunction;
  readonly schedule: IFunction;
  readonly finish: IFunction;
  readonly fail: IFunction;
  readonly logRetention: RetentionDays;
}

/** A minute more than Lambda's longest invocation: reached only where an answer was lost. */
const TASK_MINUTES = 16;

/**
 * Plan, then Schedule, which waits until its scheduler answers to its token, then Finish, which goes back to Schedule
 * where parts of the output are gone; Fail records whatever else ends a job. A job that waits, for a scheduler or for its end, costs nothing here.
 *
 * An execution holds 25,000 events. Schedule is entered once; it is tried again for each of the hand-overs that this
 * job happens to be told of, at most one in 13 minutes and so 900 in the longest job, with 5 events each. Retries of a
 * busy Lambda take 3 events each, 4,500 for all of one step.
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
  const schedule = scheduleStep(scope, props.schedule);
  schedule.next(finish);

  const plan = step(scope, 'Plan', props.plan, { resultPath: JsonPath.DISCARD });
  plan.next(schedule);
  // Its scheduler finds noted which parts are to be made again; how often it may is its own rule.
  finish.addCatch(schedule, { errors: [ErrorName.OutputLost], resultPath: JsonPath.DISCARD });
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
  return retried(invoke, stepRetries);
}

/**
 * Waits for the answer to its token, whatever becomes of the invocation that it begins with: the job's scheduler serves
 * many jobs. Where that gives no sign of life, or its time is up, the step is tried again, and another takes over.
 */
function scheduleStep(scope: Construct, lambdaFunction: IFunction): LambdaInvoke {
  const invoke = new LambdaInvoke(scope, 'Schedule', {
    lambdaFunction,
    integrationPattern: IntegrationPattern.WAIT_FOR_TASK_TOKEN,
    payload: TaskInput.fromObject({ jobId: JsonPath.stringAt('$.jobId'), taskToken: JsonPath.taskToken }),
    retryOnServiceExceptions: false,
    heartbeatTimeout: Timeout.duration(Duration.seconds(limits.taskHeartbeatSeconds)),
  });
  return retried(invoke, scheduleRetries);
}

function retried(invoke: LambdaInvoke, rules: readonly StepRetry[]): LambdaInvoke {
  for (const rule of rules) {
    invoke.addRetry({
      errors: [...rule.errors],
      interval: Duration.seconds(rule.intervalSeconds),
      backoffRate: rule.backoffRate,
      maxAttempts: rule.maxAttempts,
      ...(rule.maxDelaySeconds === undefined ? {} : { maxDelay: Duration.seconds(rule.maxDelaySeconds) }),
      ...(rule.hasJitter === true ? { jitterStrategy: JitterType.FULL } : {}),
    });
  }
  return invoke;
}

/**
 * The right to answer the tasks of a state machine. A policy by itself: in that of its role the function would wait for
 * the state machine, which waits for the function.
 */
export function grantAnswering(
  scope: Construct,
  id: string,
  { role }: IFunction,
  stateMachine: StateMachine,
): void {
  if (role === undefined) throw new Error('the function has no role');
  new Policy(scope, id, {
    roles: [role],
    statements: [
      new PolicyStatement({
        actions: ['states:SendTaskSuccess', 'states:SendTaskFailure', 'states:SendTaskHeartbeat'],
        resources: [stateMachine.stateMachineArn],
      }),
    ],
  });
}
