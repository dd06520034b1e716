import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { InvokeCommand } from '@aws-sdk/client-lambda';
import { describe, expect, it } from 'vitest';

import { GATED, REGION, decode, useLocalLambda } from './local-lambda-support.ts';

const { fixture, invoke, logged, stack, start } = useLocalLambda();

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
    const gate = join(stack.root, 'gate');
    const both = [invoke('gated', { id: 'a', gate }), invoke('gated', { id: 'b', gate })];
    await logged('started', 2);
    writeFileSync(gate, '');
    const pids = (await Promise.all(both)).map(decode);
    expect(new Set(pids).size).toBe(2);
    for (let call = 0; call < 5; call++) expect(pids).toContain(decode(await invoke('gated', { gate })));
    expect(stack.server?.environments().map(({ state }) => state)).toEqual(['idle', 'idle']);
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
    const output = await stack.client.send(new InvokeCommand({ FunctionName: 'void' }));
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
    await stack.server?.close();
    const [file = ''] = readdirSync(join(stack.root, 'logs', 'chatty'));
    expect(readFileSync(join(stack.root, 'logs', 'chatty', file), 'utf8').match(/^END /gm)).toHaveLength(2);
  });
});

describe('a start that takes longer', () => {
  it('is waited for by whom it was started for, once, and told as its init', async () => {
    const places: string[] = [];
    await start([fixture('late', `exports.handler = async () => 'here';`)], {
      onStart: ({ name, place }) => {
        places.push(`${name} ${place}`);
        return 300;
      },
    });
    expect(decode(await invoke('late'))).toBe('here');
    expect(decode(await invoke('late'))).toBe('here');
    const environments = stack.server?.environments().map(({ environmentId }) => `late ${environmentId}`);
    expect(places).toEqual(environments);
    const reports = stack.lines.flatMap(
      ({ line }) => /^REPORT .*Init Duration: ([\d.]+) ms/.exec(line)?.[1] ?? [],
    );
    expect(reports).toHaveLength(1);
    expect(Number(reports[0])).toBeGreaterThanOrEqual(299);
  });

  it('does not keep the server from its end', async () => {
    await start([fixture('late', `exports.handler = async () => 'here';`)], { onStart: () => 1_000_000 });
    await invoke('late', {}, { InvocationType: 'Event' });
    expect(stack.server?.environments()).toMatchObject([{ state: 'starting', pid: undefined }]);
    await stack.server?.close();
    expect(stack.server?.environments()).toEqual([]);
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
    const done = await stack.server?.invoke('sum', '[2, 3]');
    expect(done).toMatchObject({ kind: 'done' });
    expect(done?.kind === 'done' ? done.payload.toString() : '').toBe('5');
    expect(await stack.server?.invoke('sum', '[]')).toMatchObject({ kind: 'function-error' });
    expect(await stack.server?.invoke('absent', '[]')).toMatchObject({
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
    const pid = stack.server?.environments()[0]?.pid ?? 0;
    await stack.server?.close();
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    // A killed orphan may stay a zombie until it is reaped, but it runs no more.
    const status = `/proc/${String(grandchild)}/stat`;
    if (existsSync(status)) expect(readFileSync(status, 'utf8')).toMatch(/\) Z /);
  });

  it('deletes what a handler left in its private folder, also if it was killed', async () => {
    const source = `
      const { tmpdir } = require('node:os');
      const { join } = require('node:path');
      exports.handler = async (event) => {
        require('node:fs').writeFileSync(join(tmpdir(), 'left'), 'x');
        if (event.die) process.kill(process.pid, 'SIGKILL');
        return tmpdir();
      };`;
    const scratchDir = join(stack.root, 'scratch');
    await start([fixture('messy', source)], { scratchDir });
    const own = String(decode(await invoke('messy')));
    expect(readdirSync(own)).toEqual(['left']);
    expect(own.startsWith(scratchDir)).toBe(true);
    await invoke('messy', { die: true });
    await stack.server?.close();
    expect(readdirSync(scratchDir)).toEqual([]);
  });
});
