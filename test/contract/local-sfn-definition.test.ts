import { describe, expect, it } from 'vitest';
import { UnsupportedDefinitionError, assertSupportedDefinition } from '../../src/local/sfn/definition.ts';

const FUNCTION = 'arn:aws:lambda:us-east-1:000000000000:function:work';
const INVOKE = 'arn:aws:states:::lambda:invoke';
const task = (more: object) => ({ Type: 'Task', Resource: FUNCTION, End: true, ...more });
const machine = (state: object, top: object = {}) => ({ StartAt: 'S', States: { S: state }, ...top });

const RESIDENT_LOOP = {
  Comment: 'Plan, tick until done, finish.',
  StartAt: 'Plan',
  TimeoutSeconds: 86_400,
  States: {
    Plan: {
      Type: 'Task',
      Resource: FUNCTION,
      TimeoutSeconds: 120,
      ResultPath: '$.plan',
      Next: 'Schedule',
      Retry: [
        {
          ErrorEquals: ['StoreUnavailable', 'Lambda.TooManyRequestsException'],
          IntervalSeconds: 1,
          MaxAttempts: 6,
          BackoffRate: 2,
          MaxDelaySeconds: 30,
          JitterStrategy: 'FULL',
        },
        { ErrorEquals: ['States.ALL'], MaxAttempts: 1 },
      ],
      Catch: [{ ErrorEquals: ['States.ALL'], ResultPath: '$.error', Next: 'Fail' }],
    },
    Schedule: {
      Type: 'Task',
      Resource: INVOKE,
      Parameters: {
        FunctionName: FUNCTION,
        Payload: { 'jobId.$': '$.jobId', 'execution.$': '$$.Execution.Id', 'list.$': 'States.Array($.a, 1)' },
      },
      ResultSelector: { 'outcome.$': '$.Payload.outcome' },
      ResultPath: '$.tick',
      Next: 'Done?',
    },
    'Done?': {
      Type: 'Choice',
      Choices: [
        { Variable: '$.tick.outcome', StringEquals: 'done', Next: 'Finish' },
        {
          And: [
            { Variable: '$.tick.n', NumericGreaterThan: 3 },
            { Not: { Variable: '$.x', IsPresent: true } },
          ],
          Next: 'Pause',
        },
      ],
      Default: 'Schedule',
    },
    Pause: { Type: 'Wait', Seconds: 1, Next: 'Schedule' },
    Finish: { Type: 'Succeed' },
    Fail: { Type: 'Fail', ErrorPath: '$.error.Error', CausePath: '$.error.Cause' },
  },
};

describe('assertSupportedDefinition', () => {
  it('passes a loop of tasks with retries, catches, choices and waits', () => {
    expect(() => {
      assertSupportedDefinition(RESIDENT_LOOP);
    }).not.toThrow();
  });

  it.each([
    ['JSONata at the top', machine(task({}), { QueryLanguage: 'JSONata' }), undefined, 'QueryLanguage'],
    ['JSONata in a state', machine(task({ QueryLanguage: 'JSONata' })), 'S', 'QueryLanguage'],
    ['Assign', machine(task({ Assign: { a: 1 } })), 'S', 'Assign'],
    ['Arguments', machine(task({ Arguments: {} })), 'S', 'Arguments'],
    ['heartbeats', machine(task({ HeartbeatSeconds: 10 })), 'S', 'HeartbeatSeconds'],
    [
      'a task that waits for a token and passes none on',
      machine(task({ Resource: `${INVOKE}.waitForTaskToken`, Parameters: { FunctionName: 'f' } })),
      'S',
      'Parameters',
    ],
    [
      'a token of a task that does not wait for it',
      machine(
        task({ Resource: INVOKE, Parameters: { FunctionName: 'f', Payload: { 'a.$': '$$.Task.Token' } } }),
      ),
      'S',
      'Parameters',
    ],
    [
      'a token inside of an intrinsic function',
      machine(task({ Parameters: { 'a.$': "States.Format('{}', $$.Task.Token)" } })),
      'S',
      'Parameters',
    ],
    ['another service', machine(task({ Resource: 'arn:aws:states:::ecs:runTask.sync' })), 'S', 'Resource'],
    ['an unresolved resource', machine(task({ Resource: { Ref: 'Fn' } })), 'S', 'Resource'],
    ['Map', machine({ Type: 'Map', ItemProcessor: {}, ItemReader: {}, End: true }), 'S', 'Type'],
    [
      'an unknown field of a retrier',
      machine(task({ Retry: [{ ErrorEquals: ['A'], Jitter: 1 }] })),
      'S',
      'Retry.0.Jitter',
    ],
    [
      'States.ALL among others',
      machine(task({ Retry: [{ ErrorEquals: ['A', 'States.ALL'] }] })),
      'S',
      'Retry.0.ErrorEquals',
    ],
    [
      'a catch into nowhere',
      machine(task({ Catch: [{ ErrorEquals: ['A'], Next: 'X' }] })),
      'S',
      'Catch.0.Next',
    ],
    ['a wildcard path', machine(task({ InputPath: '$.a[*]' })), 'S', 'InputPath'],
    [
      'a state field of the context object',
      machine(task({ Parameters: { 'x.$': '$$.State.Name' } })),
      'S',
      'Parameters',
    ],
    [
      'a function that loses backslashes',
      machine(task({ Parameters: { 'x.$': 'States.JsonToString($)' } })),
      'S',
      'Parameters',
    ],
    [
      'no function name',
      machine(task({ Resource: INVOKE, Parameters: { 'Payload.$': '$' } })),
      'S',
      'Parameters.FunctionName',
    ],
    [
      'an asynchronous invocation',
      machine(task({ Resource: INVOKE, Parameters: { FunctionName: 'f', InvocationType: 'Event' } })),
      'S',
      'Parameters.InvocationType',
    ],
    [
      'a choice without a target',
      machine({ Type: 'Choice', Choices: [{ Variable: '$.a', IsNull: true }] }),
      'S',
      'Choices.0.Next',
    ],
    ['both Next and End', machine(task({ Next: 'S' })), 'S', 'Next'],
    ['a start that does not exist', machine(task({}), { StartAt: 'T' }), undefined, 'StartAt'],
    ['an unknown field at the top', machine(task({}), { Extra: 1 }), undefined, 'Extra'],
    ['an empty result', machine({ Type: 'Pass', Result: 0, End: true }), 'S', 'Result'],
    ['no states', { StartAt: 'S' }, undefined, 'States'],
    ['no object', 'machine', undefined, ''],
  ])('refuses %s', (_, definition, stateName, field) => {
    let thrown: unknown;
    try {
      assertSupportedDefinition(definition);
    } catch (cause) {
      thrown = cause;
    }
    expect(thrown).toBeInstanceOf(UnsupportedDefinitionError);
    expect(thrown).toMatchObject({ stateName, field });
  });
});
