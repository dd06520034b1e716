import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DescribeExecutionCommand,
  DescribeStateMachineCommand,
  GetExecutionHistoryCommand,
  ListExecutionsCommand,
  SFNClient,
  StartExecutionCommand,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import type { DescribeExecutionCommandOutput, HistoryEvent } from '@aws-sdk/client-sfn';
import { afterEach, describe, expect, it } from 'vitest';
import { startStepFunctionsServer } from '../../src/local/sfn/server.ts';
import type { StepFunctionsOptions, StepFunctionsServer } from '../../src/local/sfn/server.ts';

const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'secret' };
const REGION = 'us-east-1';
const ARN = 'arn:aws:states:us-east-1:000000000000:stateMachine:machine';
const FUNCTION = 'arn:aws:lambda:us-east-1:000000000000:function:work';

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Invoke = StepFunctionsOptions['invokeLambda'];
interface Stack {
  readonly client: SFNClient;
  readonly server: StepFunctionsServer;
}

async function stack(
  definition: object,
  invokeLambda: Invoke,
  more: Partial<StepFunctionsOptions> = {},
): Promise<Stack> {
  const server = await startStepFunctionsServer({
    credentials: CREDENTIALS,
    region: REGION,
    stateMachines: [{ name: 'machine', arn: ARN, definition, type: 'STANDARD' }],
    invokeLambda,
    ...more,
  });
  const client = clientFor(server.endpoint);
  cleanups.push(() => server.close());
  return { client, server };
}

function clientFor(endpoint: string, credentials = CREDENTIALS): SFNClient {
  const client = new SFNClient({ endpoint, region: REGION, credentials, maxAttempts: 1 });
  cleanups.push(() => {
    client.destroy();
  });
  return client;
}

async function start(client: SFNClient, input: unknown = {}, name?: string): Promise<string> {
  const { executionArn } = await client.send(
    new StartExecutionCommand({ stateMachineArn: ARN, input: JSON.stringify(input), name }),
  );
  return executionArn ?? '';
}

async function ended(client: SFNClient, executionArn: string): Promise<DescribeExecutionCommandOutput> {
  for (let polls = 0; polls < 2_000; polls++) {
    const execution = await client.send(new DescribeExecutionCommand({ executionArn }));
    if (execution.status !== 'RUNNING') return execution;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error('the execution did not end');
}

async function run(definition: object, invoke: Invoke, input: unknown = {}) {
  const { client } = await stack(definition, invoke);
  const executionArn = await start(client, input);
  const execution = await ended(client, executionArn);
  const { events = [] } = await client.send(
    new GetExecutionHistoryCommand({ executionArn, maxResults: 1000 }),
  );
  return { execution, events, types: events.map(({ type }) => type) };
}

const oneTask = (more: object = {}) => ({
  StartAt: 'Work',
  States: { Work: { Type: 'Task', Resource: FUNCTION, End: true, ...more } },
});

function named(name: string, message = 'boom'): Error {
  const error = new Error(message);
  error.name = name;
  return error;
}

/** A function that answers only when told to. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const { promise: called, resolve: onCall } = Promise.withResolvers<unknown>();
  return {
    called,
    open: resolve,
    invoke: (_: string, payload: unknown) => {
      onCall(payload);
      return promise;
    },
  };
}

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

describe('StartExecution', () => {
  it('is idempotent for the same name and input while it runs, and refuses both otherwise', async () => {
    const held = gate();
    const { client } = await stack(oneTask(), held.invoke);
    const send = (input: string) =>
      client.send(new StartExecutionCommand({ stateMachineArn: ARN, name: 'once', input }));
    const first = await send('{"a":1}');
    const again = await send('{"a":1}');
    expect(first.executionArn).toBe('arn:aws:states:us-east-1:000000000000:execution:machine:once');
    expect([again.executionArn, again.startDate]).toEqual([first.executionArn, first.startDate]);
    await expect(send('{"a":2}')).rejects.toMatchObject({ name: 'ExecutionAlreadyExists' });
    held.open({});
    await ended(client, first.executionArn ?? '');
    await expect(send('{"a":1}')).rejects.toMatchObject({ name: 'ExecutionAlreadyExists' });
  });

  it('runs once under many racing starts of one name', async () => {
    let calls = 0;
    const held = gate();
    const { client } = await stack(oneTask(), (name, payload) => {
      calls++;
      return held.invoke(name, payload);
    });
    const arns = await Promise.all(Array.from({ length: 10 }, () => start(client, {}, 'race')));
    held.open({});
    await ended(client, arns[0] ?? '');
    expect(new Set(arns).size).toBe(1);
    expect(calls).toBe(1);
  });

  it.each([
    ['InvalidName', { name: 'a b' }],
    ['InvalidName', { name: 'x'.repeat(81) }],
    ['InvalidName', { name: 'a/b' }],
    ['InvalidExecutionInput', { input: '{' }],
    ['ValidationException', { input: JSON.stringify('x'.repeat(262_144)) }],
    ['StateMachineDoesNotExist', { stateMachineArn: `${ARN}2` }],
    ['InvalidArn', { stateMachineArn: 'machine' }],
  ])('answers %s to %o', async (name, request) => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1));
    await expect(
      client.send(new StartExecutionCommand({ stateMachineArn: ARN, ...request })),
    ).rejects.toMatchObject({ name });
  });

  it('refuses a wrong secret', async () => {
    const { server } = await stack(oneTask(), () => Promise.resolve(1));
    const stranger = clientFor(server.endpoint, { accessKeyId: 'local', secretAccessKey: 'wrong' });
    await expect(start(stranger)).rejects.toMatchObject({ name: 'InvalidSignatureException' });
  });

  it('can be made to fail', async () => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1), {
      onRequest: ({ operation }) =>
        operation === 'StartExecution' ? { error: { status: 400, code: 'ThrottlingException' } } : undefined,
    });
    await expect(start(client)).rejects.toMatchObject({ name: 'ThrottlingException' });
  });
});

describe('StopExecution', () => {
  it('ends the execution at once, with the reason given, and nothing follows', async () => {
    const held = gate();
    let calls = 0;
    const { client } = await stack(
      oneTask({ Retry: [{ ErrorEquals: ['States.ALL'], IntervalSeconds: 1 }] }),
      (name, payload) => {
        calls++;
        return held.invoke(name, payload);
      },
    );
    const executionArn = await start(client);
    await held.called;
    await client.send(new StopExecutionCommand({ executionArn, error: 'Cancelled', cause: 'by its owner' }));
    const execution = await client.send(new DescribeExecutionCommand({ executionArn }));
    expect(execution).toMatchObject({ status: 'ABORTED', error: 'Cancelled', cause: 'by its owner' });
    held.open({ late: true });
    await client.send(new StopExecutionCommand({ executionArn, error: 'Again' }));
    const { events = [] } = await client.send(new GetExecutionHistoryCommand({ executionArn }));
    expect(events.at(-1)?.type).toBe('ExecutionAborted');
    expect(events.at(-1)?.executionAbortedEventDetails).toEqual({
      error: 'Cancelled',
      cause: 'by its owner',
    });
    expect(events.at(-2)?.type).toBe('LambdaFunctionStarted');
    expect(calls).toBe(1);
  });

  it('calls no function any more when it comes while a retry is waited for', async () => {
    let calls = 0;
    const { client } = await stack(
      oneTask({ Retry: [{ ErrorEquals: ['States.ALL'], IntervalSeconds: 60 }] }),
      () => {
        calls++;
        return Promise.reject(named('Passing'));
      },
    );
    const executionArn = await start(client);
    let events: HistoryEvent[] = [];
    for (
      let polls = 0;
      polls < 1_000 && !events.some(({ type }) => type === 'LambdaFunctionFailed');
      polls++
    ) {
      events = (await client.send(new GetExecutionHistoryCommand({ executionArn }))).events ?? [];
    }
    await client.send(new StopExecutionCommand({ executionArn }));
    expect((await ended(client, executionArn)).status).toBe('ABORTED');
    expect(calls).toBe(1);
  });
});

describe('queries', () => {
  it('page through histories and executions without gaps or doubles', async () => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1));
    const arns: string[] = [];
    for (const name of ['a', 'b', 'c']) arns.push(await start(client, {}, name));
    for (const arn of arns) await ended(client, arn);

    const listed: (string | undefined)[] = [];
    let nextToken: string | undefined;
    for (let page = 0; page < 5; page++) {
      const answer = await client.send(
        new ListExecutionsCommand({ stateMachineArn: ARN, maxResults: 2, nextToken }),
      );
      listed.push(...(answer.executions ?? []).map(({ name }) => name));
      nextToken = answer.nextToken;
      if (nextToken === undefined) break;
    }
    expect(listed).toEqual(['c', 'b', 'a']);

    const ids: (number | undefined)[] = [];
    for (let page = 0; page < 5; page++) {
      const answer = await client.send(
        new GetExecutionHistoryCommand({ executionArn: arns[0], maxResults: 3, nextToken }),
      );
      ids.push(...(answer.events ?? []).map(({ id }) => id));
      nextToken = answer.nextToken;
      if (nextToken === undefined) break;
    }
    expect(ids).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('list by status', async () => {
    const held = gate();
    const { client } = await stack(oneTask(), held.invoke);
    await start(client, {}, 'running');
    const names = async (statusFilter: 'RUNNING' | 'FAILED') =>
      (await client.send(new ListExecutionsCommand({ stateMachineArn: ARN, statusFilter }))).executions?.map(
        ({ name }) => name,
      );
    expect(await names('RUNNING')).toEqual(['running']);
    expect(await names('FAILED')).toEqual([]);
  });

  it('describe the machine as it was given', async () => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1));
    const machine = await client.send(new DescribeStateMachineCommand({ stateMachineArn: ARN }));
    expect(machine).toMatchObject({ name: 'machine', status: 'ACTIVE', type: 'STANDARD' });
    expect(JSON.parse(machine.definition ?? '')).toEqual(oneTask());
  });

  it('answer that an execution does not exist', async () => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1));
    const executionArn = 'arn:aws:states:us-east-1:000000000000:execution:machine:none';
    await expect(client.send(new DescribeExecutionCommand({ executionArn }))).rejects.toMatchObject({
      name: 'ExecutionDoesNotExist',
    });
  });
});

describe('a record on disk', () => {
  it('outlives the server; what ran then is aborted, and names stay taken', async () => {
    const runDir = await mkdtemp(join(tmpdir(), 'local-sfn-'));
    cleanups.push(() => rm(runDir, { recursive: true, force: true }));
    const held = gate();
    const first = await stack(
      oneTask(),
      (_, payload) => (payload === 'hold' ? held.invoke(_, payload) : Promise.resolve('ok')),
      { runDir },
    );
    const done = await start(first.client, 'quick', 'done');
    await ended(first.client, done);
    const cut = await start(first.client, 'hold', 'cut');
    await held.called;

    // A second server over the same files sees what a killed first one would have left.
    const second = await stack(oneTask(), () => Promise.resolve('ok'), { runDir });
    expect(await ended(second.client, done)).toMatchObject({
      status: 'SUCCEEDED',
      output: '"ok"',
      input: '"quick"',
    });
    expect(await ended(second.client, cut)).toMatchObject({ status: 'ABORTED', error: 'Local.Interrupted' });
    await expect(start(second.client, 'quick', 'done')).rejects.toMatchObject({
      name: 'ExecutionAlreadyExists',
    });
    const { events } = await second.client.send(new GetExecutionHistoryCommand({ executionArn: done }));
    expect(events).toHaveLength(7);
  });
});
