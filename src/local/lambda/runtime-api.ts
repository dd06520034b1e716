import type { IncomingMessage, ServerResponse } from 'node:http';

import { isSameSecret } from '../http/principals.ts';
import { listen } from '../http/listen.ts';
import type { Listener } from '../http/listen.ts';
import { readBody } from '../http/read-body.ts';
import { MAX_RESPONSE_BYTES } from './model.ts';

/** What `next` hands to the runtime. */
export interface Delivery {
  readonly requestId: string;
  readonly deadlineMs: number;
  readonly functionArn: string;
  readonly traceId: string;
  readonly payload: Buffer;
  /** Undefined where the function has no tenants. */
  readonly tenantId: string | undefined;
}

/** What an environment does when its runtime calls. */
export interface RuntimeHost {
  readonly zoneId: string;
  readonly metadataToken: string;
  /** The runtime waits for work; `deliver` answers it, at most once. */
  onNext(deliver: (delivery: Delivery) => void): void;
  /** The runtime gave up waiting for work, which it does only by dying. */
  onLost(): void;
  /** False if `requestId` is not the running invocation. */
  onResponse(requestId: string, payload: Buffer | 'too-large'): boolean;
  /** False if `requestId` is not the running invocation. */
  onError(requestId: string, errorBody: Buffer): boolean;
  onInitError(errorBody: Buffer): void;
}

const METADATA_PATH = '/2026-01-15/metadata/execution-environment';
const INVOCATION_PATH = /^\/2018-06-01\/runtime\/invocation\/([^/]+)\/(response|error)$/;
/** Error bodies carry a stack trace, no data. */
const MAX_ERROR_BYTES = 1024 * 1024;

function answer(response: ServerResponse, status: number, body: object, headers = {}): void {
  const json = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(json),
    ...headers,
  });
  response.end(json);
}

function answerNext(host: RuntimeHost, response: ServerResponse): void {
  response.once('close', () => {
    if (!response.writableEnded) host.onLost();
  });
  host.onNext((delivery) => {
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': delivery.payload.length,
      'Lambda-Runtime-Aws-Request-Id': delivery.requestId,
      'Lambda-Runtime-Deadline-Ms': String(delivery.deadlineMs),
      'Lambda-Runtime-Invoked-Function-Arn': delivery.functionArn,
      'Lambda-Runtime-Trace-Id': delivery.traceId,
      ...(delivery.tenantId === undefined ? {} : { 'Lambda-Runtime-Aws-Tenant-Id': delivery.tenantId }),
    });
    response.end(delivery.payload);
  });
}

function answerMetadata(host: RuntimeHost, response: ServerResponse): void {
  answer(
    response,
    200,
    { AvailabilityZoneID: host.zoneId },
    {
      'Cache-Control': 'private, max-age=43200, immutable',
    },
  );
}

async function answerResult(
  host: RuntimeHost,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [, requestId = '', kind] = INVOCATION_PATH.exec(request.url ?? '') ?? [];
  const limitBytes = kind === 'response' ? MAX_RESPONSE_BYTES : MAX_ERROR_BYTES;
  const body = await readBody(request, limitBytes);
  // The rest is read away, so that the runtime gets its answer on a sound connection.
  if (body === 'too-large') request.resume();

  const known =
    kind === 'response'
      ? host.onResponse(requestId, body)
      : host.onError(requestId, body === 'too-large' ? Buffer.from('{}') : body);
  if (!known) {
    answer(response, 400, { errorType: 'InvalidRequestID', errorMessage: 'Invalid request ID' });
  } else if (body === 'too-large') {
    answer(response, 413, {
      errorType: 'RequestEntityTooLarge',
      errorMessage: `Exceeded maximum allowed payload size (${String(limitBytes)} bytes).`,
    });
  } else {
    answer(response, 202, { status: 'OK' });
  }
}

async function serve(host: RuntimeHost, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, url = '' } = request;
  if (!isSameSecret(request.headers.authorization ?? '', `Bearer ${host.metadataToken}`)) {
    answer(response, 401, { message: 'Unauthorized' });
    return;
  }
  if (method === 'GET' && url === '/2018-06-01/runtime/invocation/next') {
    answerNext(host, response);
  } else if (method === 'GET' && url === METADATA_PATH) {
    answerMetadata(host, response);
  } else if (method === 'POST' && INVOCATION_PATH.test(url)) {
    await answerResult(host, request, response);
  } else if (method === 'POST' && url === '/2018-06-01/runtime/init/error') {
    const body = await readBody(request, MAX_ERROR_BYTES);
    host.onInitError(body === 'too-large' ? Buffer.from('{}') : body);
    answer(response, 202, { status: 'OK' });
  } else {
    answer(response, 404, { errorType: 'NotFound', errorMessage: `no such call: ${method ?? ''} ${url}` });
  }
}

/**
 * Serves the Runtime API (2018-06-01) and the metadata endpoint of one
 * environment. Each environment has a port of its own, since AWS's clients know
 * a host and a port, and no path. Unlike on AWS, where nobody else is on the
 * machine, all calls need the token that the environment's variables hold.
 */
export function startRuntimeApi(host: RuntimeHost): Promise<Listener> {
  return listen((request, response) => serve(host, request, response), { closeGraceMs: 0 });
}
