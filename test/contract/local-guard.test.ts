import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApiServer } from '../../src/local/api/server.ts';
import { startDynamoDb } from '../../src/local/dynamodb/process.ts';
import { startEcsServer } from '../../src/local/ecs/server.ts';
import { startLambdaServer } from '../../src/local/lambda/server.ts';
import { startRuntimeApi } from '../../src/local/lambda/runtime-api.ts';
import { startLogsServer } from '../../src/local/logs/server.ts';
import { startS3Server } from '../../src/local/s3/server.ts';
import { startStepFunctionsServer } from '../../src/local/sfn/server.ts';

const credentials = { accessKeyId: 'AKIAOWNER', secretAccessKey: 'secret-of-the-owner' };
const region = 'us-east-1';

/** A request by hand, with nothing added; the status and the lower-case head of the answer. */
function raw(port: number, lines: readonly string[], body = ''): Promise<{ status: number; head: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      text += chunk;
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) return;
      socket.destroy();
      resolve({ status: Number(text.split(' ')[1]), head: text.slice(0, end).toLowerCase() });
    });
    socket.once('error', reject);
    socket.once('close', () => {
      reject(new Error('closed without an answer'));
    });
    socket.write(
      `${[...lines, `content-length: ${String(Buffer.byteLength(body))}`].join('\r\n')}\r\n\r\n${body}`,
    );
  });
}

interface Target {
  /** Signing name. */
  readonly service: string;
  readonly port: number;
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A request of one of the services that is answered with success when it is signed. */
type Draft = Omit<Target, 'port'>;

const json = (service: string, target: string, body: object): Draft => ({
  service,
  method: 'POST',
  path: '/',
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': target },
});

const drafts: Readonly<Record<string, Draft>> = {
  s3: { service: 's3', method: 'GET', path: '/', body: '', headers: {} },
  dynamodb: json('dynamodb', 'DynamoDB_20120810.ListTables', {}),
  lambda: {
    service: 'lambda',
    method: 'POST',
    path: '/2015-03-31/functions/echo/invocations',
    body: '{}',
    headers: { 'content-type': 'application/json', 'x-amz-invocation-type': 'DryRun' },
  },
  ecs: json('ecs', 'AmazonEC2ContainerServiceV20141113.ListTasks', { cluster: 'c' }),
  states: json('states', 'AWSStepFunctions.ListExecutions', { stateMachineArn: 'x' }),
  logs: json('logs', 'Logs_20140328.FilterLogEvents', { logGroupName: 'group' }),
  'execute-api': {
    service: 'execute-api',
    method: 'POST',
    path: '/prod/jobs',
    body: '{"name":"n"}',
    headers: { 'content-type': 'application/json' },
  },
};
const names = Object.keys(drafts);

const targets = new Map<string, Target>();
const closers: (() => Promise<unknown>)[] = [];
let submitted = 0;

const portOf = (endpoint: string): number => Number(new URL(endpoint).port);

function targetOf(name: string): Target {
  const target = targets.get(name);
  if (target === undefined) throw new Error(`no target ${name}`);
  return target;
}

beforeAll(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'outrider-guard-'));
  closers.push(() => rm(dir, { recursive: true, force: true }));
  const shared = { credentials, region, nodePath: process.execPath, extraEnvironment: {} };
  const servers: Record<string, { readonly endpoint: string; close(): Promise<void> }> = {
    s3: await startS3Server({ ...shared, rootDir: join(dir, 's3') }),
    dynamodb: await startDynamoDb({ ...shared, dir: join(dir, 'dynamodb') }),
    lambda: await startLambdaServer({
      ...shared,
      functions: [
        {
          name: 'echo',
          codeDir: dir,
          handler: 'index.handler',
          timeoutMs: 1000,
          memoryMb: 128,
          environment: {},
          asyncRetries: 0,
          maxEventAgeMs: 60_000,
        },
      ],
      maxConcurrency: 1,
      logDir: join(dir, 'logs'),
    }),
    ecs: await startEcsServer({
      ...shared,
      clusters: ['c'],
      taskDefinitions: [],
      maxTasks: 1,
      logDir: join(dir, 'logs'),
    }),
    states: await startStepFunctionsServer({
      ...shared,
      stateMachines: [],
      invokeLambda: () => Promise.resolve({}),
    }),
    logs: await startLogsServer({ ...shared, logGroups: [{ name: 'group', directories: [] }] }),
    'execute-api': await startApiServer({
      ...shared,
      stageName: 'prod',
      routes: [{ method: 'POST', path: '/jobs', functionName: 'submit', authorization: 'AWS_IAM' }],
      invoke: () => {
        submitted++;
        return Promise.resolve({ statusCode: 200, body: '{}' });
      },
    }),
  };
  for (const [name, server] of Object.entries(servers)) {
    closers.push(() => server.close());
    const draft = drafts[name];
    if (draft !== undefined) targets.set(name, { ...draft, port: portOf(server.endpoint) });
  }
});

afterAll(async () => {
  for (const close of closers.toReversed()) await close();
});

interface Signing {
  readonly secretAccessKey?: string;
  readonly accessKeyId?: string;
  readonly host?: string;
  readonly at?: Date;
  readonly extra?: readonly string[];
  readonly presigned?: boolean;
  readonly unsignedPayload?: boolean;
}

/** The target's request, signed, then with `extra` lines in its head. */
async function send(target: Target, signing: Signing = {}): Promise<{ status: number; head: string }> {
  const host = signing.host ?? `127.0.0.1:${String(target.port)}`;
  const signer = new SignatureV4({
    service: target.service,
    region,
    credentials: {
      accessKeyId: signing.accessKeyId ?? credentials.accessKeyId,
      secretAccessKey: signing.secretAccessKey ?? credentials.secretAccessKey,
    },
    sha256: Sha256,
    uriEscapePath: target.service !== 's3',
  });
  const request = {
    method: target.method,
    protocol: 'http:',
    hostname: '127.0.0.1',
    path: target.path,
    query: {},
    headers: {
      ...target.headers,
      host,
      ...(signing.unsignedPayload === true ? { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } : {}),
    },
    body: target.body,
  };
  const options = { signingDate: signing.at ?? new Date() };
  const signed =
    signing.presigned === true
      ? await signer.presign(request, { ...options, expiresIn: 300 })
      : await signer.sign(request, options);
  const query = new URLSearchParams(
    Object.entries(signed.query ?? {}).map(([key, value]): [string, string] => [key, String(value)]),
  );
  const path = query.size === 0 ? target.path : `${target.path}?${query.toString()}`;
  const headers = Object.entries({ ...target.headers, ...signed.headers }).map(([k, v]) => `${k}: ${v}`);
  const lines = [`${target.method} ${path} HTTP/1.1`, ...headers, ...(signing.extra ?? [])];
  return raw(target.port, lines, target.body);
}

/** The same request with no signature and other lines in its head. */
const plain = (target: Target, ...lines: readonly string[]): Promise<{ status: number; head: string }> => {
  const headers = Object.entries(target.headers).map(([name, value]) => `${name}: ${value}`);
  return raw(target.port, [`${target.method} ${target.path} HTTP/1.1`, ...headers, ...lines], target.body);
};

describe.each(names)('%s', (name) => {
  const own = (): string => `host: 127.0.0.1:${String(targetOf(name).port)}`;

  it('serves who signs', async () => {
    // What the request asks for is not there in two of them: they say so, and not that it was refused.
    const expected = name === 'states' ? 400 : name === 'lambda' ? 204 : 200;
    const { status, head } = await send(targetOf(name));
    expect([name, status]).toEqual([name, expected]);
    expect(head).not.toContain('access-control');
  });

  it.each([
    ['a wrong secret', { secretAccessKey: 'outrider-local-secret' }],
    ['keys that every stack once had', { accessKeyId: 'outrider', secretAccessKey: 'outrider-local-secret' }],
    ['a signature of sixteen minutes ago', { at: new Date(Date.now() - 16 * 60_000) }],
    ['a signature of sixteen minutes hence', { at: new Date(Date.now() + 16 * 60_000) }],
  ])('refuses %s', async (_what, signing) => {
    expect((await send(targetOf(name), signing)).status).toBeOneOf([400, 403]);
  });

  it('takes a signature for as long as AWS does, and no longer', async () => {
    const minutes = name === 's3' ? 15 : 5;
    const agoMs = (margin: number): Date => new Date(Date.now() - minutes * 60_000 + margin);
    const served = (await send(targetOf(name))).status;
    expect((await send(targetOf(name), { at: agoMs(30_000) })).status).toBe(served);
    expect((await send(targetOf(name), { at: agoMs(-2_000) })).status).toBeOneOf([400, 403]);
  });

  it('refuses a request without a signature, and one with a forged one', async () => {
    const target = targetOf(name);
    const day = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
    const scope = `${credentials.accessKeyId}/${day.slice(0, 8)}/${region}/${target.service}/aws4_request`;
    const forged = `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host;x-amz-date, Signature=`;
    expect((await plain(target, own())).status).toBeOneOf([400, 403]);
    for (const signature of ['0', '0'.repeat(64), '', 'zz'.repeat(32)]) {
      const lines = [own(), `x-amz-date: ${day}`, `authorization: ${forged}${signature}`];
      expect((await plain(target, ...lines)).status).toBeOneOf([400, 403]);
    }
  });

  it.each(['http://evil.example', 'http://localhost:3000', 'null', 'file://', 'https://127.0.0.1'])(
    'refuses the origin %s, though the request is signed',
    async (origin) => {
      const { status, head } = await send(targetOf(name), { extra: [`origin: ${origin}`] });
      expect(status).toBe(403);
      expect(head).not.toContain('access-control');
    },
  );

  it('refuses what a page embeds', async () => {
    const extra = ['sec-fetch-site: cross-site', 'sec-fetch-mode: no-cors'];
    expect((await send(targetOf(name), { extra })).status).toBe(403);
  });

  it.each([
    'evil.example',
    'evil.example:80',
    '127.0.0.1',
    '127.0.0.1:1',
    'localhost.evil.example:80',
    '0.0.0.0:80',
  ])('refuses the host %s, though the request is signed for it', async (host) => {
    expect((await send(targetOf(name), { host })).status).toBe(403);
  });

  it('answers to localhost with its port', async () => {
    const target = targetOf(name);
    const { status } = await send(target, { host: `localhost:${String(target.port)}` });
    expect(status).toBe((await send(target)).status);
  });

  it('grants no preflight anything', async () => {
    const target = targetOf(name);
    const preflight = ['origin: http://evil.example', 'access-control-request-method: POST'];
    for (const lines of [[own()], [own(), ...preflight]]) {
      const { status, head } = await raw(target.port, [`OPTIONS ${target.path} HTTP/1.1`, ...lines]);
      expect(status).toBe(403);
      expect(head).not.toContain('access-control');
    }
  });

  it.each(['authorization: AWS4-HMAC-SHA256 x', 'host: evil.example', 'x-amz-date: 20200101T000000Z'])(
    'refuses a second header %s',
    async (line) => {
      expect((await send(targetOf(name), { extra: [line] })).status).toBe(400);
    },
  );

  it('sees an origin and a second host behind thousands of other headers', async () => {
    const many = Array.from({ length: 2_100 }, () => 'a:');
    expect((await send(targetOf(name), { extra: many })).status).not.toBeOneOf([403, 431]);
    expect((await send(targetOf(name), { extra: [...many, 'origin: http://evil.example'] })).status).toBe(
      403,
    );
    expect((await send(targetOf(name), { extra: [...many, 'host: evil.example'] })).status).toBe(400);
  });

  it.runIf(name !== 's3')('takes no signature in the query', async () => {
    expect((await send(targetOf(name), { presigned: true })).status).toBeOneOf([400, 403]);
  });

  it.runIf(name !== 's3')('takes no body that is not signed', async () => {
    expect((await send(targetOf(name), { unsignedPayload: true })).status).toBeOneOf([400, 403]);
  });
});

describe('the REST API', () => {
  it('takes no form of a web page, and starts nothing by it', async () => {
    const before = submitted;
    const target = targetOf('execute-api');
    const form = { ...target, headers: { 'content-type': 'text/plain' }, body: '{"name":"n","x":"="}' };
    const host = `host: 127.0.0.1:${String(target.port)}`;
    const outcomes = [
      await plain(form, host, 'origin: http://evil.example'),
      await plain(form, host),
      await send(form, { presigned: true }),
      await send(form, { presigned: true, extra: ['origin: http://evil.example'] }),
      await send(form),
    ];
    expect(outcomes.map(({ status }) => status)).toEqual([403, 403, 403, 403, 415]);
    expect(submitted).toBe(before);
  });
});

describe('the Runtime API of an environment', () => {
  it('answers nobody but the environment', async () => {
    const calls: string[] = [];
    const api = await startRuntimeApi({
      zoneId: 'use1-az1',
      metadataToken: 'token-1',
      onNext: () => calls.push('next'),
      onLost: () => calls.push('lost'),
      onResponse: () => calls.push('response') > 0,
      onError: () => calls.push('error') > 0,
      onInitError: () => calls.push('init'),
    });
    closers.push(() => api.close());
    const host = `host: 127.0.0.1:${String(api.port)}`;
    const call = async (line: string, ...more: readonly string[]): Promise<number> =>
      (await raw(api.port, [`${line} HTTP/1.1`, host, ...more])).status;
    for (const line of [
      'GET /2018-06-01/runtime/invocation/next',
      'GET /2026-01-15/metadata/execution-environment',
      'POST /2018-06-01/runtime/invocation/x/response',
      'POST /2018-06-01/runtime/invocation/x/error',
      'POST /2018-06-01/runtime/init/error',
    ]) {
      expect([line, await call(line)]).toEqual([line, 401]);
      expect([line, await call(line, 'authorization: Bearer token-2')]).toEqual([line, 401]);
      const fromPage = ['authorization: Bearer token-1', 'origin: http://evil.example'];
      expect([line, await call(line, ...fromPage)]).toEqual([line, 403]);
    }
    expect(calls).toEqual([]);
    const own = 'authorization: Bearer token-1';
    expect(await call('GET /2026-01-15/metadata/execution-environment', own)).toBe(200);
  });
});
