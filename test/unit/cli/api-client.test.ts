import { describe, expect, it, onTestFinished } from 'vitest';
import { makeApiClient, type ApiClient, type ApiSettings } from '../../../src/cli/api-client.ts';
import { awsCredentials } from '../../../src/cli/connection.ts';
import { nextPollMs, watchJob } from '../../../src/cli/watch-job.ts';
import { listen } from '../../../src/local/http/listen.ts';
import { readBody } from '../../../src/local/http/read-body.ts';
import { checkSigV4 } from '../../../src/local/http/sigv4.ts';

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret/with+signs' };
const region = 'eu-west-1';

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly body: string;
  readonly signature: string;
}

/** A server that checks signatures and gives the answers in order, the last one for ever. */
async function serve(
  answers: readonly { status: number; body: unknown; headers?: Readonly<Record<string, string>> }[],
  settings: Partial<ApiSettings> = {},
): Promise<{ client: ApiClient; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = await listen(async (request, response) => {
    const body = await readBody(request, 1_000_000);
    if (body === 'too-large') throw new Error(body);
    const check = checkSigV4(request, { credentials, region, service: 'execute-api', body });
    const answer = answers[Math.min(seen.length, answers.length - 1)];
    seen.push({
      method: request.method,
      url: request.url,
      body: Buffer.from(body).toString(),
      signature: check.ok ? 'good' : check.message,
    });
    response.writeHead(answer?.status ?? 500, { 'content-type': 'application/json', ...answer?.headers });
    response.end(typeof answer?.body === 'string' ? answer.body : JSON.stringify(answer?.body));
  });
  onTestFinished(() => server.close());
  return {
    client: makeApiClient({
      apiUrl: `${server.endpoint}/v1/`,
      region,
      credentials,
      backoffMs: 1,
      attempts: 3,
      ...settings,
    }),
    seen,
  };
}

const spec = { name: 'x', stages: [] };

describe('API client', () => {
  it.each(['', '.', '..'])('asks for no job %j, since it would be another path', async (jobId) => {
    const { client, seen } = await serve([{ status: 200, body: { jobs: [] } }]);
    const refusal = { name: 'NotFound', message: `no such job: "${jobId}"` };
    await expect(client.job(jobId)).rejects.toMatchObject(refusal);
    await expect(client.cancel(jobId)).rejects.toMatchObject(refusal);
    expect(seen).toEqual([]);
  });

  it('signs what it sends so that the signature can be made anew', async () => {
    const { client, seen } = await serve([{ status: 200, body: { jobs: [] } }]);
    await client.list({ limit: 5, cursor: "a+b/c= é(')" });
    await client.submit({ spec, clientToken: 't' });
    await client.cancel('odd id/é');
    expect(seen).toEqual([
      {
        method: 'GET',
        url: '/v1/jobs?limit=5&cursor=a%2Bb%2Fc%3D%20%C3%A9%28%27%29',
        body: '',
        signature: 'good',
      },
      {
        method: 'POST',
        url: '/v1/jobs',
        body: '{"spec":{"name":"x","stages":[]},"clientToken":"t"}',
        signature: 'good',
      },
      { method: 'POST', url: '/v1/jobs/odd%20id%2F%C3%A9/cancel', body: '', signature: 'good' },
    ]);
  });

  it('tries again while the service cannot serve, and then gives its answer', async () => {
    const { client, seen } = await serve([
      { status: 503, body: { error: 'StoreUnavailable', message: 'no' } },
      { status: 429, body: 'not json' },
      { status: 200, body: { jobId: 'x-1', started: true } },
    ]);
    expect(await client.submit({ spec })).toEqual({ jobId: 'x-1', started: true });
    expect(seen).toHaveLength(3);
  });

  it('brings a submission with a token again and again while the service has no room for it', async () => {
    const busy = { status: 503, body: { error: 'ServiceUnavailable' }, headers: { 'retry-after': '0' } };
    const throttled = { status: 429, body: { message: 'Too Many Requests' } };
    const { client, seen } = await serve([
      ...Array.from({ length: 8 }, () => busy),
      throttled,
      throttled,
      { status: 201, body: { jobId: 'x-1', started: true } },
    ]);
    expect(await client.submit({ spec, clientToken: 't' })).toEqual({ jobId: 'x-1', started: true });
    expect(seen).toHaveLength(11);
    expect(new Set(seen.map(({ body }) => body)).size).toBe(1);
  });

  it('brings nothing else again for so long: without a token it might start twice', async () => {
    const { client, seen } = await serve([{ status: 503, body: { error: 'StoreUnavailable' } }]);
    await expect(client.submit({ spec })).rejects.toMatchObject({ name: 'ServiceUnavailable' });
    await expect(client.job('x')).rejects.toMatchObject({ name: 'ServiceUnavailable' });
    expect(seen).toHaveLength(6);
  });

  it('gives a submission up in the end', async () => {
    const { client, seen } = await serve([{ status: 503, body: {} }], { patienceMs: 20 });
    await expect(client.submit({ spec, clientToken: 't' })).rejects.toMatchObject({
      name: 'ServiceUnavailable',
    });
    expect(seen.length).toBeGreaterThanOrEqual(1);
  });

  it('lets a submission go, however patient, with the reason of its signal', async () => {
    const { client, seen } = await serve([{ status: 503, body: {}, headers: { 'retry-after': '20' } }]);
    const controller = new AbortController();
    const reason = new Error('ended by SIGINT');
    const submitted = client.submit({ spec, clientToken: 't' }, controller.signal);
    setTimeout(() => {
      controller.abort(reason);
    }, 50);
    await expect(submitted).rejects.toBe(reason);
    expect(seen.length).toBeLessThanOrEqual(1);
  });

  it('gives up after its attempts', async () => {
    const { client, seen } = await serve([{ status: 500, body: { message: 'broken' } }]);
    await expect(client.job('x')).rejects.toMatchObject({
      name: 'ServiceUnavailable',
      message: expect.stringMatching(/cannot serve now: broken$/) as string,
    });
    expect(seen).toHaveLength(3);
  });

  it.each([
    [
      400,
      { error: 'InvalidInput', message: 'must be 1', field: 'spec.version' },
      'InvalidInput',
      'spec.version: must be 1',
    ],
    [
      400,
      { error: 'InvalidInput', message: 'spec.name must be short', field: 'spec.name' },
      'InvalidInput',
      'spec.name must be short',
    ],
    [404, { error: 'NotFound', message: 'no such job: x' }, 'NotFound', 'no such job: x'],
    [409, { error: 'Conflict', message: 'has ended' }, 'Conflict', 'has ended'],
  ])('makes of HTTP status %s what the API says, at once', async (status, body, name, message) => {
    const { client, seen } = await serve([{ status, body }]);
    await expect(client.job('x')).rejects.toMatchObject({ name, message });
    expect(seen).toHaveLength(1);
  });

  it('tells refused credentials and foreign servers from jobs that are not there', async () => {
    const refused = await serve([{ status: 403, body: { message: 'Forbidden' } }]);
    await expect(refused.client.job('x')).rejects.toThrow(/refuses these AWS credentials: Forbidden$/);
    const foreign = await serve([{ status: 404, body: '<html>' }]);
    await expect(foreign.client.job('x')).rejects.toThrow(/^there is no Outrider API at http/);
  });

  it('names the endpoint where nobody listens', async () => {
    const server = await listen(() => undefined);
    await server.close();
    const client = makeApiClient({ apiUrl: server.endpoint, region, credentials, attempts: 2, backoffMs: 1 });
    await expect(client.list({})).rejects.toMatchObject({
      name: 'ServiceUnavailable',
      message: `no answer from ${server.endpoint} (connection refused): is it up, and the endpoint right?`,
      details: { isUnsent: true },
    });
  });

  it('does not call unsent what may have arrived before nobody listened any more', async () => {
    const server = await listen((request) => {
      request.destroy();
      void server.close();
      return Promise.resolve();
    });
    const client = makeApiClient({
      apiUrl: server.endpoint,
      region,
      credentials,
      attempts: 3,
      backoffMs: 100,
    });
    await expect(client.list({})).rejects.toMatchObject({
      message: expect.stringContaining('connection refused'),
      details: { isUnsent: false },
    });
  });

  it.each([
    [400, { error: 'InvalidInput', message: 'budget: no' }],
    [403, { message: 'The security token included in the request is expired' }],
    [409, { error: 'Conflict', message: 'another job writes there' }],
  ])('says of a refusal (%i) whether an earlier try may have arrived', async (status, body) => {
    const { client } = await serve([
      { status: 504, body: {} },
      { status, body },
    ]);
    await expect(client.list({})).rejects.toMatchObject({ details: { status, isUnsent: false } });
    const refused = await serve([{ status, body }]);
    await expect(refused.client.list({})).rejects.not.toHaveProperty('details.isUnsent');
  });

  it('ends at once, with its reason, when the signal fires', async () => {
    const { client } = await serve([{ status: 200, body: {} }]);
    const reason = new Error('enough');
    await expect(client.job('x', AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  it('follows the pages of attempts to their end', async () => {
    const { client, seen } = await serve([
      { status: 200, body: { attempts: [{ attemptId: 'a/0/0' }], cursor: '1~a/0/0', unreadable: 2 } },
      { status: 200, body: { attempts: [{ attemptId: 'a/1/0' }], cursor: '2~a/1/0', unreadable: 2 } },
      { status: 200, body: { attempts: [{ attemptId: 'a/2/0' }], unreadable: 2 } },
    ]);
    expect(await client.attempts('job-1')).toEqual({
      attempts: [{ attemptId: 'a/0/0' }, { attemptId: 'a/1/0' }, { attemptId: 'a/2/0' }],
      unreadable: 2,
    });
    expect(seen.map(({ url, signature }) => [url, signature])).toEqual([
      ['/v1/jobs/job-1/attempts', 'good'],
      ['/v1/jobs/job-1/attempts?cursor=1~a%2F0%2F0', 'good'],
      ['/v1/jobs/job-1/attempts?cursor=2~a%2F1%2F0', 'good'],
    ]);
  });

  const expired = { status: 403, body: { message: 'The security token included in the request is expired' } };

  it('asks for new keys where those that it had have expired, and goes on with them', async () => {
    const { client, seen } = await serve([expired, { status: 200, body: { jobId: 'job-1' } }]);
    const asked: unknown[] = [];
    const renewing = makeApiClient({
      apiUrl: client.apiUrl,
      region,
      backoffMs: 1,
      credentials: (options) => {
        asked.push(options);
        return Promise.resolve(
          options?.renew === true ? credentials : { ...credentials, sessionToken: 'old' },
        );
      },
    });
    expect(await renewing.job('job-1')).toEqual({ jobId: 'job-1' });
    expect(asked).toEqual([{ renew: false }, { renew: true }]);
    expect(seen).toHaveLength(2);
  });

  it('gives up where new keys have expired as well, and where there are no others', async () => {
    const { client, seen } = await serve([expired]);
    const renewing = makeApiClient({
      apiUrl: client.apiUrl,
      region,
      backoffMs: 1,
      credentials: () => Promise.resolve(credentials),
    });
    const refused = {
      name: 'InvalidInput',
      message: expect.stringMatching(/refuses these AWS credentials.*expired/),
    };
    await expect(renewing.job('job-1')).rejects.toMatchObject(refused);
    expect(seen).toHaveLength(2);
    await expect(client.job('job-1')).rejects.toMatchObject(refused);
    expect(seen).toHaveLength(3);
  });
});

describe('keys of the default chain', () => {
  const at = (expiresInMs: number | undefined, id: string) => ({
    accessKeyId: id,
    secretAccessKey: 's',
    ...(expiresInMs === undefined ? {} : { expiration: new Date(Date.now() + expiresInMs) }),
  });

  it('are fetched again before they run out, and read anew where they were refused', async () => {
    const hour = 3_600_000;
    const given = [at(hour, 'first'), at(60_000, 'second'), at(hour, 'third')];
    const options: unknown[] = [];
    const source = awsCredentials('https://api', (option?: unknown) => {
      options.push(option);
      return () => Promise.resolve(given.shift() ?? at(hour, 'last'));
    });
    const idOf = async (renew?: boolean): Promise<string> =>
      (await source(renew === undefined ? {} : { renew })).accessKeyId;
    expect([await idOf(), await idOf(), await idOf(true)]).toEqual(['first', 'first', 'second']);
    // That one runs out within five minutes.
    expect([await idOf(), await idOf()]).toEqual(['third', 'third']);
    expect(options).toEqual([undefined, { ignoreCache: true }]);
  });

  it('are used until they run out where the network gives no others', async () => {
    const given = [at(60_000, 'first')];
    const lost = Object.assign(new Error('getaddrinfo ENOTFOUND sts'), { code: 'ENOTFOUND' });
    const source = awsCredentials('https://api', () => () => {
      const next = given.shift();
      return next === undefined ? Promise.reject(lost) : Promise.resolve(next);
    });
    expect([(await source()).accessKeyId, (await source()).accessKeyId]).toEqual(['first', 'first']);
    await expect(source({ renew: true })).rejects.toMatchObject({ name: 'ServiceUnavailable' });
    given.push(at(-1, 'second'));
    await expect(source().then(() => source())).rejects.toMatchObject({ name: 'ServiceUnavailable' });
  });

  it.each([
    new Error('Error: getaddrinfo ENOTFOUND portal.sso.eu-west-1.amazonaws.com'),
    Object.assign(new Error(''), { code: 'ECONNREFUSED' }),
    Object.assign(new Error('timed out'), { name: 'TimeoutError' }),
    new Error('no keys', { cause: Object.assign(new Error(''), { code: 'EAI_AGAIN' }) }),
  ])('are waited for where the network is away: %s', async (fault) => {
    const source = awsCredentials('https://api', () => () => Promise.reject(fault));
    await expect(source()).rejects.toMatchObject({
      name: 'ServiceUnavailable',
      message: `no AWS credentials for https://api: ${fault.message}`,
      details: { isUnsent: true },
    });
  });

  it('that ran out are waited for whatever the source says, and are bad input once they were refused', async () => {
    const given = [at(-1, 'first')];
    // The SDK's own, where it could not refresh the token for want of a network.
    const said =
      "Token is expired. To refresh this SSO session run 'aws sso login' with the corresponding profile.";
    const source = awsCredentials('https://api', () => () => {
      const next = given.shift();
      return next === undefined ? Promise.reject(new Error(said)) : Promise.resolve(next);
    });
    await source();
    const message = `no AWS credentials for https://api: ${said}`;
    const waiting = { name: 'ServiceUnavailable', message, details: { isUnsent: true } };
    await expect(source()).rejects.toMatchObject(waiting);
    await expect(source()).rejects.toMatchObject(waiting);
    await expect(source({ renew: true })).rejects.toMatchObject({ name: 'InvalidInput', message });
    given.push(at(3_600_000, 'second'));
    expect((await source()).accessKeyId).toBe('second');
  });

  const ssoSaid =
    'The SSO session associated with this profile has expired. To refresh this SSO session run aws sso login with the corresponding profile.';
  it.each([
    [ssoSaid, ssoSaid],
    [
      'Could not load credentials from any providers',
      'set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    ],
  ])('that cannot be had are told of as the SDK tells it: %s', async (said, told) => {
    const source = awsCredentials('https://api', () => () => Promise.reject(new Error(said)));
    await expect(source()).rejects.toMatchObject({
      name: 'InvalidInput',
      message: `no AWS credentials for https://api: ${told}`,
    });
  });
});

describe('a wait', () => {
  it('asks less and less often, from a quarter of a second to half a minute', () => {
    expect([0, 4_000, 10_000, 60_000, 600_000, 86_400_000].map(nextPollMs)).toEqual([
      250, 250, 500, 3_000, 30_000, 30_000,
    ]);
    let questions = 0;
    for (let waited = 0; waited < 3_600_000; waited += nextPollMs(waited)) questions += 1;
    // An hour took 14,400 at four a second: 20 to 5 s, 99 growing by a twentieth to 10 min, and 100 of half a minute.
    expect(questions).toBe(219);
  });

  it('ends at once where it is interrupted, however long the next pause', async () => {
    const interrupt = new AbortController();
    const client = {
      job: () => {
        setImmediate(() => {
          interrupt.abort(new Error('Ctrl-C'));
        });
        return Promise.resolve({ state: 'running', stages: [] });
      },
    } as unknown as ApiClient;
    const options = { quiet: true, signal: interrupt.signal, pollMs: () => 3_600_000 };
    await expect(watchJob(client, 'job-1', {} as never, options)).rejects.toThrow('Ctrl-C');
  });
});
