import { request as httpRequest } from 'node:http';
import { fileURLToPath } from 'node:url';
import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import fc from 'fast-check';
import { answer, type ApiRequest } from '../../functions/api/routes.ts';
import { type ApiServer, startApiServer } from '../../src/local/api/server.ts';
import { readAssembly } from '../../src/local/provision/assembly.ts';
import { planDeployment } from '../../src/local/provision/deployment.ts';
import { synthesize } from '../../src/local/provision/synthesize.ts';
import { arbText } from './arbitraries.ts';
import { arbBody } from './body-fuzzer.ts';
import { type Fuzzer, hold } from './fuzzer.ts';
import { easySystem, putSources } from './spec-fuzzer.ts';

const credentials = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'local-secret' };
const region = 'us-east-1';
const answerMs = 30_000;

/** A request as it goes over the wire. */
interface Sent {
  readonly method: string;
  /** Below the stage, as it is: escaped where it had to be, and where it had not. */
  readonly path: string;
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | undefined;
  readonly isSigned: boolean;
}

const arbPart = fc.oneof(
  fc.constantFrom(
    'jobs',
    'jobs',
    'jobs',
    'attempts',
    'cancel',
    'deadline',
    'words-0123456789ab',
    '..',
    '%2e%2e',
    '%',
    '%zz',
    '',
  ),
  arbText.map((text) => encodeURIComponent(text.toWellFormed())),
);
const arbHeader = fc.tuple(
  fc.constantFrom(
    'accept',
    'content-encoding',
    'expect',
    'x-amz-date',
    'x-amz-security-token',
    'x-tag',
    'transfer-encoding',
    'range',
  ),
  fc.stringMatching(/^[!-~]{0,40}$/),
);

const arbSent: fc.Arbitrary<Sent> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS'),
  path: fc.oneof(
    fc.constantFrom('/jobs', '/jobs', '/jobs/words-0123456789ab', '/jobs/words-0123456789ab/deadline'),
    fc.array(arbPart, { maxLength: 4 }).map((parts) => parts.map((part) => `/${part}`).join('')),
  ),
  query: fc.array(
    fc.tuple(fc.oneof(fc.constantFrom('limit', 'cursor', 'X-Amz-Signature'), arbText), arbText),
    { maxLength: 3 },
  ),
  headers: fc.array(arbHeader, { maxLength: 2 }),
  body: fc.option(arbBody, { nil: undefined }),
  isSigned: fc.boolean(),
});

const queryOf = (query: Sent['query']): string =>
  query
    .map(
      ([name, value]) =>
        `${encodeURIComponent(name.toWellFormed())}=${encodeURIComponent(value.toWellFormed())}`,
    )
    .join('&');

async function headersOf(endpoint: URL, sent: Sent): Promise<Record<string, string>> {
  const headers = {
    host: endpoint.host,
    'content-type': 'application/json',
    ...Object.fromEntries(sent.headers),
  };
  if (!sent.isSigned) return headers;
  const signer = new SignatureV4({ service: 'execute-api', region, credentials, sha256: Sha256 });
  const query: Record<string, string[]> = {};
  for (const [name, value] of sent.query) (query[name.toWellFormed()] ??= []).push(value.toWellFormed());
  const signed = await signer.sign({
    method: sent.method,
    protocol: endpoint.protocol,
    hostname: endpoint.hostname,
    port: Number(endpoint.port),
    path: decodeURI(endpoint.pathname),
    query,
    headers,
    ...(sent.body === undefined ? {} : { body: sent.body }),
  });
  return signed.headers;
}

/** Sends a request; its status, or undefined where the server ended the connection or Node would not even send it. */
async function send(base: string, sent: Sent): Promise<number | undefined> {
  const text = queryOf(sent.query);
  const url = `${base}${sent.path}${text === '' ? '' : `?${text}`}`;
  const endpoint = new URL(base);
  let headers: Record<string, string>;
  try {
    headers = await headersOf(new URL(url), sent);
  } catch {
    headers = { host: endpoint.host }; // What cannot be signed can be sent all the same.
  }
  return new Promise((resolve) => {
    const { hostname, port } = endpoint;
    const path = url.slice(endpoint.origin.length);
    // A connection for each: after an answer that came before its body was sent, one is good for nothing more.
    const alone = { agent: false, timeout: answerMs };
    const give = (status?: number): void => {
      resolve(status);
    };
    try {
      const request = httpRequest({ hostname, port, path, method: sent.method, headers, ...alone });
      request.on('response', (response) => {
        response.resume();
        response.once('end', () => {
          give(response.statusCode);
        });
        response.once('error', () => {
          give(response.statusCode);
        });
      });
      request.once('timeout', () => request.destroy());
      request.once('error', () => {
        give();
      });
      request.end(sent.body);
    } catch {
      give();
    }
  });
}

async function startFront(): Promise<ApiServer> {
  const outDir = fileURLToPath(new URL('../../cdk.out', import.meta.url));
  await synthesize({ outDir });
  const { apis } = planDeployment(await readAssembly(outDir), {
    region,
    availabilityZones: ['us-east-1a', 'us-east-1b'],
    parameters: {},
  });
  const [api] = apis;
  hold(api !== undefined, 'there is an API', apis);
  const system = easySystem();
  await putSources(system);
  const { stageName, routes } = api;
  // The event is what the front made of a request: what the handler reads of it is its type.
  const invoke = (_: string, event: unknown): Promise<unknown> => answer(system, event as ApiRequest);
  return startApiServer({ credentials, region, stageName, routes, invoke });
}

/** Requests over HTTP to the front of the API: what is signed and what is not, on every path. */
export function frontFuzzer(): Fuzzer {
  let starting: Promise<ApiServer> | undefined;
  const front = (): Promise<ApiServer> => (starting ??= startFront());
  const list: Sent = {
    method: 'GET',
    path: '/jobs',
    query: [],
    headers: [],
    body: undefined,
    isSigned: true,
  };
  return {
    name: 'front',
    what: 'requests over HTTP are answered, never with a 5xx, and the next one is served',
    runs: 200,
    property: fc.asyncProperty(fc.array(arbSent, { minLength: 1, maxLength: 4 }), async (requests) => {
      const { endpoint } = await front();
      for (const sent of requests) {
        const status = await send(endpoint, sent);
        hold(status === undefined || status < 500, 'a request is answered', [
          status,
          { ...sent, body: sent.body?.slice(0, 300) },
        ]);
      }
      const next = await send(endpoint, list);
      hold(next === 200, `the next request is served, and not answered with ${String(next)}`, requests);
    }),
    async close() {
      await (await starting)?.close();
    },
  };
}
