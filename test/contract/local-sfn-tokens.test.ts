import {
  GetExecutionHistoryCommand,
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
  SendTaskSuccessCommand,
  type SFNClient,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import { afterEach, describe, expect, it } from 'vitest';
import { cleanUp, ended, FUNCTION, type Invoke, named, stack, start } from '../support/states-stack.ts';

afterEach(cleanUp);

const waiting = (more: object = {}, onwards: object = { End: true }) => ({
  StartAt: 'Work',
  States: {
    Work: {
      Type: 'Task',
      Resource: 'arn:aws:states:::lambda:invoke.waitForTaskToken',
      Parameters: {
        FunctionName: FUNCTION,
        Payload: { 'token.$': '$$.Task.Token', 'job.$': '$.job', deep: [{ 'again.$': '$$.Task.Token' }] },
      },
      ...onwards,
      ...more,
    },
    Caught: { Type: 'Pass', End: true },
  },
});

/** A function that keeps what it is called with; `answers` gives what it answers. */
function enlisting(answers: () => Promise<unknown> = () => Promise.resolve(null)) {
  const payloads: { token: string; job: string; deep: { again: string }[] }[] = [];
  const waiters: (() => void)[] = [];
  const invoke: Invoke = (_, payload) => {
    payloads.push(payload as (typeof payloads)[number]);
    for (const wake of waiters.splice(0)) wake();
    return answers();
  };
  const call = async (number: number): Promise<(typeof payloads)[number]> => {
    for (;;) {
      const found = payloads[number - 1];
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => waiters.push(resolve));
    }
  };
  return { invoke, call, payloads };
}

const typesOf = async (client: SFNClient, executionArn: string): Promise<(string | undefined)[]> => {
  const { events = [] } = await client.send(
    new GetExecutionHistoryCommand({ executionArn, maxResults: 1000 }),
  );
  return events.map(({ type }) => type);
};
const until = async (holds: () => Promise<boolean>): Promise<void> => {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
};
const succeed = (client: SFNClient, taskToken: string, output: unknown) =>
  client.send(new SendTaskSuccessCommand({ taskToken, output: JSON.stringify(output) }));

describe('a task that waits for its token', () => {
  it('goes on with what is answered to the token, long after its function has answered', async () => {
    const { invoke, call } = enlisting();
    const { client } = await stack(waiting(), invoke);
    const arn = await start(client, { job: 'a' });
    const { token, job, deep } = await call(1);
    expect({ job, again: deep[0]?.again }).toEqual({ job: 'a', again: token });
    await until(async () => (await typesOf(client, arn)).includes('TaskSubmitted'));
    await succeed(client, token, { outcome: 'finish' });
    expect(await ended(client, arn)).toMatchObject({ status: 'SUCCEEDED', output: '{"outcome":"finish"}' });
    expect(await typesOf(client, arn)).toEqual([
      'ExecutionStarted',
      'TaskStateEntered',
      'TaskScheduled',
      'TaskStarted',
      'TaskSubmitted',
      'TaskSucceeded',
      'TaskStateExited',
      'ExecutionSucceeded',
    ]);
  });

  it('does not wait for its function once the token is answered, however that ends', async () => {
    const gate = Promise.withResolvers<unknown>();
    const { invoke, call } = enlisting(() => gate.promise);
    const { client } = await stack(waiting(), invoke);
    const arn = await start(client, { job: 'a' });
    await succeed(client, (await call(1)).token, 1);
    expect(await ended(client, arn)).toMatchObject({ status: 'SUCCEEDED', output: '1' });
    gate.reject(named('Late'));
    expect(await typesOf(client, arn)).not.toContain('TaskFailed');
  });

  it('fails as the function does before the token is answered, and gives the next try another token', async () => {
    let calls = 0;
    const { invoke, call } = enlisting(() =>
      (calls += 1) === 1 ? Promise.reject(named('Lambda.TooManyRequestsException')) : Promise.resolve(null),
    );
    const retry = [{ ErrorEquals: ['Lambda.TooManyRequestsException'], IntervalSeconds: 1, MaxAttempts: 3 }];
    const { client } = await stack(waiting({ Retry: retry }), invoke);
    const arn = await start(client, { job: 'a' });
    const [first, second] = [await call(1), await call(2)];
    expect(second.token).not.toBe(first.token);
    await expect(succeed(client, first.token, 0)).rejects.toMatchObject({ name: 'TaskTimedOut' });
    await succeed(client, second.token, 2);
    expect(await ended(client, arn)).toMatchObject({ status: 'SUCCEEDED', output: '2' });
  });

  it('fails with the error and cause that are answered, which Catch gets', async () => {
    const { invoke, call } = enlisting();
    const caught = [{ ErrorEquals: ['JobFailed'], Next: 'Caught', ResultPath: '$.error' }];
    const { client } = await stack(waiting({ Catch: caught }), invoke);
    const arn = await start(client, { job: 'a' });
    const { token } = await call(1);
    await client.send(new SendTaskFailureCommand({ taskToken: token, error: 'JobFailed', cause: 'why' }));
    const { output } = await ended(client, arn);
    expect(JSON.parse(output ?? '')).toEqual({ job: 'a', error: { Error: 'JobFailed', Cause: 'why' } });
  });

  it.each(['States.HeartbeatTimeout', 'States.Timeout'])(
    'times out where nobody gives a sign of life, which Retry matches as %s',
    async (error) => {
      const { invoke, call } = enlisting();
      const retry = [{ ErrorEquals: [error], IntervalSeconds: 1, MaxAttempts: 1 }];
      const { client } = await stack(waiting({ HeartbeatSeconds: 1, Retry: retry }), invoke);
      const arn = await start(client, { job: 'a' });
      const first = await call(1);
      await client.send(new SendTaskHeartbeatCommand({ taskToken: first.token }));
      const second = await call(2);
      await expect(
        client.send(new SendTaskHeartbeatCommand({ taskToken: first.token })),
      ).rejects.toMatchObject({ name: 'TaskTimedOut' });
      await succeed(client, second.token, 'well');
      expect(await ended(client, arn)).toMatchObject({ status: 'SUCCEEDED' });
      expect((await typesOf(client, arn)).filter((type) => type === 'TaskTimedOut')).toHaveLength(1);
    },
  );

  it('takes no answer to a token whose execution was stopped, that was answered, or that is none', async () => {
    const { invoke, call } = enlisting();
    const { client } = await stack(waiting(), invoke);
    const stopped = await start(client, { job: 'a' });
    const { token } = await call(1);
    await client.send(new StopExecutionCommand({ executionArn: stopped }));
    await expect(succeed(client, token, 1)).rejects.toMatchObject({ name: 'TaskTimedOut' });
    await start(client, { job: 'b' });
    const { token: other } = await call(2);
    await succeed(client, other, 1);
    await expect(succeed(client, other, 2)).rejects.toMatchObject({ name: 'TaskTimedOut' });
    await expect(succeed(client, 'nonsense', 1)).rejects.toMatchObject({ name: 'InvalidToken' });
    await expect(
      client.send(new SendTaskSuccessCommand({ taskToken: other, output: 'no json' })),
    ).rejects.toMatchObject({ name: 'InvalidOutput' });
  });

  it('ends by its own time-out although there are signs of life, and its token with it', async () => {
    const { invoke, call } = enlisting();
    const { client } = await stack(waiting({ TimeoutSeconds: 2, HeartbeatSeconds: 1 }), invoke);
    const arn = await start(client, { job: 'a' });
    const { token } = await call(1);
    const beats = setInterval(() => {
      client.send(new SendTaskHeartbeatCommand({ taskToken: token })).catch(() => undefined);
    }, 200);
    try {
      expect(await ended(client, arn)).toMatchObject({ status: 'FAILED', error: 'States.Timeout' });
    } finally {
      clearInterval(beats);
    }
    await expect(succeed(client, token, 1)).rejects.toMatchObject({ name: 'TaskTimedOut' });
  });

  it('is called again with another token by the server that comes after a restart', async () => {
    const { mkdtemp, rm } = await import('node:fs/promises');
    const runDir = await mkdtemp('/tmp/outrider-tokens-');
    try {
      const { invoke, call } = enlisting();
      const before = await stack(waiting(), invoke, { runDir });
      const arn = await start(before.client, { job: 'a' });
      const first = await call(1);
      await before.server.close();
      const { client } = await stack(waiting(), invoke, { runDir });
      const second = await call(2);
      await expect(succeed(client, first.token, 1)).rejects.toMatchObject({ name: 'TaskTimedOut' });
      await succeed(client, second.token, 2);
      expect(await ended(client, arn)).toMatchObject({ status: 'SUCCEEDED', output: '2' });
    } finally {
      await rm(runDir, { recursive: true, force: true });
    }
  });
});
