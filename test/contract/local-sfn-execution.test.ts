import { GetExecutionHistoryCommand } from '@aws-sdk/client-sfn';
import { afterEach, describe, expect, it } from 'vitest';
import {
  FUNCTION,
  cleanUp,
  ended,
  gate,
  named,
  oneTask,
  run,
  stack,
  start,
} from '../support/states-stack.ts';

afterEach(cleanUp);

describe('an execution', () => {
  it('calls the function by its ARN with the input, and gives its answer', async () => {
    const calls: unknown[] = [];
    const { execution, types } = await run(
      oneTask(),
      (name, payload) => {
        calls.push([name, payload]);
        return Promise.resolve({ done: true });
      },
      { job: 'j1' },
    );
    expect(calls).toEqual([[FUNCTION, { job: 'j1' }]]);
    expect(execution.status).toBe('SUCCEEDED');
    expect(execution.output).toBe('{"done":true}');
    expect(execution.input).toBe('{"job":"j1"}');
    expect(execution.stopDate).toBeInstanceOf(Date);
    expect(types).toEqual([
      'ExecutionStarted',
      'TaskStateEntered',
      'LambdaFunctionScheduled',
      'LambdaFunctionStarted',
      'LambdaFunctionSucceeded',
      'TaskStateExited',
      'ExecutionSucceeded',
    ]);
  });

  it('loops through a Choice until it ends, and tells each step with its data', async () => {
    const definition = {
      StartAt: 'Tick',
      States: {
        Tick: { Type: 'Task', Resource: FUNCTION, ResultPath: '$.tick', Next: 'Done?' },
        'Done?': {
          Type: 'Choice',
          Choices: [{ Variable: '$.tick.left', NumericEquals: 0, Next: 'End' }],
          Default: 'Tick',
        },
        End: { Type: 'Succeed' },
      },
    };
    let left = 2;
    const { execution, events, types } = await run(definition, () => Promise.resolve({ left: --left }), {
      id: 7,
    });
    expect(execution.output).toBe('{"id":7,"tick":{"left":0}}');
    const tick = [
      'TaskStateEntered',
      'LambdaFunctionScheduled',
      'LambdaFunctionStarted',
      'LambdaFunctionSucceeded',
      'TaskStateExited',
      'ChoiceStateEntered',
      'ChoiceStateExited',
    ];
    expect(types).toEqual([
      'ExecutionStarted',
      ...tick,
      ...tick,
      'SucceedStateEntered',
      'SucceedStateExited',
      'ExecutionSucceeded',
    ]);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
    expect(events.map(({ previousEventId }) => previousEventId)).toEqual(events.map((_, index) => index));
    expect(events[8]?.stateEnteredEventDetails).toMatchObject({
      name: 'Tick',
      input: '{"id":7,"tick":{"left":1}}',
    });
    expect(events[11]?.lambdaFunctionSucceededEventDetails?.output).toBe('{"left":0}');
  });

  it('speaks the lambda:invoke integration', async () => {
    const calls: unknown[] = [];
    const { execution, types } = await run(
      oneTask({
        Resource: 'arn:aws:states:::lambda:invoke',
        Parameters: { FunctionName: FUNCTION, 'Payload.$': '$' },
        ResultSelector: { 'answer.$': '$.Payload' },
      }),
      (name, payload) => {
        calls.push([name, payload]);
        return Promise.resolve(5);
      },
      { a: 1 },
    );
    expect(calls).toEqual([[FUNCTION, { a: 1 }]]);
    expect(execution.output).toBe('{"answer":5}');
    expect(types.slice(2, 5)).toEqual(['TaskScheduled', 'TaskStarted', 'TaskSucceeded']);
  });

  it('gives states the ids of the execution and of the machine', async () => {
    const { execution } = await run(
      {
        StartAt: 'Ids',
        States: {
          Ids: {
            Type: 'Pass',
            Parameters: {
              'id.$': '$$.Execution.Id',
              'machine.$': '$$.StateMachine.Name',
              'in.$': '$$.Execution.Input.x',
            },
            End: true,
          },
        },
      },
      () => Promise.resolve(null),
      { x: 4 },
    );
    expect(JSON.parse(execution.output ?? '')).toEqual({
      id: execution.executionArn,
      machine: 'machine',
      in: 4,
    });
  });

  it('merges a result at the root where the result path says so', async () => {
    const { execution } = await run(oneTask({ ResultPath: '$' }), () => Promise.resolve({ only: 1 }), {
      gone: true,
    });
    expect(execution.output).toBe('{"only":1}');
  });
});

describe('a Choice', () => {
  const decide = (rule: object) => ({
    StartAt: 'Which',
    States: {
      Which: { Type: 'Choice', Choices: [{ ...rule, Next: 'Yes' }], Default: 'No' },
      Yes: { Type: 'Pass', Result: 'yes', End: true },
      No: { Type: 'Pass', Result: 'no', End: true },
    },
  });
  const present = { Variable: '$.a', IsPresent: true };
  const absent = { Variable: '$.a', IsPresent: false };

  it.each([
    [present, { a: 1 }, 'yes'],
    [present, {}, 'no'],
    [absent, { a: 1 }, 'no'],
    [absent, {}, 'yes'],
    [{ Not: absent }, {}, 'no'],
    [{ Or: [absent, { Variable: '$.a', IsNull: true }] }, { a: null }, 'yes'],
    [{ And: [present, { Variable: '$.a', IsString: false }] }, { a: 1 }, 'yes'],
    [{ And: [present, { Variable: '$.a', NumericLessThanEquals: 1 }] }, { a: 2 }, 'no'],
    [{ Variable: '$.a', StringMatches: 'job-*' }, { a: 'job-7' }, 'yes'],
  ])('of %o on %o says %s', async (rule, input, answer) => {
    const { execution } = await run(decide(rule), () => Promise.resolve(null), input);
    expect(execution.output).toBe(JSON.stringify(answer));
  });
});

describe('failures', () => {
  it('end the execution with the error type and its document', async () => {
    const { execution, types } = await run(oneTask(), () =>
      Promise.reject(named('StoreUnavailable', 'no store')),
    );
    expect(execution.status).toBe('FAILED');
    expect(execution.error).toBe('StoreUnavailable');
    expect(JSON.parse(execution.cause ?? '')).toEqual({
      errorType: 'StoreUnavailable',
      errorMessage: 'no store',
    });
    expect(types.slice(-2)).toEqual(['LambdaFunctionFailed', 'ExecutionFailed']);
  });

  it.each(['StoreUnavailable', 'Lambda.TooManyRequestsException', 'States.TaskFailed', 'States.ALL'])(
    'are retried under %s, without leaving the state',
    async (matcher) => {
      let calls = 0;
      const { execution, types } = await run(
        oneTask({
          Retry: [
            {
              ErrorEquals: [matcher],
              IntervalSeconds: 1,
              MaxDelaySeconds: 1,
              MaxAttempts: 1,
              JitterStrategy: 'FULL',
            },
          ],
        }),
        () =>
          calls++ === 0
            ? Promise.reject(named(matcher.startsWith('States.') ? 'Any' : matcher))
            : Promise.resolve('ok'),
      );
      expect(execution.output).toBe('"ok"');
      expect(types.filter((type) => type === 'TaskStateEntered')).toHaveLength(1);
      expect(types.filter((type) => type === 'LambdaFunctionScheduled')).toHaveLength(2);
      expect(types.filter((type) => type === 'LambdaFunctionFailed')).toHaveLength(1);
    },
  );

  it('are not retried under another name, nor more often than allowed', async () => {
    let calls = 0;
    const { execution } = await run(
      oneTask({
        Retry: [
          { ErrorEquals: ['Other'], MaxAttempts: 5 },
          { ErrorEquals: ['Mine'], IntervalSeconds: 1, JitterStrategy: 'FULL', MaxAttempts: 1 },
        ],
      }),
      () => {
        calls++;
        return Promise.reject(named('Mine'));
      },
    );
    expect(calls).toBe(2);
    expect(execution.error).toBe('Mine');
  });

  it('are caught with the input kept beside the error', async () => {
    const { execution } = await run(
      {
        StartAt: 'Work',
        States: {
          Work: {
            Type: 'Task',
            Resource: FUNCTION,
            End: true,
            Catch: [{ ErrorEquals: ['States.ALL'], ResultPath: '$.failure', Next: 'Handled' }],
          },
          Handled: { Type: 'Pass', End: true },
        },
      },
      () => Promise.reject(named('Lambda.TooManyRequestsException', 'Rate exceeded')),
      { job: 'j' },
    );
    expect(execution.status).toBe('SUCCEEDED');
    expect(JSON.parse(execution.output ?? '')).toEqual({
      job: 'j',
      failure: { Error: 'Lambda.TooManyRequestsException', Cause: 'Rate exceeded' },
    });
  });

  it('by time-out are States.Timeout, not States.TaskFailed', async () => {
    const { execution, types } = await run(
      {
        StartAt: 'Work',
        States: {
          Work: {
            Type: 'Task',
            Resource: FUNCTION,
            TimeoutSeconds: 1,
            End: true,
            Catch: [
              { ErrorEquals: ['States.TaskFailed'], Next: 'Wrong' },
              { ErrorEquals: ['States.Timeout'], Next: 'Late' },
            ],
          },
          Wrong: { Type: 'Fail' },
          Late: { Type: 'Fail', Error: 'TooLate', Cause: 'gave up' },
        },
      },
      gate().invoke,
    );
    expect(execution).toMatchObject({ status: 'FAILED', error: 'TooLate', cause: 'gave up' });
    expect(types).toEqual([
      'ExecutionStarted',
      'TaskStateEntered',
      'LambdaFunctionScheduled',
      'LambdaFunctionStarted',
      'LambdaFunctionTimedOut',
      'TaskStateExited',
      'FailStateEntered',
      'ExecutionFailed',
    ]);
  });

  it('of the whole machine by time-out end it as TIMED_OUT', async () => {
    const { execution, types } = await run({ ...oneTask(), TimeoutSeconds: 1 }, gate().invoke);
    expect(execution.status).toBe('TIMED_OUT');
    expect(types.at(-1)).toBe('ExecutionTimedOut');
  });

  it('by a missing path name the state and cannot be caught', async () => {
    const { execution } = await run(
      {
        StartAt: 'Work',
        States: {
          Work: {
            ...oneTask({ InputPath: '$.none', Catch: [{ ErrorEquals: ['States.ALL'], Next: 'Never' }] })
              .States.Work,
          },
          Never: { Type: 'Succeed' },
        },
      },
      () => Promise.resolve(1),
    );
    expect(execution).toMatchObject({ status: 'FAILED', error: 'States.Runtime' });
    expect(execution.cause).toContain("the state 'Work' (entered at the event id #2)");
  });

  it('by an answer above 256 KiB pass States.ALL by', async () => {
    const { execution } = await run(oneTask({ Retry: [{ ErrorEquals: ['States.ALL'] }] }), () =>
      Promise.resolve('x'.repeat(262_144)),
    );
    expect(execution.error).toBe('States.DataLimitExceeded');
  });

  it('without error and cause show neither', async () => {
    const { execution } = await run({ StartAt: 'No', States: { No: { Type: 'Fail' } } }, () =>
      Promise.resolve(1),
    );
    expect(execution.status).toBe('FAILED');
    expect(execution.error).toBeUndefined();
    expect(execution.cause).toBeUndefined();
  });

  it('come from a history of 25,000 events, the failure being the last of them', async () => {
    const { client } = await stack(
      {
        StartAt: 'Spin',
        States: {
          Spin: { Type: 'Choice', Choices: [{ Variable: '$.on', BooleanEquals: true, Next: 'Spin' }] },
        },
      },
      () => Promise.resolve(1),
    );
    const executionArn = await start(client, { on: true });
    const execution = await ended(client, executionArn);
    expect(execution).toMatchObject({
      status: 'FAILED',
      error: 'States.Runtime',
      cause: 'The execution reached the maximum number of history events (25000).',
    });
    const { events } = await client.send(
      new GetExecutionHistoryCommand({ executionArn, reverseOrder: true, maxResults: 2 }),
    );
    expect(events?.map(({ id, type }) => [id, type])).toEqual([
      [25_000, 'ExecutionFailed'],
      [24_999, 'ChoiceStateExited'],
    ]);
  });
});
