import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { GATED, decode, text, textAmong, useLocalLambda } from './local-lambda-support.ts';

const { fixture, invoke, logged, stack, start } = useLocalLambda();

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
      trace: textAmong('TooHot: 41 degrees'),
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
      errorMessage: text(/^RequestId: \S+ Error: Task timed out after 0\.25 seconds$/),
    });
    expect(decode(await invoke('slow'))).not.toBe(before);
  });

  it('gives an exit error when its process is killed, and the next call a new process', async () => {
    await start([fixture('gated', GATED)]);
    const gate = join(stack.root, 'gate');
    const call = invoke('gated', { id: 'a', gate });
    await logged('started');
    const victim = stack.server?.environments()[0];
    expect(victim?.state).toBe('busy');
    process.kill(victim?.pid ?? 0, 'SIGKILL');
    expect(decode(await call)).toEqual({
      errorType: 'Runtime.ExitError',
      errorMessage: text(/^RequestId: \S+ Error: Runtime exited with error: signal: killed$/),
    });
    writeFileSync(gate, '');
    expect(decode(await invoke('gated', { gate }))).not.toBe(victim?.pid);
  });

  it('replaces an idle environment that was killed', async () => {
    await start([fixture('pid', 'exports.handler = async () => process.pid;')]);
    const first = Number(decode(await invoke('pid')));
    process.kill(first, 'SIGKILL');
    await expect.poll(() => stack.server?.environments()).toEqual([]);
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
      errorMessage: text(message),
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
