import { isUtf8 } from 'node:buffer';
import { cancelJob, setDeadline } from '../../src/app/change-job.ts';
import { reconcileJob } from '../../src/app/end-orphans.ts';
import { listAllocations } from '../../src/app/list-allocations.ts';
import { listJournal } from '../../src/app/list-journal.ts';
import { planAhead } from '../../src/app/plan-ahead.ts';
import { findJob, listAttempts, listJobs, type PageQuery } from '../../src/app/query-jobs.ts';
import { submitJob, type SubmitDeps } from '../../src/app/submit-job.ts';
import { submissionOwner } from '../../src/app/tell-costs.ts';
import type { ErrorResponse } from '../../src/contracts/api.ts';
import {
  ErrorName,
  InvalidInputError,
  MediaTypeError,
  OutriderError,
  TooLargeError,
} from '../../src/contracts/errors.ts';
import { parseDocument } from '../../src/contracts/json-text.ts';
import { limits } from '../../src/contracts/limits.ts';
import type { AttemptStore } from '../../src/ports/attempt-store.ts';
import type { JournalStore } from '../../src/ports/journal-store.ts';
import type { DecisionLog } from '../../src/ports/job-store.ts';
import type { ForecastStore } from '../../src/ports/forecast-store.ts';
import type { Log } from '../../src/ports/log.ts';
import type { RequestMeter } from '../../src/ports/request-meter.ts';

/** What the API works with. */
export interface ApiDeps extends SubmitDeps {
  readonly attempts: AttemptStore;
  readonly decisions: DecisionLog;
  readonly journals: JournalStore;
  readonly log: Log;
  /** What was learned of recurring jobs; absent: nothing was. */
  readonly forecasts?: ForecastStore;
}

/** The parts of an API Gateway proxy event that the API reads. */
export interface ApiRequest {
  readonly httpMethod: string;
  /** The route's pattern, such as `/jobs/{id}`. */
  readonly resource: string;
  readonly pathParameters: Readonly<Record<string, string | undefined>> | null;
  readonly queryStringParameters: Readonly<Record<string, string | undefined>> | null;
  /** By names in any case. */
  readonly headers?: Readonly<Record<string, string | undefined>> | null;
  readonly body: string | null;
  readonly isBase64Encoded: boolean;
  readonly requestContext?: {
    readonly requestId?: string;
    readonly identity?: { readonly userArn?: string | null };
  };
}

export interface ApiAnswer {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

type Route = (deps: ApiDeps, request: ApiRequest) => Promise<{ status: number; body: unknown }>;

const idOf = (request: ApiRequest): string => request.pathParameters?.['id'] ?? '';

const pageOf = (query: ApiRequest['queryStringParameters']): PageQuery => ({
  limit: query?.['limit'],
  cursor: query?.['cursor'],
});

/**
 * A web page may have a browser send a body of some other type without asking first. Who names no type is no browser;
 * API Gateway takes such a body for JSON.
 */
function checkType({ body, headers }: ApiRequest): void {
  if ((body ?? '') === '') return;
  for (const [name, type] of Object.entries(headers ?? {})) {
    if (name.toLowerCase() !== 'content-type' || type === undefined) continue;
    const [essence = ''] = type.split(';');
    if (essence.trim().toLowerCase() === 'application/json') continue;
    throw new MediaTypeError('body must be sent as content-type: application/json', { field: 'body' });
  }
}

/** The JSON of a request's body. What is too large or not text is refused before anything is parsed. */
function bodyOf(request: ApiRequest): unknown {
  const { isBase64Encoded } = request;
  const body = request.body ?? '';
  // A body in base64 is longer than what it holds.
  if (body.length > limits.bodyBytes * (isBase64Encoded ? 4 / 3 + 1 : 1)) throw tooLarge();
  const bytes = Buffer.from(body, isBase64Encoded ? 'base64' : 'utf8');
  if (bytes.length > limits.bodyBytes) throw tooLarge();
  if (!isUtf8(bytes)) throw new InvalidInputError('body must be text in UTF-8', { field: 'body' });
  return parseDocument(isBase64Encoded ? bytes.toString('utf8') : body, 'body');
}

const tooLarge = (): TooLargeError =>
  new TooLargeError(`body must be at most ${String(limits.bodyBytes)} bytes`, { field: 'body' });

const ok = (body: unknown): { status: number; body: unknown } => ({ status: 200, body });

const routes: ReadonlyMap<string, Route> = new Map<string, Route>(
  Object.entries<Route>({
    'POST /jobs': async (deps, request) => {
      const submit = () => submitJob(deps, bodyOf(request));
      const outcome = await (deps.requests === undefined ? submit() : counted(deps.requests, submit));
      return { status: outcome.started ? 201 : 200, body: outcome };
    },
    'POST /plans': async (deps, request) => ok(await planAhead(deps, bodyOf(request))),
    'GET /jobs': async (deps, { queryStringParameters: query }) =>
      ok(await listJobs(deps.jobs, pageOf(query))),
    'GET /jobs/{id}': async (deps, request) =>
      ok(await reconcileJob(deps, await findJob(deps.jobs, idOf(request)))),
    'GET /jobs/{id}/attempts': async (deps, request) =>
      ok(await listAttempts(deps, idOf(request), pageOf(request.queryStringParameters))),
    'GET /jobs/{id}/allocations': async (deps, request) => ok(await listAllocations(deps, idOf(request))),
    'GET /jobs/{id}/journal': async (deps, request) =>
      ok(await listJournal(deps, idOf(request), pageOf(request.queryStringParameters))),
    'POST /jobs/{id}/cancel': async (deps, request) => ok(await cancelJob(deps, idOf(request))),
    'PUT /jobs/{id}/deadline': async (deps, request) =>
      ok(await setDeadline(deps, idOf(request), bodyOf(request))),
  }),
);

/** The routes by method and pattern, such as `GET /jobs/{id}`. */
export const routeNames: readonly string[] = [...routes.keys()];

/** What a submission asks for is the job's. What an earlier one that was refused has asked for is nobody's. */
function counted<T>(requests: RequestMeter, submit: () => Promise<T>): Promise<T> {
  requests.take(submissionOwner);
  return requests.counting(submissionOwner, () => {
    requests.count({ api: 1, lambda: 1 });
    return submit();
  });
}

const statusOf: ReadonlyMap<string, number> = new Map<string, number>([
  [ErrorName.InvalidInput, 400],
  [ErrorName.TooLarge, 413],
  [ErrorName.UnsupportedMediaType, 415],
  [ErrorName.NotFound, 404],
  [ErrorName.Conflict, 409],
  // The request contradicts what is there; asked again, it would be answered alike.
  [ErrorName.UnreadableRecord, 409],
  // The deployment lacks a right, not the caller, whom the gateway has let in.
  [ErrorName.AccessDenied, 502],
  [ErrorName.StoreRefused, 502],
  [ErrorName.StoreUnavailable, 503],
]);

function answerError(deps: ApiDeps, error: unknown): ApiAnswer {
  const known = error instanceof OutriderError ? statusOf.get(error.name) : undefined;
  if (!(error instanceof OutriderError) || known === undefined) {
    deps.log.warn('request failed', {
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
    return reply(500, { error: 'InternalError', message: 'internal error' } satisfies ErrorResponse);
  }
  const field = error.details['field'];
  const body: ErrorResponse = {
    error: error.name,
    message: error.message,
    ...(typeof field === 'string' ? { field } : {}),
  };
  return known === 503 ? reply(known, body, { 'retry-after': retryAfterSeconds }) : reply(known, body);
}

/** When it is worth asking again where a store is away or throttles. */
const retryAfterSeconds = '2';

const reply = (statusCode: number, body: unknown, headers: Record<string, string> = {}): ApiAnswer => ({
  statusCode,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

/** Answers one request; errors become answers with a status, never exceptions. */
export async function answer(deps: ApiDeps, request: ApiRequest): Promise<ApiAnswer> {
  const name = `${request.httpMethod} ${request.resource}`;
  const answered = await answerRoute(deps, request, routes.get(name));
  const { requestContext } = request;
  deps.log.info('request', {
    route: name,
    status: answered.statusCode,
    caller: requestContext?.identity?.userArn ?? undefined,
    requestId: requestContext?.requestId,
  });
  return answered;
}

async function answerRoute(deps: ApiDeps, request: ApiRequest, route: Route | undefined): Promise<ApiAnswer> {
  if (route === undefined)
    return reply(404, { error: ErrorName.NotFound, message: 'no such route' } satisfies ErrorResponse);
  try {
    checkType(request);
    const { status, body } = await route(deps, request);
    return reply(status, body);
  } catch (error) {
    return answerError(deps, error);
  }
}
