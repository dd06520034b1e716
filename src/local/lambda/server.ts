import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';

import { awaitFault } from '../http/fault-hook.ts';
import { listen } from '../http/listen.ts';
import { readBody } from '../http/read-body.ts';
import { checkSigV4 } from '../http/sigv4.ts';
import { Dispatcher } from './dispatcher.ts';
import type { Invocation } from './environment.ts';
import { parseFunctionName } from './function-name.ts';
import { DEFAULT_ACCOUNT_ID, MAX_ASYNC_BYTES, MAX_SYNC_BYTES } from './model.ts';
import type { EnvironmentView, InvokeOutcome, LambdaServerOptions, Refusal } from './model.ts';
import { badParameter, badPayload, notFound, requestTooLarge, tenantRefusal } from './refusal.ts';

export type {
  DroppedEvent,
  EnvironmentView,
  InvokeOutcome,
  LambdaServerOptions,
  LocalFunction,
  LogEntry,
  Refusal,
} from './model.ts';

/** A running local Lambda. */
export interface LambdaServer {
  /** `http://127.0.0.1:PORT`, for the SDK's client. */
  readonly endpoint: string;
  /**
   * Invokes synchronously without the network, for Step Functions.
   *
   * @param nameOrArn - with or without a qualifier.
   * @param payload - JSON text; empty means `{}`.
   */
  invoke(nameOrArn: string, payload: string | Uint8Array): Promise<InvokeOutcome>;
  /** Queues an asynchronous event without the network, for EventBridge; answers why not where it is refused. */
  enqueue(nameOrArn: string, payload: string): Refusal | undefined;
  /** Starts an environment of a function before there is an event for it, where there is room. */
  warm(name: string): void;
  /** Living environments, oldest first. */
  environments(): EnvironmentView[];
  /** Stops listening and ends all processes. */
  close(): Promise<void>;
}

interface Target {
  readonly name: string;
  readonly functionArn: string;
  readonly tenantId?: string;
}

const INVOKE_PATH = /^\/2015-03-31\/functions\/([^/]+)\/invocations$/;
const EMPTY_EVENT = Buffer.from('{}');

/**
 * Serves AWS Lambda's Invoke API on loopback, and runs functions in processes.
 *
 * Throws PortTakenError if the port is taken, RangeError on a bad limit, and
 * the system's error if the log folder cannot be made.
 */
export async function startLambdaServer(options: LambdaServerOptions): Promise<LambdaServer> {
  mkdirSync(options.logDir, { recursive: true });
  const service = new InvokeService(options);
  const listener = await listen((request, response) => service.serve(request, response), {
    port: options.port ?? 0,
    ...(options.hosts === undefined ? {} : { hosts: options.hosts }),
  });
  return {
    endpoint: listener.endpoint,
    invoke: (nameOrArn, payload) => service.invokeDirectly(nameOrArn, Buffer.from(payload)),
    enqueue: (nameOrArn, payload) => service.enqueueDirectly(nameOrArn, Buffer.from(payload)),
    warm: (name) => {
      service.dispatcher.warm(name);
    },
    environments: () => service.dispatcher.views(),
    close: async () => {
      await Promise.all([service.dispatcher.close(), listener.close()]);
    },
  };
}

function refuse(response: ServerResponse, refusal: Refusal): void {
  const { status, code, message, reason } = refusal;
  const body = JSON.stringify({
    Type: 'User',
    ...(reason === undefined ? {} : { Reason: reason }),
    Message: message,
    message,
  });
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'X-Amzn-ErrorType': code,
  });
  response.end(body);
}

/** What is not well encoded is no function's name, and is refused as such later. */
function decodeName(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** The refusal of a payload that no function can read. */
function payloadRefusal(payload: Buffer): Refusal | undefined {
  try {
    JSON.parse(payload.toString('utf8'));
    return undefined;
  } catch (cause) {
    return badPayload(cause);
  }
}

const invocationTypeOf = ({ headers }: IncomingMessage): string =>
  String(headers['x-amz-invocation-type'] ?? 'RequestResponse');

class InvokeService {
  readonly dispatcher: Dispatcher;
  private readonly options: LambdaServerOptions;

  constructor(options: LambdaServerOptions) {
    this.options = options;
    this.dispatcher = new Dispatcher(options);
  }

  async invokeDirectly(nameOrArn: string, payload: Buffer): Promise<InvokeOutcome> {
    const target = this.locate(nameOrArn, {});
    if ('status' in target) return { kind: 'refused', refusal: target };
    if (payload.length > MAX_SYNC_BYTES) return { kind: 'refused', refusal: requestTooLarge(MAX_SYNC_BYTES) };
    const refusal = payload.length === 0 ? undefined : payloadRefusal(payload);
    if (refusal !== undefined) return { kind: 'refused', refusal };
    return this.dispatcher.invoke(target.name, this.newInvocation(target, payload));
  }

  enqueueDirectly(nameOrArn: string, payload: Buffer): Refusal | undefined {
    const target = this.locate(nameOrArn, {});
    if ('status' in target) return target;
    if (payload.length > MAX_ASYNC_BYTES) return requestTooLarge(MAX_ASYNC_BYTES);
    // Not announced as work, which is what attempts are.
    return this.dispatcher.enqueue(target.name, this.newInvocation(target, payload));
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = randomUUID();
    response.setHeader('x-amzn-RequestId', requestId);
    const url = new URL(request.url ?? '/', 'http://localhost');
    const match = INVOKE_PATH.exec(url.pathname);

    const body = await readBody(request, MAX_SYNC_BYTES);
    if (body === 'too-large') {
      request.resume();
      refuse(response, requestTooLarge(MAX_SYNC_BYTES));
      return;
    }
    const signature = checkSigV4(request, {
      credentials: this.options.credentials,
      principals: this.options.principals,
      region: this.options.region,
      service: 'lambda',
      body,
    });
    if (!signature.ok) {
      refuse(response, { status: signature.status, code: signature.jsonCode, message: signature.message });
      return;
    }
    if (match === null || request.method !== 'POST') {
      refuse(response, {
        status: 404,
        code: 'UnknownOperationException',
        message: `no such operation: ${url.pathname}`,
      });
      return;
    }
    const nameOrArn = decodeName(match[1] ?? '');
    const denial = signature.principal.authorize?.({
      service: 'lambda',
      operation: 'Invoke',
      resource: nameOrArn,
    });
    if (denial !== undefined) {
      refuse(response, { status: 403, code: 'AccessDeniedException', message: denial });
      return;
    }
    const fault = await awaitFault(this.options.onRequest, {
      service: 'lambda',
      operation: 'Invoke',
      resource: nameOrArn,
      invocationType: invocationTypeOf(request),
    });
    if (fault.kind === 'drop') {
      request.socket.destroy();
    } else if (fault.kind === 'error') {
      refuse(response, { status: fault.status, code: fault.code, message: 'injected fault' });
    } else {
      const tenantId = request.headers['x-amz-tenant-id'];
      const qualifier = url.searchParams.get('Qualifier') ?? undefined;
      const target = this.locate(nameOrArn, { qualifier, tenantId: tenantId?.toString() });
      if ('status' in target) refuse(response, target);
      else await this.invokeOverWire(target, { requestId, body, request, response });
    }
  }

  private async invokeOverWire(
    target: Target,
    wire: { requestId: string; body: Buffer; request: IncomingMessage; response: ServerResponse },
  ): Promise<void> {
    const { body, request, response } = wire;
    const type = invocationTypeOf(request);
    const badJson = body.length === 0 ? undefined : payloadRefusal(body);
    if (badJson !== undefined) {
      refuse(response, badJson);
    } else if (type === 'DryRun') {
      response.writeHead(204).end();
    } else if (type === 'Event') {
      const refusal = this.accept(target, body, wire.requestId);
      if (refusal === undefined) response.writeHead(202, { 'Content-Length': '0' }).end();
      else refuse(response, refusal);
    } else if (type === 'RequestResponse') {
      const outcome = await this.dispatcher.invoke(
        target.name,
        this.newInvocation(target, body, wire.requestId),
      );
      const wantsTail = request.headers['x-amz-log-type'] === 'Tail';
      if (outcome.kind === 'refused') refuse(response, outcome.refusal);
      else answer(response, outcome, wantsTail);
    } else {
      refuse(response, badParameter(`Unknown invocation type: ${type}`));
    }
  }

  /** Queues an asynchronous event, unless it is to get lost; twice, where it is to be repeated. */
  private accept(target: Target, body: Buffer, requestId: string): Refusal | undefined {
    if (body.length > MAX_ASYNC_BYTES) return requestTooLarge(MAX_ASYNC_BYTES);
    const invocation = { ...this.newInvocation(target, body, requestId), isAsynchronous: true };
    const fault = this.options.onAccepted?.(invocation.payload);
    if (fault === 'lose') return undefined;
    // As on AWS both have the one request id.
    if (fault === 'repeat') this.dispatcher.enqueue(target.name, invocation);
    return this.dispatcher.enqueue(target.name, invocation);
  }

  private newInvocation(target: Target, payload: Buffer, requestId: string = randomUUID()): Invocation {
    return {
      requestId,
      functionArn: target.functionArn,
      payload: payload.length === 0 ? EMPTY_EVENT : payload,
      isAsynchronous: false,
      ...(target.tenantId === undefined ? {} : { tenantId: target.tenantId }),
    };
  }

  private locate(
    nameOrArn: string,
    { qualifier: inQuery, tenantId }: { qualifier?: string | undefined; tenantId?: string | undefined },
  ): Target | Refusal {
    const parsed = parseFunctionName(nameOrArn);
    if (parsed === undefined) return badParameter(`Invalid function name: ${nameOrArn}`);
    const { region, accountId = DEFAULT_ACCOUNT_ID } = this.options;
    const qualifier = parsed.qualifier ?? inQuery;
    const arn = `arn:aws:lambda:${region}:${accountId}:function:${parsed.name}`;
    const functionArn = qualifier === undefined ? arn : `${arn}:${qualifier}`;
    const fn = this.dispatcher.find(parsed.name);
    const isKnown =
      fn !== undefined &&
      (qualifier === undefined || qualifier === '$LATEST' || fn.qualifiers?.includes(qualifier) === true);
    if (!isKnown) return notFound(functionArn);
    const refusal = tenantRefusal(fn.isPerTenant === true, tenantId);
    return refusal ?? { name: parsed.name, functionArn, ...(tenantId === undefined ? {} : { tenantId }) };
  }
}

function answer(
  response: ServerResponse,
  outcome: Exclude<InvokeOutcome, { kind: 'refused' }>,
  wantsTail: boolean,
): void {
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Content-Length': outcome.payload.length,
    'X-Amz-Executed-Version': '$LATEST',
    ...(outcome.kind === 'function-error' ? { 'X-Amz-Function-Error': 'Unhandled' } : {}),
    ...(wantsTail ? { 'X-Amz-Log-Result': Buffer.from(outcome.logTail).toString('base64') } : {}),
  });
  response.end(outcome.payload);
}
