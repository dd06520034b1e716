import { ArnFormat, CfnElement, Duration, Stack } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction as FunctionTarget } from 'aws-cdk-lib/aws-events-targets';
import { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { StateMachine } from 'aws-cdk-lib/aws-stepfunctions';
import type { Construct } from 'constructs';
import { acknowledgeWildcards } from './acknowledge.ts';

/** How often it is looked for jobs whose end nobody has told. */
const SWEEP_EVERY = Duration.hours(1);

/**
 * Calls `settle` for each execution that ends otherwise than well.
 *
 * EventBridge tries for a day to deliver an event, and Lambda tries `settle` itself again. There is no queue for what
 * is lost all the same: events of Step Functions are delivered at best effort anyway, so that the sweep must find
 * every job that they do not tell of; a letter that nobody reads would add nothing to that.
 */
export function settleOnEnds(
  scope: Construct,
  id: string,
  stateMachine: StateMachine,
  settle: LambdaFunction,
): void {
  new Rule(scope, id, {
    description: 'Outrider: executions that were aborted, failed or ran out of time',
    eventPattern: {
      source: ['aws.states'],
      detailType: ['Step Functions Execution Status Change'],
      detail: {
        status: ['ABORTED', 'FAILED', 'TIMED_OUT'],
        stateMachineArn: [stateMachine.stateMachineArn],
      },
    },
    targets: [new FunctionTarget(settle, { retryAttempts: 185, maxEventAge: Duration.hours(24) })],
  });
}

/** Calls `sweep` each hour; what one run misses the next one finds, so that none is repeated. */
export function sweepEachHour(scope: Construct, id: string, sweep: LambdaFunction): void {
  new Rule(scope, id, {
    description: 'Outrider: looks for jobs without an execution, and for what ended jobs left',
    schedule: Schedule.rate(SWEEP_EVERY),
    targets: [new FunctionTarget(sweep, { retryAttempts: 2, maxEventAge: Duration.minutes(30) })],
  });
}

/** The right to ask what has become of executions of one state machine. */
export function grantDescribing(grantee: LambdaFunction, stateMachine: StateMachine): void {
  const { node, stack } = stateMachine;
  grantee.addToRolePolicy(
    new PolicyStatement({
      actions: ['states:DescribeExecution'],
      resources: [
        Stack.of(stateMachine).formatArn({
          service: 'states',
          resource: 'execution',
          resourceName: `${stateMachine.stateMachineName}:*`,
          arnFormat: ArnFormat.COLON_RESOURCE_NAME,
        }),
      ],
    }),
  );
  if (grantee.role === undefined || !CfnElement.isCfnElement(node.defaultChild)) return;
  const name = `<${stack.getLogicalId(node.defaultChild)}.Name>`;
  acknowledgeWildcards(
    grantee.role,
    [`arn:<AWS::Partition>:states:<AWS::Region>:<AWS::AccountId>:execution:${name}:*`],
    'Executions are named by jobs; the wildcard follows the name of one state machine.',
  );
}
