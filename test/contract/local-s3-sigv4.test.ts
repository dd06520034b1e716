import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterEach, describe, expect, it } from 'vitest';
import { listen, PortTakenError } from '../../src/local/http/listen.ts';
import type { Listener } from '../../src/local/http/listen.ts';
import { checkSigV4 } from '../../src/local/http/sigv4.ts';
import type { SigV4Settings, WireRequest } from '../../src/local/http/sigv4.ts';

const CREDENTIALS = {
  accessKeyId: 'AKIDEXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
};
const SIGNED_AT = new Date('2026-03-01T12:00:00Z');
const SETTINGS: SigV4Settings = {
  credentials: CREDENTIALS,
  region: 'us-east-1',
  service: 'lambda',
  nowMs: SIGNED_AT.getTime(),
};

interface Draft {
  readonly method?: string;
  readonly path?: string;
  readonly query?: Record<string, string>;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

function signer(service: string): SignatureV4 {
  return new SignatureV4({
    credentials: CREDENTIALS,
    region: 'us-east-1',
    service,
    sha256: Sha256,
    uriEscapePath: service !== 's3',
  });
}

function httpRequest(draft: Draft) {
  return {
    method: draft.method ?? 'POST',
    protocol: 'http:',
    hostname: '127.0.0.1',
    path: draft.path ?? '/',
    query: draft.query ?? {},
    headers: { host: '127.0.0.1:9000', ...draft.headers },
    ...(draft.body === undefined ? {} : { body: draft.body }),
  };
}

function onTheWire(signed: ReturnType<typeof httpRequest>): WireRequest {
  const query = Object.entries(signed.query)
    .map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`)
    .join('&');
  const headers = Object.fromEntries(
    Object.entries(signed.headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  return { method: signed.method, url: query === '' ? signed.path : `${signed.path}?${query}`, headers };
}

async function sign(service: string, draft: Draft): Promise<WireRequest> {
  const signed = await signer(service).sign(httpRequest(draft), { signingDate: SIGNED_AT });
  return onTheWire(signed as ReturnType<typeof httpRequest>);
}

async function presign(draft: Draft): Promise<WireRequest> {
  const request = httpRequest({
    method: 'GET',
    headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
    ...draft,
  });
  const signed = await signer('s3').presign(request, {
    signingDate: SIGNED_AT,
    expiresIn: 60,
    unhoistableHeaders: new Set(),
  });
  return onTheWire(signed as ReturnType<typeof httpRequest>);
}

describe('checkSigV4', () => {
  it.each([
    ['a root path', 'states', { path: '/', body: '{"a":1}' }],
    [
      'an escaped path',
      'lambda',
      { path: '/2015-03-31/functions/arn%3Aaws%3Alambda/invocations', body: 'x' },
    ],
    [
      'a query in any order',
      'execute-api',
      { method: 'GET', path: '/jobs/7', query: { b: "2 *'()", a: 'ü' } },
    ],
    ['dot segments in an S3 key', 's3', { method: 'GET', path: '/bucket/a/../b//c%20d' }],
    [
      'spaced header values',
      's3',
      { method: 'PUT', path: '/b/k', headers: { 'x-amz-meta-note': '  two   words ' } },
    ],
  ] as const)('accepts the signature of the SDK for %s', async (_what, service, draft) => {
    const request = await sign(service, draft);
    expect(checkSigV4(request, { ...SETTINGS, service })).toMatchObject({ ok: true, presigned: false });
  });

  it('names another secret, key id, region, and time each by its own code', async () => {
    const request = await sign('lambda', { path: '/x' });
    const code = (changed: Partial<SigV4Settings>): unknown => {
      const result = checkSigV4(request, { ...SETTINGS, ...changed });
      return result.ok ? 'ok' : [result.status, result.code];
    };
    expect(code({})).toBe('ok');
    expect(code({ credentials: { ...CREDENTIALS, secretAccessKey: 'other' } })).toEqual([
      403,
      'SignatureDoesNotMatch',
    ]);
    expect(code({ credentials: { ...CREDENTIALS, accessKeyId: 'OTHER' } })).toEqual([
      403,
      'InvalidAccessKeyId',
    ]);
    expect(code({ region: 'eu-west-1' })).toEqual([400, 'AuthorizationHeaderMalformed']);
    expect(code({ nowMs: SIGNED_AT.getTime() + 16 * 60_000 })).toEqual([403, 'RequestTimeTooSkewed']);
    expect(code({ body: Buffer.from('tampered') })).toEqual([400, 'XAmzContentSHA256Mismatch']);
  });

  it('refuses a request without a signature', () => {
    const result = checkSigV4({ method: 'GET', url: '/', headers: { host: 'h' } }, SETTINGS);
    expect(result).toMatchObject({
      ok: false,
      code: 'AccessDenied',
      jsonCode: 'MissingAuthenticationTokenException',
    });
  });

  it('refuses a changed path and an x-amz header added after signing', async () => {
    const request = await sign('s3', { method: 'GET', path: '/b/k' });
    const settings = { ...SETTINGS, service: 's3' };
    expect(checkSigV4({ ...request, url: '/b/other' }, settings)).toMatchObject({
      code: 'SignatureDoesNotMatch',
    });
    const added = { ...request, headers: { ...request.headers, 'x-amz-copy-source': '/b/secret' } };
    expect(checkSigV4(added, settings)).toMatchObject({ code: 'AccessDenied' });
  });

  it('accepts a presigned URL until it expires', async () => {
    const request = await presign({ path: '/b/k%20k' });
    const at = (seconds: number) =>
      checkSigV4(request, { ...SETTINGS, service: 's3', nowMs: SIGNED_AT.getTime() + seconds * 1000 });
    expect(at(60)).toMatchObject({ ok: true, payloadHash: 'UNSIGNED-PAYLOAD', presigned: true });
    expect(at(61)).toMatchObject({ ok: false, code: 'AccessDenied', message: 'Request has expired' });
  });
});

describe('listen', () => {
  const open: Listener[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((listener) => listener.close()));
  });

  it('serves on the loopback interface and closes with idle connections open', async () => {
    const listener = await listen((_request, response) => void response.end('hello'));
    open.push(listener);
    expect(listener.endpoint).toBe(`http://127.0.0.1:${String(listener.port)}`);
    expect(await (await fetch(listener.endpoint)).text()).toBe('hello');
    await listener.close();
    await expect(fetch(listener.endpoint)).rejects.toThrow();
  });

  it('names the port that is taken', async () => {
    const first = await listen((_request, response) => void response.end());
    open.push(first);
    const second = listen(() => undefined, { port: first.port });
    await expect(second).rejects.toBeInstanceOf(PortTakenError);
    await expect(second).rejects.toMatchObject({ port: first.port });
  });

  it('answers 500 when the handler fails', async () => {
    const listener = await listen(() => Promise.reject(new Error('unforeseen')));
    open.push(listener);
    expect((await fetch(listener.endpoint)).status).toBe(500);
  });
});
