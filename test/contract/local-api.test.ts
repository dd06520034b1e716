import { request as httpRequest } from 'node:http';
import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import type { APIGatewayProxyEvent } from 'aws-lambda';
import { afterEach, describe, expect, it } from 'vitest';
import { startApiServer } from '../../src/local/api/server.ts';
import type { ApiOptions, ApiRoute, ApiServer } from '../../src/local/api/server.ts';

const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'secret' };
const REGION = 'us-east-1';
const JOB_MODEL = {
  $schema: 'http://json-schema.org/draft-04/schema#',
  type: 'object',
  required: ['name'],
  properties: { name: { type: 'string', minLength: 1 }, tasks: { type: 'integer', minimum: 1 } },
};
const ROUTES: readonly ApiRoute[] = [
  {
    method: 'POST',
    path: '/jobs',
    functionName: 'submit',
    authorization: 'AWS_IAM',
    requestModel: JOB_MODEL,
  },
  { method: 'GET', path: '/jobs', functionName: 'list', authorization: 'AWS_IAM' },
  { method: 'GET', path: '/jobs/{id}', functionName: 'get', authorization: 'AWS_IAM' },
  { method: 'GET', path: '/jobs/latest', functionName: 'latest', authorization: 'AWS_IAM' },
  { method: 'POST', path: '/jobs/{id}/cancel', functionName: 'cancel', authorization: 'AWS_IAM' },
  { method: 'ANY', path: '/files/{path+}', functionName: 'files', authorization: 'NONE' },
  { method: 'GET', path: '/health', functionName: 'health', authorization: 'NONE' },
];

const servers: ApiServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

const echo: ApiOptions['invoke'] = (functionName, event) =>
  Promise.resolve({ statusCode: 200, body: JSON.stringify({ functionName, event }) });

async function serve(invoke: ApiOptions['invoke'] = echo, more: Partial<ApiOptions> = {}): Promise<string> {
  const server = await startApiServer({
    credentials: CREDENTIALS,
    region: REGION,
    stageName: 'prod',
    routes: ROUTES,
    invoke,
    ...more,
  });
  servers.push(server);
  return server.endpoint;
}

interface Call {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
  readonly credentials?: typeof CREDENTIALS;
}

/** A fetch signed by AWS's own signer. */
async function signed(url: string, call: Call = {}): Promise<Response> {
  const { hostname, port, pathname, searchParams } = new URL(url);
  const signer = new SignatureV4({
    service: 'execute-api',
    region: REGION,
    credentials: call.credentials ?? CREDENTIALS,
    sha256: Sha256,
  });
  const query: Record<string, string[]> = {};
  for (const name of searchParams.keys()) query[name] = searchParams.getAll(name);
  const method = call.method ?? 'GET';
  const { headers } = await signer.sign({
    method,
    protocol: 'http:',
    hostname,
    port: Number(port),
    path: pathname,
    query,
    headers: { host: `${hostname}:${port}`, 'content-type': 'application/json', ...call.headers },
    ...(call.body === undefined ? {} : { body: call.body }),
  });
  return fetch(url, { method, headers, ...(call.body === undefined ? {} : { body: call.body }) });
}

async function echoed(response: Response): Promise<{ functionName: string; event: APIGatewayProxyEvent }> {
  return (await response.json()) as { functionName: string; event: APIGatewayProxyEvent };
}

it('begins no job where it is told why not, and answers all else', async () => {
  const calls: string[] = [];
  const endpoint = await serve(
    (functionName, event) => {
      calls.push(functionName);
      return echo(functionName, event);
    },
    { whyNot: () => Promise.resolve('the disk is full') },
  );
  const refused = await signed(`${endpoint}/jobs`, { method: 'POST', body: '{"name":"a"}' });
  expect([refused.status, await refused.json()]).toEqual([
    507,
    { error: 'StoreRefused', message: 'the disk is full' },
  ]);
  expect((await signed(`${endpoint}/jobs/1/cancel`, { method: 'POST' })).status).toBe(200);
  expect((await signed(`${endpoint}/jobs`)).status).toBe(200);
  expect(calls).toEqual(['cancel', 'list']);
});

describe('a proxy event', () => {
  it('tells the request as a REST API does', async () => {
    const endpoint = await serve();
    const response = await signed(`${endpoint}/jobs/job%201?state=done&state=failed&q=a%20b`, {
      headers: { 'X-Tag': 'one' },
    });
    const { functionName, event } = await echoed(response);
    expect(functionName).toBe('get');
    expect(event).toMatchObject({
      resource: '/jobs/{id}',
      path: '/jobs/job%201',
      httpMethod: 'GET',
      pathParameters: { id: 'job%201' },
      queryStringParameters: { state: 'failed', q: 'a b' },
      multiValueQueryStringParameters: { state: ['done', 'failed'], q: ['a b'] },
      body: null,
      isBase64Encoded: false,
      stageVariables: null,
    });
    expect(event.headers['X-Tag']).toBe('one');
    expect(event.multiValueHeaders['X-Tag']).toEqual(['one']);
    expect(event.requestContext).toMatchObject({
      stage: 'prod',
      path: '/prod/jobs/job%201',
      resourcePath: '/jobs/{id}',
      httpMethod: 'GET',
      identity: {
        accessKey: 'local',
        userArn: 'arn:aws:iam::000000000000:user/local',
        sourceIp: '127.0.0.1',
      },
    });
    expect(event.requestContext.requestId).toBe(response.headers.get('x-amzn-requestid'));
    expect(event.requestContext.requestTime).toMatch(/^\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000$/);
  });

  it('has null for parameters that are not there, and the body as text', async () => {
    const endpoint = await serve();
    const { event } = await echoed(
      await signed(`${endpoint}/jobs`, { method: 'POST', body: '{"name":"ä"}' }),
    );
    expect(event.pathParameters).toBeNull();
    expect(event.queryStringParameters).toBeNull();
    expect(event.multiValueQueryStringParameters).toBeNull();
    expect(event.body).toBe('{"name":"ä"}');
  });

  it('names nobody on a route without authorization', async () => {
    const endpoint = await serve();
    const { event } = await echoed(await fetch(`${endpoint}/health`));
    expect(event.requestContext.identity.userArn).toBeNull();
  });
});

describe('routing', () => {
  it.each([
    ['GET', '/jobs/latest', 'latest'],
    ['GET', '/jobs/other', 'get'],
    ['GET', '/jobs/', 'list'],
    ['POST', '/jobs/other/cancel', 'cancel'],
  ])('%s %s goes to %s', async (method, path, functionName) => {
    const endpoint = await serve();
    expect((await echoed(await signed(`${endpoint}${path}`, { method }))).functionName).toBe(functionName);
  });

  it('gives a greedy parameter all that is left', async () => {
    const endpoint = await serve();
    const { event } = await echoed(await fetch(`${endpoint}/files/a/b/c`, { method: 'PUT' }));
    expect(event.pathParameters).toEqual({ path: 'a/b/c' });
  });

  it.each([
    ['an unknown path', 'GET', '/prod/nothing'],
    ['an unknown method', 'DELETE', '/prod/jobs'],
    ['another stage', 'GET', '/test/health'],
    ['no stage', 'GET', '/health'],
    ['a stage by prefix', 'GET', '/production/health'],
  ])('answers to %s that a token is missing', async (_, method, path) => {
    const endpoint = await serve();
    const response = await signed(new URL(path, endpoint).href, { method });
    expect(response.status).toBe(403);
    expect(await response.json()).toEqual({ message: 'Missing Authentication Token' });
  });
});

describe('authorization', () => {
  it('refuses an unsigned request', async () => {
    const endpoint = await serve();
    const response = await fetch(`${endpoint}/jobs`);
    expect(response.status).toBe(403);
    expect(response.headers.get('x-amzn-errortype')).toBe('MissingAuthenticationTokenException');
    expect(await response.json()).toEqual({ message: 'Missing Authentication Token' });
  });

  it('refuses a wrong secret', async () => {
    const endpoint = await serve();
    const response = await signed(`${endpoint}/jobs`, {
      credentials: { accessKeyId: 'local', secretAccessKey: 'no' },
    });
    expect(response.status).toBe(403);
    expect(response.headers.get('x-amzn-errortype')).toBe('InvalidSignatureException');
    expect(await response.text()).toContain('does not match the signature you provided');
  });

  it('refuses a key that it does not know', async () => {
    const endpoint = await serve();
    const response = await signed(`${endpoint}/jobs`, {
      credentials: { accessKeyId: 'who', secretAccessKey: 'secret' },
    });
    expect(response.status).toBe(403);
    expect(await response.json()).toEqual({
      message: 'The security token included in the request is invalid.',
    });
  });

  it('comes before the validation of the body', async () => {
    const endpoint = await serve();
    expect((await fetch(`${endpoint}/jobs`, { method: 'POST', body: 'no json' })).status).toBe(403);
  });
});

describe('validation', () => {
  it.each([
    ['no JSON', 'no json'],
    ['nothing', undefined],
    ['an array', '[]'],
    ['a missing field', '{"tasks":1}'],
    ['a field of another type', '{"name":1}'],
    ['a field out of range', '{"name":"a","tasks":0}'],
  ])('refuses %s', async (_, body) => {
    const endpoint = await serve();
    const response = await signed(`${endpoint}/jobs`, {
      method: 'POST',
      ...(body === undefined ? {} : { body }),
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ message: 'Invalid request body' });
  });

  it.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', ''])(
    'refuses a body of type "%s", whatever it holds',
    async (type) => {
      const endpoint = await serve();
      const body = '{"name":"sort"}';
      const headers = { 'content-type': type };
      const response = await signed(`${endpoint}/jobs`, { method: 'POST', body, headers });
      expect(response.status).toBe(415);
    },
  );

  it('takes JSON with a parameter after its type', async () => {
    const endpoint = await serve();
    const headers = { 'content-type': 'application/json; charset=utf-8' };
    const response = await signed(`${endpoint}/jobs`, { method: 'POST', body: '{"name":"sort"}', headers });
    expect(response.status).toBe(200);
  });

  it('answers 413 to a body that is too large for its function', async () => {
    const tooLarge = Object.assign(new Error('too large'), { name: 'Lambda.RequestTooLargeException' });
    const endpoint = await serve(() => Promise.reject(tooLarge));
    const body = `{"name":"${'x'.repeat(9_500_000)}"}`;
    expect((await signed(`${endpoint}/jobs`, { method: 'POST', body })).status).toBe(413);
  });

  it.each([
    ['an array 100,000 deep', '['.repeat(100_000) + ']'.repeat(100_000), 400],
    ['brackets that never end', '['.repeat(100_000), 400],
    ['a field 100,000 deep', `{"name":"a","x":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 200],
    ['half a pair', '{"name":"\\ud800"}', 200],
    ['no JSON', '{', 400],
    ['nothing', '', 400],
  ])('judges %s without failing', async (_, body, status) => {
    const endpoint = await serve(() => Promise.resolve({ statusCode: 200 }));
    expect((await signed(`${endpoint}/jobs`, { method: 'POST', body })).status).toBe(status);
  });

  it('refuses a body above 10 MB, and passes one of 10 MB', async () => {
    const endpoint = await serve(() => Promise.resolve({ statusCode: 204 }));
    const put = (sizeBytes: number) =>
      fetch(`${endpoint}/files/big`, {
        method: 'PUT',
        body: 'x'.repeat(sizeBytes),
        headers: { 'content-type': 'application/json' },
      });
    expect((await put(10_485_760)).status).toBe(204);
    // By hand: fetch may see the connection end before it reads the answer.
    const status = await new Promise((resolve, reject) => {
      const request = httpRequest(`${endpoint}/files/big`, { method: 'PUT' }, (response) => {
        resolve(response.statusCode);
        request.destroy();
      });
      request.on('error', reject);
      request.write('x'.repeat(10_485_761)); // And no end.
    });
    expect(status).toBe(413);
  });
});

describe('a function’s answer', () => {
  it('becomes the response with its headers, once or several times', async () => {
    const endpoint = await serve(() =>
      Promise.resolve({
        statusCode: 201,
        headers: { Location: '/jobs/1', 'Content-Type': 'text/plain', 'Content-Length': '999' },
        multiValueHeaders: { 'Set-Cookie': ['a=1', 'b=2'] },
        body: 'made',
      }),
    );
    const response = await fetch(`${endpoint}/health`);
    expect(response.status).toBe(201);
    expect(response.headers.get('location')).toBe('/jobs/1');
    expect(response.headers.get('content-type')).toBe('text/plain');
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2']);
    expect(await response.text()).toBe('made');
  });

  it('may be bytes', async () => {
    const endpoint = await serve(() =>
      Promise.resolve({ statusCode: 200, body: '/wA=', isBase64Encoded: true }),
    );
    expect(new Uint8Array(await (await fetch(`${endpoint}/health`)).arrayBuffer())).toEqual(
      new Uint8Array([255, 0]),
    );
  });

  it.each([
    ['nothing', undefined],
    ['no status', { body: '{}' }],
    ['a status that is none', { statusCode: 99 }],
    ['a body that is no text', { statusCode: 200, body: { a: 1 } }],
    ['a header that breaks the line', { statusCode: 200, headers: { a: 'b\r\nc: d' } }],
  ])('is a bad gateway if it is %s', async (_, result) => {
    const endpoint = await serve(() => Promise.resolve(result));
    const response = await fetch(`${endpoint}/health`);
    expect(response.status).toBe(502);
    expect(await response.json()).toEqual({ message: 'Internal server error' });
  });

  it.each([
    [502, 'TypeError'],
    [500, 'Lambda.TooManyRequestsException'],
  ])('is %i if it throws %s', async (status, name) => {
    const endpoint = await serve(() => Promise.reject(Object.assign(new Error('boom'), { name })));
    const response = await fetch(`${endpoint}/health`);
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ message: 'Internal server error' });
  });

  it('is not waited for beyond the time-out', async () => {
    const endpoint = await serve(() => new Promise(() => undefined), { timeoutMs: 20 });
    const response = await fetch(`${endpoint}/health`);
    expect(response.status).toBe(504);
    expect(await response.json()).toEqual({ message: 'Endpoint request timed out' });
  });
});

it('can be made to fail', async () => {
  const seen: unknown[] = [];
  const endpoint = await serve(echo, {
    onRequest: (subject) => {
      seen.push(subject);
      return { error: { status: 429, code: 'TooManyRequestsException' } };
    },
  });
  expect((await fetch(`${endpoint}/health`)).status).toBe(429);
  expect(seen).toEqual([{ service: 'execute-api', operation: 'GET /health', resource: '/health' }]);
});
