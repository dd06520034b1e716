import { Sha256 } from '@aws-crypto/sha256-js';
import { SignatureV4 } from '@smithy/signature-v4';
import { setTimeout as delay } from 'node:timers/promises';
import type {
  AllocationsResponse,
  AttemptsResponse,
  ErrorResponse,
  JournalResponse,
  ListResponse,
  SubmitRequest,
  SubmitResponse,
} from '../contracts/api.ts';
import {
  AccessDeniedError,
  ConflictError,
  ErrorName,
  InvalidInputError,
  NotFoundError,
  OutriderError,
  StoreRefusedError,
} from '../contracts/errors.ts';
import type { PlanRequest, PlanResponse } from '../contracts/plans.ts';
import type { JobRecord } from '../contracts/records.ts';
import { eachPage } from '../lib/pages.ts';
import { ServiceUnavailableError, systemCode } from './failures.ts';
import { exchange, type HttpAnswer } from './http-exchange.ts';

export interface ApiCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/**
 * Gives keys when they are needed, and new ones when those that it gave have run out: a long wait outlasts a session.
 * With `renew` what it has kept counts as refused.
 */
export type CredentialSource = (options?: { readonly renew?: boolean }) => Promise<ApiCredentials>;

/** Where the REST API is and as whom to ask. */
export interface ApiSettings {
  /** URL of the API's stage, with or without a slash at its end. */
  readonly apiUrl: string;
  readonly region: string;
  readonly credentials: ApiCredentials | CredentialSource;
  /** Attempts of one request before it counts as unavailable. Default 5. */
  readonly attempts?: number;
  /** Wait before the second attempt; doubled for each further one. Default 200. */
  readonly backoffMs?: number;
  /** How long a submission is sent again while the service says that it is busy. Default ten minutes. */
  readonly patienceMs?: number;
}

/**
 * The REST API (`contracts/api.ts`). Every call throws `InvalidInputError`, `NotFoundError` or `ConflictError`
 * as the API says, and `ServiceUnavailableError` where it does not answer after several attempts; its details say `isUnsent`
 * where none of them can have reached anybody, and those of every refusal `isUnsent: false` where an earlier one may have.
 */
export interface ApiClient {
  readonly apiUrl: string;
  /** Give a client token: a request whose answer was lost is sent again. Where the signal fires it may have been accepted. */
  submit(request: SubmitRequest, signal?: AbortSignal): Promise<SubmitResponse>;
  /** What a job would take and cost; nothing is started. */
  plan(request: PlanRequest): Promise<PlanResponse>;
  job(jobId: string, signal?: AbortSignal): Promise<JobRecord>;
  /** All of them, page by page. */
  attempts(jobId: string, signal?: AbortSignal): Promise<Omit<AttemptsResponse, 'cursor'>>;
  /** What it has asked for on its way, for its deadline. */
  allocations(jobId: string): Promise<AllocationsResponse>;
  /** A page of what its schedulers have written down; all of them together, in order, are its journal. */
  journal(jobId: string, cursor?: string): Promise<JournalResponse>;
  /** One page, newest first. */
  list(page: { readonly limit?: number; readonly cursor?: string }): Promise<ListResponse>;
  /** The job as it is when the wish is recorded: it ends soon after. */
  cancel(jobId: string): Promise<JobRecord>;
  /** @param deadline - a length of time from when it is sent, an instant in ISO 8601, or `none`. */
  setDeadline(jobId: string, deadline: string): Promise<JobRecord>;
}

const requestTimeoutMs = 30_000;
const longestBackoffMs = 5_000;
const defaultPatienceMs = 600_000;
/** No answer makes the client wait for longer. */
const longestRetryAfterMs = 30_000;
/** The service is there, and says that it has no room now. */
const busyStatuses: readonly unknown[] = [429, 503];

/** Whether a service has answered, and that it has no room now. */
export const saysBusy = (error: ServiceUnavailableError): boolean =>
  busyStatuses.includes(error.details['status']);

/** A client that signs with Signature Version 4. Nothing is sent before the first call. */
export function makeApiClient(settings: ApiSettings): ApiClient {
  const base = settings.apiUrl.replace(/\/+$/, '');
  const call = <T>(method: string, path: string, options: CallOptions = {}): Promise<T> =>
    requestJson<T>(settings, method, new URL(`${base}${path}`), options);
  return {
    apiUrl: settings.apiUrl,
    submit: (body, signal) =>
      call('POST', '/jobs', {
        body,
        isPatient: body.clientToken !== undefined,
        ...optionalSignal(signal),
      }),
    plan: (body) => call('POST', '/plans', { body }),
    job: async (jobId, signal) => call('GET', jobPath(jobId), optionalSignal(signal)),
    attempts: async (jobId, signal) =>
      allAttempts((query) => call('GET', `${jobPath(jobId)}/attempts`, { query, ...optionalSignal(signal) })),
    allocations: async (jobId) => call('GET', `${jobPath(jobId)}/allocations`),
    journal: async (jobId, cursor) =>
      call('GET', `${jobPath(jobId)}/journal`, cursor === undefined ? {} : { query: { cursor } }),
    list: ({ limit, cursor }) =>
      call('GET', '/jobs', {
        query: {
          ...(limit === undefined ? {} : { limit: String(limit) }),
          ...(cursor === undefined ? {} : { cursor }),
        },
      }),
    cancel: async (jobId) => call('POST', `${jobPath(jobId)}/cancel`),
    setDeadline: async (jobId, deadline) => call('PUT', `${jobPath(jobId)}/deadline`, { body: { deadline } }),
  };
}

/** A job has at most so many tasks, stages and attempts of a task, and each page has one attempt at least. */
const mostPages = 100_000;

async function allAttempts(
  ask: (query: Readonly<Record<string, string>>) => Promise<AttemptsResponse>,
): Promise<Omit<AttemptsResponse, 'cursor'>> {
  const attempts: AttemptsResponse['attempts'][number][] = [];
  const askFrom = (cursor?: string): Promise<AttemptsResponse> => ask(cursor === undefined ? {} : { cursor });
  for await (const { attempts: some, unreadable, cursor } of eachPage(askFrom, mostPages)) {
    attempts.push(...some);
    if (cursor === undefined) return { attempts, ...(unreadable === undefined ? {} : { unreadable }) };
  }
  throw new ServiceUnavailableError('the list of attempts did not end', { pages: mostPages });
}

/** None of these can be a part of a path: "" would ask for the list of jobs, "." and ".." for something else. */
function jobPath(jobId: string): string {
  if (['', '.', '..'].includes(jobId)) throw new NotFoundError(`no such job: "${jobId}"`);
  return `/jobs/${encodeURIComponent(jobId)}`;
}

/** An answer which says that the keys have run out. */
class ExpiredCredentials extends Error {
  override readonly name = 'ExpiredCredentials';
  readonly refusal: Error;

  constructor(refusal: Error) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/** As API Gateway and its signers word it. */
const expiryWords = /expired/i;

interface CallOptions {
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** Sent again for long where the service is busy: of a submission with a token but one is ever taken. */
  readonly isPatient?: boolean;
}

/**
 * Sends until it is answered, or refused for good, or the attempts are used up, those of a patient call for as long as
 * its time lasts.
 */
async function requestJson<T>(
  settings: ApiSettings,
  method: string,
  url: URL,
  options: CallOptions,
): Promise<T> {
  const attempts = settings.attempts ?? 5;
  let backoffMs = settings.backoffMs ?? 200;
  let isExpired = false;
  let isUnsent = true;
  const giveUpAt = performance.now() + (settings.patienceMs ?? defaultPatienceMs);
  for (let attempt = 1; ; attempt++) {
    let leastMs = 0;
    try {
      return await sendOnce<T>(settings, method, url, { ...options, renew: isExpired });
    } catch (error) {
      if (error instanceof ExpiredCredentials) {
        // Once: keys that were refused as soon as they were fetched will be refused again.
        if (isExpired || typeof settings.credentials !== 'function')
          throw isUnsent ? error.refusal : afterLostAnswer(error.refusal);
        isExpired = true;
        continue;
      }
      if (options.signal?.aborted === true) throw error;
      if (!(error instanceof ServiceUnavailableError)) throw isUnsent ? error : afterLostAnswer(error);
      isUnsent &&= error.details['isUnsent'] === true;
      const isBusy = options.isPatient === true && saysBusy(error);
      if (isBusy ? performance.now() >= giveUpAt : attempt >= attempts)
        throw new ServiceUnavailableError(error.message, { ...error.details, isUnsent }, { cause: error });
      const asked = error.details['retryAfterMs'];
      if (typeof asked === 'number') leastMs = Math.min(longestRetryAfterMs, asked);
    }
    // Rivals that were told the same must not all come back at the same time.
    const pauseMs = Math.max(leastMs, backoffMs / 2) + Math.random() * (backoffMs / 2);
    await delay(pauseMs, undefined, optionalSignal(options.signal)).catch((error: unknown) => {
      options.signal?.throwIfAborted(); // Its reason says more than the timer's own error.
      throw error;
    });
    backoffMs = Math.min(longestBackoffMs, backoffMs * 2);
  }
}

/** A refusal, of whatever class, that says of its request that it may have been taken at an earlier try. */
const afterLostAnswer = (error: unknown): unknown =>
  error instanceof OutriderError
    ? Object.assign(error, { details: { ...error.details, isUnsent: false } })
    : error;

async function sendOnce<T>(
  settings: ApiSettings,
  method: string,
  url: URL,
  options: CallOptions & { readonly renew: boolean },
): Promise<T> {
  const query = options.query ?? {};
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  const credentials = await keysOf(settings, options.renew);
  const headers = await signedHeaders({ ...settings, credentials }, method, url, query, body);
  const target = new URL(url);
  target.search = queryText(query);
  const timeout = AbortSignal.timeout(requestTimeoutMs);
  const signal = options.signal === undefined ? timeout : AbortSignal.any([timeout, options.signal]);

  let received: HttpAnswer;
  try {
    received = await exchange(target, { method, headers, body, signal });
  } catch (cause) {
    options.signal?.throwIfAborted();
    throw new ServiceUnavailableError(
      `no answer from ${settings.apiUrl} (${networkReason(cause)}): is it up, and the endpoint right?`,
      { isUnsent: unsentCodes.includes(systemCode(networkCause(cause))) },
      { cause },
    );
  }
  const { status, retryAfter, text } = received;
  const answer = parseJson(text);
  if (status >= 200 && status < 300 && answer !== undefined) {
    // The API is ours and versioned with this client; its JSON is `contracts/api.ts`.
    return answer as T;
  }
  const refused = refusal(settings.apiUrl, { status, retryAfterMs: secondsOf(retryAfter) }, answer);
  const isKeys = status === 401 || status === 403;
  throw isKeys && expiryWords.test(refused.message) ? new ExpiredCredentials(refused) : refused;
}

const keysOf = ({ credentials }: ApiSettings, renew: boolean): Promise<ApiCredentials> =>
  typeof credentials === 'function' ? credentials({ renew }) : Promise.resolve(credentials);

async function signedHeaders(
  settings: { readonly region: string; readonly credentials: ApiCredentials },
  method: string,
  url: URL,
  query: Readonly<Record<string, string>>,
  body: string | undefined,
): Promise<Record<string, string>> {
  const signer = new SignatureV4({
    credentials: settings.credentials,
    region: settings.region,
    service: 'execute-api',
    sha256: Sha256,
  });
  const signed = await signer.sign({
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    path: url.pathname,
    query: { ...query },
    headers: { host: url.host, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    body,
  });
  // The host is set from the URL, to the same.
  return Object.fromEntries(Object.entries(signed.headers).filter(([name]) => name !== 'host'));
}

/** As it is signed: a space is %20, not the "+" of URLSearchParams. */
const queryText = (query: Readonly<Record<string, string>>): string =>
  Object.entries(query)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join('&')
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

/** Milliseconds of a Retry-After header in seconds; one with a date, or none, is no number. */
function secondsOf(header: string | undefined): number | undefined {
  const seconds = header === undefined ? NaN : Number(header);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : undefined;
}

function refusal(
  apiUrl: string,
  { status, retryAfterMs }: { readonly status: number; readonly retryAfterMs: number | undefined },
  answer: unknown,
): Error {
  const { error, message, field } = errorFields(answer);
  const text = message ?? `${apiUrl} answered with HTTP status ${String(status)}`;
  // The deployment lacks a right, or S3 refuses what it asks: asked again, it would be so still.
  if (error === ErrorName.AccessDenied) return new AccessDeniedError(text, { status });
  if (error === ErrorName.StoreRefused) return new StoreRefusedError(text, { status });
  if (status === 429 || status >= 500) {
    return new ServiceUnavailableError(`${apiUrl} cannot serve now: ${text}`, { status, retryAfterMs });
  }
  if (status === 404 && error !== undefined) return new NotFoundError(text, { status });
  if (status === 409) return new ConflictError(text, { status });
  if (status === 401 || status === 403) {
    return new InvalidInputError(`${apiUrl} refuses these AWS credentials: ${text}`, { status });
  }
  if (status === 404)
    return new InvalidInputError(`there is no Outrider API at ${apiUrl}: ${text}`, { status });
  const isNamed = field === undefined || field === '' || text.includes(field);
  return new InvalidInputError(isNamed ? text : `${field}: ${text}`, { status, field });
}

function errorFields(answer: unknown): Partial<ErrorResponse> {
  if (typeof answer !== 'object' || answer === null) return {};
  const read = (name: string): string | undefined => {
    const value: unknown = Reflect.get(answer, name);
    return typeof value === 'string' ? value : undefined;
  };
  const [error, message, field] = [read('error'), read('message') ?? read('Message'), read('field')];
  return {
    ...(error === undefined ? {} : { error }),
    ...(message === undefined ? {} : { message }),
    ...(field === undefined ? {} : { field }),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** There was no connection on which anything could have been sent. */
const unsentCodes: readonly unknown[] = ['ECONNREFUSED', 'ENOTFOUND'];

/** What was aborted has its reason, such as the time-out, as its cause; a name with several addresses an error for each. */
const networkCause = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? error.cause : error;

function networkReason(error: unknown): string {
  const cause = networkCause(error);
  if (cause instanceof Error && cause.name === 'TimeoutError') return 'timed out';
  if (cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED') return 'connection refused';
  if (cause instanceof Error && 'code' in cause && cause.code === 'ENOTFOUND') return 'no such host';
  return cause instanceof Error ? cause.message : String(cause);
}

const optionalSignal = (signal: AbortSignal | undefined): { signal?: AbortSignal } =>
  signal === undefined ? {} : { signal };
