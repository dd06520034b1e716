import { describe, expect, it } from 'vitest';
import { synthesized } from './synthesized.ts';

const rules = synthesized().resources('AWS::Events::Rule');
const ruleOf = (prefix: string) => rules.find(({ logicalId }) => logicalId.startsWith(prefix))?.properties;

describe('what ends jobs that the state machine has not', () => {
  it('is told of every execution of the one machine that ends otherwise than well', () => {
    // The third tells of tasks that stopped.
    expect(rules).toHaveLength(3);
    expect(ruleOf('ExecutionEnds')).toMatchObject({
      State: 'ENABLED',
      EventPattern: {
        source: ['aws.states'],
        'detail-type': ['Step Functions Execution Status Change'],
        detail: {
          status: ['ABORTED', 'FAILED', 'TIMED_OUT'],
          stateMachineArn: [{ Ref: expect.stringMatching(/^Jobs/) as unknown }],
        },
      },
      Targets: [
        {
          Arn: { 'Fn::GetAtt': [expect.stringMatching(/^settle/) as unknown, 'Arn'] },
          RetryPolicy: { MaximumEventAgeInSeconds: 86_400, MaximumRetryAttempts: 185 },
        },
      ],
    });
  });

  it('looks each hour for those that nobody told of', () => {
    expect(ruleOf('SweepTimer')).toMatchObject({
      State: 'ENABLED',
      ScheduleExpression: 'rate(1 hour)',
      Targets: [{ Arn: { 'Fn::GetAtt': [expect.stringMatching(/^sweep/) as unknown, 'Arn'] } }],
    });
  });
});
