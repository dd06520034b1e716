import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import { answerJson } from '../http/answer-json.ts';
import { awaitFault, type FaultHook } from '../http/fault-hook.ts';
import { listen } from '../http/listen.ts';
import { readBody } from '../http/read-body.ts';
import type { Principals } from '../http/principals.ts';
import { checkSigV4, type Credentials } from '../http/sigv4.ts';
import { parseFilterPattern, UnsupportedPatternError } from './filter-pattern.ts';
import { type LogPlace, readLogEvents } from './log-events.ts';

/** A log group: the directories whose `*.log` files are its streams. */
export interface LocalLogDirectories {
  readonly name: string;
  readonly directories: readonly string[];
}

export interface LogsServerOptions {
  /** Loopback port; 0 or absent takes a free one. */
  readonly port?: number;
  readonly credentials: Credentials;
  /** Whose keys are accepted; absent: `credentials` alone. */
  readonly principals?: Principals;
  readonly region: string;
  readonly logGroups: readonly LocalLogDirectories[];
  readonly onRequest?: FaultHook;
}

/** A running local CloudWatch Logs: FilterLogEvents and nothing else. */
export interface LogsServer {
  /** `http://127.0.0.1:PORT`, for the SDK's client. */
  readonly endpoint: string;
  close(): Promise<void>;
}

const TARGET_PREFIX = 'Logs_20140328.';
const MAX_BODY_BYTES = 1024 * 1024;
const MAX_PAGE_EVENTS = 10_000;
/** A path on this machine, and two numbers. */
const MAX_TOKEN_CHARACTERS = 10_000;
const ARN_NAME = /:log-group:([^:]+)/;

const placeSchema = z.object({ timestamp: z.number(), file: z.string(), line: z.int().min(0) });

const tokenOf = (place: LogPlace): string => Buffer.from(JSON.stringify(place)).toString('base64url');

function placeOf(token: string): LogPlace | undefined {
  try {
    return placeSchema.parse(JSON.parse(Buffer.from(token, 'base64url').toString()));
  } catch {
    return undefined;
  }
}

const requestSchema = z.looseObject({
  logGroupName: z.string().optional(),
  logGroupIdentifier: z.string().optional(),
  filterPattern: z.string().default(''),
  startTime: z.int().min(0).default(0),
  endTime: z.int().min(0).default(Number.MAX_SAFE_INTEGER),
  logStreamNames: z.array(z.string()).optional(),
  limit: z.int().min(1).max(MAX_PAGE_EVENTS).default(MAX_PAGE_EVENTS),
  nextToken: z
    .string()
    .max(MAX_TOKEN_CHARACTERS)
    .transform((token, context) => {
      const place = placeOf(token);
      if (place === undefined) context.addIssue('the token is none of these');
      return place ?? z.NEVER;
    })
    .optional(),
});

type FilterQuery = z.output<typeof requestSchema>;

class LogsError extends Error {
  override readonly name = 'LogsError';
  readonly code: string;
  readonly status: number;

  constructor(code: string, message: string, status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/**
 * Serves CloudWatch Logs' AWS JSON 1.1 protocol on the loopback interface, from the files that the local Lambda
 * and ECS write. A page's token is the place of its last line: what arrives meanwhile with an older time is not met.
 *
 * @throws PortTakenError if the port is in use.
 */
export async function startLogsServer(options: LogsServerOptions): Promise<LogsServer> {
  const listener = await listen((request, response) => serve(options, request, response), {
    port: options.port ?? 0,
  });
  return { endpoint: listener.endpoint, close: () => listener.close() };
}

async function serve(
  options: LogsServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const document = await perform(options, request);
    if (document === undefined) response.destroy();
    else answerJson(response, '1.1', 200, document);
  } catch (cause) {
    if (!(cause instanceof LogsError)) throw cause;
    answerJson(response, '1.1', cause.status, { __type: cause.code, message: cause.message });
  }
}

/** Undefined if the connection is to be dropped. */
async function perform(options: LogsServerOptions, request: IncomingMessage): Promise<object | undefined> {
  const { credentials, principals, region } = options;
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === 'too-large') throw new LogsError('RequestEntityTooLarge', 'The request is too large.', 413);
  const signature = checkSigV4(request, { credentials, principals, region, service: 'logs', body });
  if (!signature.ok) throw new LogsError(signature.jsonCode, signature.message, signature.status);
  const target = request.headers['x-amz-target'];
  const operation = typeof target === 'string' ? target.replace(TARGET_PREFIX, '') : '';
  const fault = await awaitFault(options.onRequest, { service: 'logs', operation, resource: '' });
  if (fault.kind === 'drop') return undefined;
  if (fault.kind === 'error') throw new LogsError(fault.code, 'injected', fault.status);
  if (operation !== 'FilterLogEvents')
    throw new LogsError('UnknownOperationException', `no operation ${operation}`);
  const query = parseQuery(body);
  const resource = nameOf(query);
  const denial = signature.principal.authorize?.({ service: 'logs', operation, resource, input: query });
  if (denial !== undefined) throw new LogsError('AccessDeniedException', denial);
  return filterLogEvents(options, query);
}

/** The group that a query asks for. */
function nameOf({ logGroupName, logGroupIdentifier = '' }: FilterQuery): string {
  return logGroupName ?? ARN_NAME.exec(logGroupIdentifier)?.[1] ?? logGroupIdentifier;
}

async function filterLogEvents({ logGroups }: LogsServerOptions, query: FilterQuery): Promise<object> {
  const name = nameOf(query);
  const group = logGroups.find((candidate) => candidate.name === name);
  if (group === undefined) {
    throw new LogsError('ResourceNotFoundException', 'The specified log group does not exist.');
  }
  const isMatch = filterOf(query.filterPattern);
  const streams = query.logStreamNames === undefined ? undefined : new Set(query.logStreamNames);
  const { startTime, endTime, limit, nextToken: after } = query;
  // One more tells whether there are more.
  const found = await readLogEvents(
    group.directories,
    startTime,
    ({ timestamp, message, logStreamName }) =>
      timestamp >= startTime &&
      timestamp < endTime &&
      (streams?.has(logStreamName) ?? true) &&
      isMatch(message),
    { limit: limit + 1, ...(after === undefined ? {} : { after }) },
  );
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return {
    events: page.map(({ event }) => event),
    searchedLogStreams: [],
    ...(found.length > limit && last !== undefined ? { nextToken: tokenOf(last.place) } : {}),
  };
}

function parseQuery(body: Buffer): FilterQuery {
  try {
    return requestSchema.parse(JSON.parse(body.toString('utf8')));
  } catch (cause) {
    throw new LogsError('InvalidParameterException', `The request is not valid: ${String(cause)}`);
  }
}

function filterOf(pattern: string): (message: string) => boolean {
  try {
    return parseFilterPattern(pattern);
  } catch (cause) {
    if (cause instanceof UnsupportedPatternError)
      throw new LogsError('InvalidParameterException', cause.message);
    throw cause;
  }
}
