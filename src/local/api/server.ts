import { isUtf8 } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { ErrorName } from '../../contracts/errors.ts';
import { awaitFault } from '../http/fault-hook.ts';
import type { FaultHook } from '../http/fault-hook.ts';
import { listen } from '../http/listen.ts';
import { readBody } from '../http/read-body.ts';
import { splitUrl } from '../http/canonical-request.ts';
import type { Principal, Principals } from '../http/principals.ts';
import { checkSigV4 } from '../http/sigv4.ts';
import type { Credentials, SigV4Refusal } from '../http/sigv4.ts';
import { buildProxyEvent } from './proxy-event.ts';
import { readProxyResponse } from './proxy-response.ts';
import { compileModel } from './request-model.ts';
import type { RequestModel } from './request-model.ts';
import { matchRoute } from './routes.ts';
import type { RouteMatch } from './routes.ts';

/** A method of a resource with its Lambda proxy integration. */
export interface ApiRoute {
  /** Upper case, or `ANY`. */
  readonly method: string;
  /** `/jobs/{id}`, without the stage. */
  readonly path: string;
  readonly functionName: string;
  readonly authorization: 'AWS_IAM' | 'NONE';
  /** The model of `application/json` bodies, where the method validates them. */
  readonly requestModel?: RequestModel;
}

/** A status and headers in place of API Gateway's own. */
export interface GatewayResponse {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ApiOptions {
  /** Loopback port; 0 or absent takes a free one. */
  readonly port?: number;
  readonly credentials: Credentials;
  /** Whose keys are accepted; absent: `credentials` alone. */
  readonly principals?: Principals;
  readonly region: string;
  /** The account that events name; default `000000000000`. */
  readonly accountId?: string;
  readonly stageName: string;
  readonly routes: readonly ApiRoute[];
  /** What the API's template changes of the answers that the front gives by itself, by the type of the answer. */
  readonly gatewayResponses?: ReadonlyMap<string, GatewayResponse>;
  /** Calls a function and waits for its result; throws if the function or the service fails. */
  readonly invoke: (functionName: string, event: unknown) => Promise<unknown>;
  /** How long a function may take; default 29 s, as on AWS. */
  readonly timeoutMs?: number;
  /** Makes requests fail at will; asked before each is served. */
  readonly onRequest?: FaultHook;
  /** Why nothing new can be begun, in words; undefined where it can. Asked before a job is submitted. */
  readonly whyNot?: () => Promise<string | undefined>;
}

export interface ApiServer {
  /** `http://127.0.0.1:PORT/STAGE` */
  readonly endpoint: string;
  close(): Promise<void>;
}

interface CheckedRoute extends ApiRoute {
  readonly isAllowed: ((body: string) => boolean) | undefined;
}

interface Front extends ApiOptions {
  readonly routes: readonly CheckedRoute[];
}

const MAX_BODY_BYTES = 10_485_760;
const INTEGRATION_TIMEOUT_MS = 29_000;

/**
 * Serves one stage of a REST API on the loopback interface: routes, IAM authorization,
 * validation of bodies, Lambda proxy integration.
 *
 * @throws UnsupportedModelError for a request model outside the supported subset;
 * PortTakenError if the port is in use.
 */
export async function startApiServer(options: ApiOptions): Promise<ApiServer> {
  const front: Front = {
    ...options,
    routes: options.routes.map((route) => ({
      ...route,
      isAllowed: route.requestModel === undefined ? undefined : compileModel(route.requestModel),
    })),
  };
  const listener = await listen((request, response) => serve(front, request, response), {
    port: options.port ?? 0,
  });
  return { endpoint: `${listener.endpoint}/${options.stageName}`, close: () => listener.close() };
}

/** An answer that the front gives by itself; `type` goes into `x-amzn-errortype`. */
interface Refusal {
  readonly status: number;
  readonly type: string;
  readonly message: string;
  /** The type of answer by which a template may change it. */
  readonly gatewayType?: string;
  /** The name of the error, where the front answers for the API behind it. */
  readonly error?: string;
}

// As AWS: who asks for a path or a method that does not exist learns only that a token is missing.
const NO_SUCH_ROUTE: Refusal = {
  status: 403,
  type: 'MissingAuthenticationTokenException',
  message: 'Missing Authentication Token',
};
const TOO_LARGE: Refusal = {
  status: 413,
  type: 'RequestEntityTooLargeException',
  message: `HTTP content length exceeded ${String(MAX_BODY_BYTES)} bytes.`,
};
const NOT_JSON: Refusal = {
  status: 415,
  type: 'UnsupportedMediaTypeException',
  message: 'Unsupported Media Type: a body must be sent as content-type: application/json',
};
/** A function takes less than the front does. */
const TOO_LARGE_TO_CALL: Refusal = { ...TOO_LARGE, message: 'Request Too Long' };
const BAD_BODY: Refusal = { status: 400, type: 'BadRequestException', message: 'Invalid request body' };
const MALFORMED: Refusal = {
  status: 502,
  type: 'InternalServerErrorException',
  message: 'Internal server error',
};
/** As AWS: a function that is throttled counts as a fault of configuration. */
const UNAVAILABLE: Refusal = { ...MALFORMED, status: 500, gatewayType: 'API_CONFIGURATION_ERROR' };
const TOO_LATE: Refusal = {
  status: 504,
  type: 'InternalServerErrorException',
  message: 'Endpoint request timed out',
};

async function serve(front: Front, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const requestId = randomUUID();
  const refuse = (refusal: Refusal): void => {
    const changed = front.gatewayResponses?.get(refusal.gatewayType ?? '');
    const headers = Object.entries(changed?.headers ?? {}).map(([name, value]) => [name, [value]] as const);
    send(response, requestId, {
      status: changed?.status ?? refusal.status,
      headers: {
        'content-type': ['application/json'],
        'x-amzn-errortype': [refusal.type],
        ...Object.fromEntries(headers),
      },
      body: Buffer.from(JSON.stringify({ error: refusal.error, message: refusal.message })),
    });
  };

  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === 'too-large') {
    response.setHeader('connection', 'close'); // The rest of the body is still on its way.
    refuse(TOO_LARGE);
    return;
  }
  const [fullPath, query] = splitUrl(request.url ?? '/');
  const path = withoutStage(front.stageName, fullPath);
  const match = path === undefined ? undefined : matchRoute(front.routes, request.method ?? 'GET', path);
  if (path === undefined || match === undefined) {
    refuse(NO_SUCH_ROUTE);
    return;
  }

  const subject = {
    service: 'execute-api',
    operation: `${match.route.method} ${match.route.path}`,
    resource: path,
  } as const;
  const fault = await awaitFault(front.onRequest, subject);
  if (fault.kind === 'drop') {
    response.destroy();
    return;
  }
  if (fault.kind === 'error') {
    refuse({ status: fault.status, type: fault.code, message: fault.code });
    return;
  }

  const caller = authorize(front, match.route, request, { body, path });
  const refusal =
    caller.refusal ?? validate(match.route, request, body) ?? (await hindrance(front, match.route));
  if (refusal !== undefined) {
    refuse(refusal);
    return;
  }
  const outcome = await integrate(
    front,
    match,
    eventOf(front, match, { request, body, requestId, path, query, caller }),
  );
  if ('type' in outcome) refuse(outcome);
  else send(response, requestId, outcome);
}

/** The path behind `/STAGE`, or `undefined` for another stage. */
function withoutStage(stageName: string, path: string): string | undefined {
  const prefix = `/${stageName}`;
  if (path === prefix) return '/';
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : undefined;
}

/** Who asks, or why nobody is answered. Without either the route is open to all. */
interface Caller {
  readonly refusal?: Refusal;
  readonly accessKeyId?: string;
  readonly principal?: Principal;
}

function authorize(
  front: Front,
  route: ApiRoute,
  request: IncomingMessage,
  { body, path }: { readonly body: Buffer; readonly path: string },
): Caller {
  if (route.authorization === 'NONE') return {};
  const { credentials, principals, region } = front;
  const result = checkSigV4(request, { credentials, principals, region, service: 'execute-api', body });
  if (!result.ok) return { refusal: refusalOf(result) };
  const { accessKeyId, principal } = result;
  const operation = `${route.method} ${route.path}`;
  const denial = principal.authorize?.({ service: 'execute-api', operation, resource: path });
  if (denial === undefined) return { accessKeyId, principal };
  return { refusal: { status: 403, type: 'AccessDeniedException', message: denial } };
}

/** API Gateway answers 403 to all of them, in its own words. */
function refusalOf({ code, jsonCode, message }: SigV4Refusal): Refusal {
  switch (code) {
    case 'AccessDenied':
      return NO_SUCH_ROUTE;
    case 'InvalidAccessKeyId':
      return {
        status: 403,
        type: jsonCode,
        message: 'The security token included in the request is invalid.',
      };
    default:
      return { status: 403, type: jsonCode, message };
  }
}

/** A page may have a browser send any body but one of this type without asking first. */
function validate(route: CheckedRoute, request: IncomingMessage, body: Buffer): Refusal | undefined {
  const [contentType = ''] = (request.headers['content-type'] ?? '').split(';');
  if (body.length > 0 && contentType.trim().toLowerCase() !== 'application/json') return NOT_JSON;
  if (route.isAllowed === undefined) return undefined;
  return isUtf8(body) && route.isAllowed(body.toString('utf8')) ? undefined : BAD_BODY;
}

/** AWS has always room: what is there alone would fail half-way for want of it, and be asked again. */
async function hindrance(front: Front, { method, path }: ApiRoute): Promise<Refusal | undefined> {
  if (method !== 'POST' || path !== '/jobs') return undefined;
  const message = await front.whyNot?.();
  if (message === undefined) return undefined;
  return { status: 507, type: 'InsufficientStorageException', error: ErrorName.StoreRefused, message };
}

interface Received {
  readonly request: IncomingMessage;
  readonly body: Buffer;
  readonly requestId: string;
  readonly path: string;
  readonly query: string;
  readonly caller: Caller;
}

function eventOf(front: Front, match: RouteMatch<CheckedRoute>, received: Received): unknown {
  return buildProxyEvent({
    ...received,
    stageName: front.stageName,
    accountId: front.accountId ?? '000000000000',
    resource: match.route.path,
    pathParameters: match.pathParameters,
    accessKey: received.caller.accessKeyId,
    userArn: received.caller.principal?.arn,
    nowMs: Date.now(),
  });
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly body: Buffer;
}

async function integrate(
  front: Front,
  match: RouteMatch<CheckedRoute>,
  event: unknown,
): Promise<Answer | Refusal> {
  const timer = new AbortController();
  try {
    const timeout = delay(front.timeoutMs ?? INTEGRATION_TIMEOUT_MS, TOO_LATE, { signal: timer.signal });
    timeout.catch(() => undefined); // It rejects when the function was faster.
    const answer = front
      .invoke(match.route.functionName, event)
      .then((result) => readProxyResponse(result) ?? MALFORMED);
    return await Promise.race([answer, timeout]);
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'Lambda.RequestTooLargeException') return TOO_LARGE_TO_CALL;
    // The function's own failure is a bad gateway; the service's, throttling say, is ours.
    return cause instanceof Error && cause.name.startsWith('Lambda.') ? UNAVAILABLE : MALFORMED;
  } finally {
    timer.abort();
  }
}

function send(response: ServerResponse, requestId: string, answer: Answer): void {
  for (const [name, values] of Object.entries(answer.headers)) response.setHeader(name, values);
  response.setHeader('x-amzn-requestid', requestId);
  response.setHeader('content-length', answer.body.length);
  response.statusCode = answer.status;
  response.end(answer.body);
}
