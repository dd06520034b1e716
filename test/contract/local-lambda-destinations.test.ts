import { readFileSync } from 'node:fs';
import { InvokeCommand } from '@aws-sdk/client-lambda';
import { describe, expect, it } from 'vitest';
import { workerEndOf } from '../../functions/shared/worker-death.ts';
import type { LambdaServerOptions, LocalFunction } from '../../src/local/lambda/server.ts';
import { text, useLocalLambda } from './local-lambda-support.ts';

const { fixture, stack, start, until } = useLocalLambda();

/** A worker's payload, with what the test's worker is to do. */
const payload = (what: string) => ({
  jobId: 'words-0123456789ab',
  attemptId: 'map/0/0',
  shards: 1,
  stageKey: 'k',
  inputs: [],
  heartbeatMs: 1_000,
  what,
});

const WORKER = `
  const { spawn } = require('node:child_process');
  const held = [];
  const fill = () => { for (;;) held.push(Buffer.alloc(16 * 1024 * 1024, 1)); };
  const grow = () => { held.push(Buffer.alloc(4 * 1024 * 1024, 1)); };
  exports.handler = (event) => {
    if (event.what === 'exit') process.exit(3);
    if (event.what === 'kill') process.kill(process.pid, 'SIGKILL');
    if (event.what === 'throw') throw Object.assign(new Error('no answer'), { name: 'StoreUnavailable' });
    if (event.what === 'grow') setInterval(grow, 2);
    if (event.what === 'heap') { const all = []; for (;;) all.push(new Array(100000).fill({ a: 1 })); }
    if (event.what === 'child') {
      const code = 'const held = []; setInterval(() => held.push(Buffer.alloc(4194304, 1)), 2)';
      const child = spawn(process.execPath, ['-e', code], { detached: true, stdio: 'ignore' });
      console.log('started ' + child.pid);
    }
    return event.what === 'well' ? 'well' : new Promise((resolve) => setTimeout(resolve, 60000));
  };`;
const TOLD = `exports.handler = async (event) => { console.log('told ' + JSON.stringify(event)); };`;

const functions = (settings: Partial<LocalFunction> = {}): LocalFunction[] => [
  fixture('worker', WORKER, { memoryMb: 200, onFailure: 'told', ...settings }),
  fixture('told', TOLD),
];

async function launch(what: string): Promise<void> {
  const Payload = JSON.stringify(payload(what));
  await stack.client.send(new InvokeCommand({ FunctionName: 'worker', InvocationType: 'Event', Payload }));
}

const told = (): unknown[] =>
  stack.lines.flatMap(({ line }) => {
    const json = /told (\{.*\})$/.exec(line)?.[1];
    return json === undefined ? [] : [JSON.parse(json) as unknown];
  });

const startedByWorker = (): number[] =>
  stack.lines.flatMap(({ line }) => {
    const pid = /started (\d+)$/.exec(line)?.[1];
    return pid === undefined ? [] : [Number(pid)];
  });

function lives(pid: number): boolean {
  try {
    // Signal 0 only asks. One that has ended and was not waited for by anybody has no memory any more.
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${String(pid)}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** What the destination is told of a worker that does `what`. */
async function fate(what: string, settings?: Partial<LocalFunction>): Promise<unknown> {
  await start(functions(settings));
  await launch(what);
  await until(() => told().length > 0);
  return told()[0];
}

describe('the on-failure destination of a function', () => {
  it.each([
    ['exit', 'exited', { errorType: 'Runtime.ExitError', errorMessage: text(/exit status 3$/) }],
    ['kill', 'out-of-memory', { errorType: 'Runtime.ExitError', errorMessage: text(/signal: killed$/) }],
    ['throw', 'storage', { errorType: 'StoreUnavailable', errorMessage: 'no answer' }],
    ['grow', 'out-of-memory', { errorType: 'Runtime.OutOfMemory', errorMessage: text(/signal: killed$/) }],
    ['child', 'out-of-memory', { errorType: 'Runtime.OutOfMemory', errorMessage: text(/signal: killed$/) }],
    ['heap', 'out-of-memory', { errorType: 'Runtime.OutOfMemory' }],
  ])('hears of a worker that does %s: %s', async (what, cause, responsePayload) => {
    const record = await fate(what);
    expect(record).toMatchObject({
      version: '1.0',
      requestContext: {
        functionArn: text(/:function:worker:\$LATEST$/),
        condition: 'RetriesExhausted',
        approximateInvokeCount: 1,
      },
      requestPayload: payload(what),
      responseContext: { functionError: 'Unhandled' },
      responsePayload,
    });
    expect(workerEndOf(record)?.death.failure.cause).toBe(cause);
    // As AWS ends all of a sandbox: nothing that it has started goes on, and takes the machine's memory.
    await until(() => startedByWorker().every((pid) => !lives(pid)));
  });

  it('hears of one that ran out of time', async () => {
    const record = await fate('wait', { timeoutMs: 300 });
    expect(workerEndOf(record)?.death.failure).toEqual({
      cause: 'timeout',
      message: 'Lambda ended its worker: Task timed out after 0.30 seconds',
      mayPass: true,
    });
  });

  it('hears once of one that failed again and again', async () => {
    expect(await fate('exit', { asyncRetries: 2 })).toMatchObject({
      requestContext: { approximateInvokeCount: 3 },
    });
    expect(told()).toHaveLength(1);
  });

  it('hears of one that grew too old in the queue, which is no failure', async () => {
    await start(functions({ maxEventAgeMs: 1, reservedConcurrency: 1, timeoutMs: 400 }));
    await launch('wait');
    await launch('well');
    await until(() => told().length === 2);
    const causes = told().map((record) => workerEndOf(record)?.death.failure.cause);
    expect(causes.toSorted()).toEqual(['expired', 'timeout']);
  });

  it('hears nothing of one that did well', async () => {
    await start(functions());
    await launch('well');
    await launch('exit');
    await until(() => told().length > 0);
    expect(told()).toMatchObject([{ requestPayload: { what: 'exit' } }]);
  });

  it('hears nothing where the function may not call it', async () => {
    const mayCall: LambdaServerOptions['mayCall'] = (name, called) => `${name} may not call ${called}`;
    await start(functions(), { mayCall });
    await launch('exit');
    await until(() => stack.dropped.length === 2);
    expect(stack.dropped).toMatchObject([
      { functionName: 'worker', reason: 'retries-exhausted' },
      { functionName: 'told', reason: 'not-told', why: 'worker may not call told' },
    ]);
    expect(told()).toEqual([]);
  });

  it('hears of one whose place was lost, which needed no more memory', async () => {
    const onWork: LambdaServerOptions['onWork'] = (work) => {
      if (work.name !== 'worker') return;
      work.lose?.();
      process.kill(-work.pid, 'SIGKILL');
    };
    await start(functions(), { onWork });
    await launch('wait');
    await until(() => told().length > 0);
    expect(workerEndOf(told()[0])?.death.failure.cause).toBe('exited');
  });
});
