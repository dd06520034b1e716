import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import type { InvokeCommandOutput } from '@aws-sdk/client-lambda';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { startLambdaServer } from '../../src/local/lambda/server.ts';
import type {
  DroppedEvent,
  LambdaServer,
  LambdaServerOptions,
  LocalFunction,
  LogEntry,
} from '../../src/local/lambda/server.ts';

const CREDENTIALS = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'local-secret' };
const REGION = 'eu-central-1';

let root: string;
let server: LambdaServer | undefined;
let client: LambdaClient;
let dropped: DroppedEvent[];
let watchers: { wanted: () => boolean; resolve: () => void }[];
let lines: LogEntry[];

function fixture(
  name: string,
  source: string,
  settings: Partial<LocalFunction> & { file?: string } = {},
): LocalFunction {
  const { file = 'index.js', ...rest } = settings;
  const codeDir = join(root, 'code', name);
  mkdirSync(codeDir, { recursive: true });
  writeFileSync(join(codeDir, file), source);
  return {
    name,
    codeDir,
    handler: 'index.handler',
    timeoutMs: 20_000,
    memoryMb: 256,
    environment: {},
    asyncRetries: 0,
    maxEventAgeMs: 60_000,
    ...rest,
  };
}

async function start(functions: LocalFunction[], settings: Partial<LambdaServerOptions> = {}): Promise<void> {
  server = await startLambdaServer({
    credentials: CREDENTIALS,
    region: REGION,
    functions,
    maxConcurrency: 4,
    logDir: join(root, 'logs'),
    nodePath: process.execPath,
    extraEnvironment: { STACK_ENDPOINT: 'http://stack' },
    asyncRetryDelayMs: () => 1,
    onLog: (entry) => {
      lines.push(entry);
      notify();
    },
    onDropped: (event) => {
      dropped.push(event);
      notify();
    },
    ...settings,
  });
  client = new LambdaClient({
    endpoint: server.endpoint,
    region: REGION,
    credentials: CREDENTIALS,
    maxAttempts: 1,
  });
}

function notify(): void {
  watchers = watchers.filter(({ wanted, resolve }) => {
    if (!wanted()) return true;
    resolve();
    return false;
  });
}

/** Resolves once the log or the dropped events make `wanted` true. */
function until(wanted: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    watchers.push({ wanted, resolve });
    notify();
  });
}

const logged = (text: string, times = 1) =>
  until(() => lines.filter(({ line }) => line.includes(text)).length >= times);

function invoke(
  name: string,
  event: unknown = {},
  more: Partial<ConstructorParameters<typeof InvokeCommand>[0]> = {},
) {
  return client.send(new InvokeCommand({ FunctionName: name, Payload: JSON.stringify(event), ...more }));
}

function decode(output: InvokeCommandOutput): unknown {
  return JSON.parse(output.Payload?.transformToString() ?? 'null');
}

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'local-lambda-')));
  dropped = [];
  watchers = [];
  lines = [];
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(root, { recursive: true, force: true });
});

/** Says that it has started, then waits for the file `gate` to appear. */
const GATED = `
  const { existsSync } = require('node:fs');
  exports.handler = async (event) => {
    console.log('started ' + event.id);
    while (!existsSync(event.gate)) await new Promise((resolve) => setTimeout(resolve, 5));
    return process.pid;
  };`;

describe('a synchronous invocation', () => {
  it('returns what the handler returns, with the context of AWS', async () => {
    const fn = fixture(
      'echo',
      `
      exports.handler = async (event, context) => ({
        event, name: context.functionName, memory: context.memoryLimitInMB, arn: context.invokedFunctionArn,
        hasId: /^[0-9a-f-]{36}$/.test(context.awsRequestId), group: context.logGroupName,
        hasTime: context.getRemainingTimeInMillis() > 0 && context.getRemainingTimeInMillis() <= 20000,
      });`,
    );
    await start([fn]);
    const output = await invoke('echo', { a: [1, 'ü'] });
    expect(output.StatusCode).toBe(200);
    expect(output.FunctionError).toBeUndefined();
    expect(decode(output)).toEqual({
      event: { a: [1, 'ü'] },
      name: 'echo',
      memory: '256',
      arn: 'arn:aws:lambda:eu-central-1:000000000000:function:echo',
      hasId: true,
      hasTime: true,
      group: '/aws/lambda/echo',
    });
  });

  it('gives the function its own variables and the reserved ones, and nothing of the caller', async () => {
    process.env['LEAKED_FROM_CALLER'] = 'yes';
    const fn = fixture('env', 'exports.handler = async () => process.env;', {
      environment: { MINE: '1', AWS_REGION: 'not-mine' },
    });
    await start([fn]);
    const variables = decode(await invoke('env'));
    delete process.env['LEAKED_FROM_CALLER'];
    expect(variables).toMatchObject({
      MINE: '1',
      STACK_ENDPOINT: 'http://stack',
      AWS_REGION: REGION,
      AWS_LAMBDA_FUNCTION_NAME: 'env',
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '256',
      AWS_ACCESS_KEY_ID: 'AKIDLOCAL',
      AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x',
      TZ: ':UTC',
      _HANDLER: 'index.handler',
      LAMBDA_TASK_ROOT: fn.codeDir,
    });
    expect(variables).not.toHaveProperty('LEAKED_FROM_CALLER');
  });

  it('reuses a warm environment, and starts another only for a second call at once', async () => {
    await start([fixture('gated', GATED)]);
    const gate = join(root, 'gate');
    const both = [invoke('gated', { id: 'a', gate }), invoke('gated', { id: 'b', gate })];
    await logged('started', 2);
    writeFileSync(gate, '');
    const pids = (await Promise.all(both)).map(decode);
    expect(new Set(pids).size).toBe(2);
    for (let call = 0; call < 5; call++) expect(pids).toContain(decode(await invoke('gated', { gate })));
    expect(server?.environments().map(({ state }) => state)).toEqual(['idle', 'idle']);
  });

  it('loads ES modules and handlers in folders', async () => {
    const esm = fixture(
      'esm',
      'export const handler = async () => import.meta.filename.endsWith("index.mjs");',
      {
        file: 'index.mjs',
      },
    );
    const nested = fixture('nested', '', { handler: 'deep/code.api.run' });
    mkdirSync(join(nested.codeDir, 'deep'));
    writeFileSync(
      join(nested.codeDir, 'deep', 'code.cjs'),
      'module.exports = { api: { run: () => "plain value" } };',
    );
    await start([esm, nested]);
    expect(decode(await invoke('esm'))).toBe(true);
    expect(decode(await invoke('nested'))).toBe('plain value');
  });

  it('passes nothing as an empty object, and returns null for undefined', async () => {
    await start([
      fixture('void', 'exports.handler = async (event) => { if (Object.keys(event).length) throw 1; };'),
    ]);
    const output = await client.send(new InvokeCommand({ FunctionName: 'void' }));
    expect(output.Payload?.transformToString()).toBe('null');
  });

  it('is found by name, by ARN, and by known qualifiers only', async () => {
    await start([
      fixture('named', 'exports.handler = async (e, c) => c.invokedFunctionArn;', { qualifiers: ['live'] }),
    ]);
    const arn = 'arn:aws:lambda:eu-central-1:000000000000:function:named';
    expect(decode(await invoke(arn))).toBe(arn);
    expect(decode(await invoke('named:live'))).toBe(`${arn}:live`);
    expect(decode(await invoke('named', {}, { Qualifier: '$LATEST' }))).toBe(`${arn}:$LATEST`);
    await expect(invoke('named:old')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    await expect(invoke('other')).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
      message: 'Function not found: arn:aws:lambda:eu-central-1:000000000000:function:other',
      $metadata: { httpStatusCode: 404 },
    });
  });

  it('tells the zone of its environment', async () => {
    const source = `exports.handler = async (event) => {
      const url = 'http://' + process.env.AWS_LAMBDA_METADATA_API + '/2026-01-15/metadata/execution-environment';
      const token = event.token ?? process.env.AWS_LAMBDA_METADATA_TOKEN;
      const answer = await fetch(url, { headers: { Authorization: 'Bearer ' + token } });
      return { status: answer.status, body: await answer.json() };
    };`;
    await start([fixture('zone', source)], { zoneOf: (index) => `euc1-az${String(index + 2)}` });
    expect(decode(await invoke('zone'))).toEqual({ status: 200, body: { AvailabilityZoneID: 'euc1-az2' } });
    expect(decode(await invoke('zone', { token: 'wrong' }))).toMatchObject({ status: 401 });
  });

  it('returns the log on demand, and keeps it in a file', async () => {
    await start([
      fixture(
        'chatty',
        'exports.handler = async () => { console.log("one"); process.stdout.write("two\\n"); };',
      ),
    ]);
    const output = await invoke('chatty', {}, { LogType: 'Tail' });
    const tail = Buffer.from(output.LogResult ?? '', 'base64')
      .toString('utf8')
      .split('\n');
    expect(tail[0]).toMatch(/^START RequestId: [0-9a-f-]{36} Version: \$LATEST$/);
    expect(tail[1]).toMatch(/Z\t[0-9a-f-]{36}\tINFO\tone$/);
    expect(tail[2]).toBe('two');
    expect(tail[3]).toMatch(/^END RequestId: /);
    expect(tail[4]).toMatch(
      /^REPORT RequestId: \S+\tDuration: [\d.]+ ms\tBilled Duration: \d+ ms\tMemory Size: 256 MB.*\tInit Duration: [\d.]+ ms$/,
    );
    const again = await invoke('chatty', {}, { LogType: 'Tail' });
    expect(Buffer.from(again.LogResult ?? '', 'base64').toString('utf8')).not.toContain('Init Duration');
    await server?.close();
    const [file = ''] = readdirSync(join(root, 'logs', 'chatty'));
    expect(readFileSync(join(root, 'logs', 'chatty', file), 'utf8').match(/^END /gm)).toHaveLength(2);
  });
});

describe('a failing function', () => {
  it('gives the error that it throws, by its name', async () => {
    await start([
      fixture(
        'bad',
        `
      class TooHot extends Error { name = 'TooHot'; }
      exports.handler = async (e) => { throw e.text ? 'just text' : new TooHot('41 degrees'); };`,
      ),
    ]);
    const output = await invoke('bad');
    expect(output).toMatchObject({ StatusCode: 200, FunctionError: 'Unhandled' });
    expect(decode(output)).toMatchObject({
      errorType: 'TooHot',
      errorMessage: '41 degrees',
      trace: expect.arrayContaining(['TooHot: 41 degrees']),
    });
    expect(decode(await invoke('bad', { text: true }))).toMatchObject({
      errorType: 'string',
      errorMessage: 'just text',
    });
  });

  it.each([
    ['a missing module', 'Runtime.ImportModuleError', { handler: 'absent.handler' }, ''],
    ['a missing dependency', 'Runtime.ImportModuleError', {}, 'require("no-such-package");'],
    ['a missing export', 'Runtime.HandlerNotFound', {}, 'exports.other = 1;'],
    ['a syntax error', 'Runtime.UserCodeSyntaxError', {}, 'const = ;'],
    [
      'a handler that wants a callback',
      'Runtime.CallbackHandlerDeprecated',
      {},
      'exports.handler = (a, b, c) => c();',
    ],
    ['a throw while loading', 'RangeError', {}, 'throw new RangeError("no");'],
  ])('reports %s as %s', async (_what, errorType, settings, source) => {
    await start([fixture('broken', source, settings)]);
    const output = await invoke('broken');
    expect(output.FunctionError).toBe('Unhandled');
    expect(decode(output)).toMatchObject({ errorType });
  });

  it('is killed at its timeout, and replaced', async () => {
    await start([
      fixture(
        'slow',
        'exports.handler = (e) => e.hang ? new Promise((r) => setTimeout(r, 60000)) : process.pid;',
        {
          timeoutMs: 250,
        },
      ),
    ]);
    const before = decode(await invoke('slow'));
    expect(decode(await invoke('slow', { hang: true }))).toEqual({
      errorType: 'Sandbox.Timedout',
      errorMessage: expect.stringMatching(/^RequestId: \S+ Error: Task timed out after 0\.25 seconds$/),
    });
    expect(decode(await invoke('slow'))).not.toBe(before);
  });

  it('gives an exit error when its process is killed, and the next call a new process', async () => {
    await start([fixture('gated', GATED)]);
    const gate = join(root, 'gate');
    const call = invoke('gated', { id: 'a', gate });
    await logged('started');
    const victim = server?.environments()[0];
    expect(victim?.state).toBe('busy');
    process.kill(victim?.pid ?? 0, 'SIGKILL');
    expect(decode(await call)).toEqual({
      errorType: 'Runtime.ExitError',
      errorMessage: expect.stringMatching(
        /^RequestId: \S+ Error: Runtime exited with error: signal: killed$/,
      ),
    });
    writeFileSync(gate, '');
    expect(decode(await invoke('gated', { gate }))).not.toBe(victim?.pid);
  });

  it('loses no call to an idle environment that was killed', async () => {
    await start([fixture('pid', 'exports.handler = async () => process.pid;')]);
    const first = Number(decode(await invoke('pid')));
    process.kill(first, 'SIGKILL');
    const second = await invoke('pid');
    expect(second.FunctionError).toBeUndefined();
    expect(decode(second)).not.toBe(first);
  });

  it.each([
    ['process.exit(3)', 'Runtime.ExitError', /exited with error: exit status 3$/],
    ['process.exit(0)', 'Runtime.ExitError', /exited without providing a reason$/],
    ['setTimeout(() => { throw new TypeError("late"); })', 'TypeError', /^late$/],
    ['Promise.reject(new Error("lost"))', 'Runtime.UnhandledPromiseRejection', /lost/],
  ])('reports %s', async (statement, errorType, message) => {
    await start([
      fixture(
        'exits',
        `exports.handler = () => { ${statement}; return new Promise(() => setTimeout(() => {}, 60000)); };`,
      ),
    ]);
    expect(decode(await invoke('exits'))).toMatchObject({
      errorType,
      errorMessage: expect.stringMatching(message),
    });
  });

  it('runs out of memory by itself', async () => {
    await start([
      fixture(
        'greedy',
        'exports.handler = async () => { const all = []; for (;;) all.push(new Array(1e5).fill(1.5)); };',
        {
          memoryMb: 128,
        },
      ),
    ]);
    expect(decode(await invoke('greedy'))).toMatchObject({ errorType: 'Runtime.OutOfMemory' });
  });

  it('may not answer with more than 6 MB', async () => {
    await start([fixture('large', 'exports.handler = async (e) => "x".repeat(e.size);')]);
    expect(String(decode(await invoke('large', { size: 6_000_000 })))).toHaveLength(6_000_000);
    expect(decode(await invoke('large', { size: 6_400_000 }))).toMatchObject({
      errorType: 'Function.ResponseSizeTooLarge',
    });
    expect(decode(await invoke('large', { size: 1 }))).toBe('x');
  });
});

describe('an asynchronous invocation', () => {
  it('is accepted with an empty answer, and runs', async () => {
    await start([fixture('later', 'exports.handler = async (e) => console.log("ran " + e.id);')]);
    const output = await invoke('later', { id: 7 }, { InvocationType: 'Event' });
    expect(output.StatusCode).toBe(202);
    expect(output.Payload?.length ?? 0).toBe(0);
    await logged('ran 7');
  });

  it('is tried again as often as the function says, then dropped', async () => {
    await start([
      fixture('fails', 'exports.handler = async () => { throw new Error("no"); };', { asyncRetries: 2 }),
    ]);
    await invoke('fails', {}, { InvocationType: 'Event' });
    await until(() => dropped.length > 0);
    expect(lines.filter(({ line }) => line.startsWith('START '))).toHaveLength(3);
    expect(dropped).toMatchObject([{ functionName: 'fails', reason: 'retries-exhausted' }]);
  });

  it('waits while its function is full, and runs as room appears', async () => {
    await start([fixture('gated', GATED, { reservedConcurrency: 1 })]);
    const gate = join(root, 'gate');
    for (const id of ['a', 'b', 'c']) await invoke('gated', { id, gate }, { InvocationType: 'Event' });
    await logged('started a');
    expect(server?.environments()).toHaveLength(1);
    writeFileSync(gate, '');
    await logged('started c');
    await logged('END ', 3);
    expect(server?.environments()).toHaveLength(1);
  });

  it('is dropped when it waited longer than its age allows', async () => {
    await start([fixture('gated', GATED, { reservedConcurrency: 1, maxEventAgeMs: -1 })]);
    await invoke('gated', {}, { InvocationType: 'Event' });
    await until(() => dropped.length > 0);
    expect(dropped).toMatchObject([{ reason: 'too-old' }]);
  });

  it('is refused when the queue is full', async () => {
    await start([fixture('gated', GATED)], { maxQueuedEvents: 2 });
    const event = { id: 'a', gate: join(root, 'gate') };
    await invoke('gated', event, { InvocationType: 'Event' });
    await invoke('gated', event, { InvocationType: 'Event' });
    await expect(invoke('gated', event, { InvocationType: 'Event' })).rejects.toMatchObject({
      name: 'TooManyRequestsException',
    });
  });
});

describe('what the service refuses', () => {
  it('more calls at once than were reserved', async () => {
    await start([
      fixture('gated', GATED, { reservedConcurrency: 1 }),
      fixture('free', 'exports.handler = () => 1;'),
    ]);
    const gate = join(root, 'gate');
    const first = invoke('gated', { id: 'a', gate });
    await logged('started');
    await expect(invoke('gated', { gate })).rejects.toMatchObject({
      name: 'TooManyRequestsException',
      Reason: 'ReservedFunctionConcurrentInvocationLimitExceeded',
      $metadata: { httpStatusCode: 429 },
    });
    expect(decode(await invoke('free'))).toBe(1);
    writeFileSync(gate, '');
    await first;
  });

  it('more calls at once than the account allows', async () => {
    await start([fixture('gated', GATED), fixture('other', 'exports.handler = () => 1;')], {
      maxConcurrency: 1,
    });
    const gate = join(root, 'gate');
    const first = invoke('gated', { id: 'a', gate });
    await logged('started');
    await expect(invoke('other')).rejects.toMatchObject({ Reason: 'ConcurrentInvocationLimitExceeded' });
    writeFileSync(gate, '');
    await first;
    // The idle environment gives way to the other function's.
    expect(decode(await invoke('other'))).toBe(1);
    expect(server?.environments().filter(({ state }) => state !== 'stopping')).toHaveLength(1);
  });

  it('payloads over 6 MB, or 1 MB if asynchronous, and those that are not JSON', async () => {
    await start([fixture('size', 'exports.handler = async (e) => e.length;')]);
    const sized = (bytes: number) => 'x'.repeat(bytes - 2);
    expect(decode(await invoke('size', sized(6_291_456)))).toBe(6_291_454);
    await expect(invoke('size', sized(6_291_457))).rejects.toMatchObject({
      name: 'RequestTooLargeException',
      $metadata: { httpStatusCode: 413 },
    });
    expect((await invoke('size', sized(1_048_576), { InvocationType: 'Event' })).StatusCode).toBe(202);
    await expect(invoke('size', sized(1_048_577), { InvocationType: 'Event' })).rejects.toMatchObject({
      name: 'RequestTooLargeException',
    });
    await expect(invoke('size', {}, { Payload: '{' })).rejects.toMatchObject({
      name: 'InvalidRequestContentException',
    });
  });

  it('a wrong signature', async () => {
    await start([fixture('one', 'exports.handler = () => 1;')]);
    const credentials = { ...CREDENTIALS, secretAccessKey: 'wrong' };
    client = new LambdaClient({
      endpoint: server?.endpoint ?? '',
      region: REGION,
      credentials,
      maxAttempts: 1,
    });
    await expect(invoke('one')).rejects.toMatchObject({
      name: 'InvalidSignatureException',
      $metadata: { httpStatusCode: 403 },
    });
  });

  it('what the fault hook wants refused', async () => {
    await start([fixture('one', 'exports.handler = () => 1;')], {
      onRequest: ({ resource }) =>
        resource === 'one' ? { error: { status: 500, code: 'ServiceException' } } : undefined,
    });
    await expect(invoke('one')).rejects.toMatchObject({
      name: 'ServiceException',
      $metadata: { httpStatusCode: 500 },
    });
  });

  it('nothing on a dry run, which runs nothing', async () => {
    await start([fixture('one', 'exports.handler = () => 1;')]);
    expect((await invoke('one', {}, { InvocationType: 'DryRun' })).StatusCode).toBe(204);
    expect(server?.environments()).toEqual([]);
  });
});

describe('a call without the network', () => {
  it('answers as the wire does', async () => {
    await start([
      fixture(
        'sum',
        'exports.handler = async (e) => { if (!e.length) throw new Error("empty"); return e[0] + e[1]; };',
      ),
    ]);
    const done = await server?.invoke('sum', '[2, 3]');
    expect(done).toMatchObject({ kind: 'done' });
    expect(done?.kind === 'done' ? done.payload.toString() : '').toBe('5');
    expect(await server?.invoke('sum', '[]')).toMatchObject({ kind: 'function-error' });
    expect(await server?.invoke('absent', '[]')).toMatchObject({
      kind: 'refused',
      refusal: { code: 'ResourceNotFoundException' },
    });
  });
});

describe('the end', () => {
  it('ends every process, also what a handler started', async () => {
    await start([
      fixture(
        'parent',
        `
      const { spawn } = require('node:child_process');
      exports.handler = async () => spawn('sleep', ['600'], { stdio: 'ignore' }).pid;`,
      ),
    ]);
    const grandchild = Number(decode(await invoke('parent')));
    const pid = server?.environments()[0]?.pid ?? 0;
    await server?.close();
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    // A killed orphan may stay a zombie until it is reaped, but it runs no more.
    const status = `/proc/${String(grandchild)}/stat`;
    if (existsSync(status)) expect(readFileSync(status, 'utf8')).toMatch(/\) Z /);
  });
});
