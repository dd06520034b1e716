/**
 * What runs inside an environment: loads the handler, then answers invocations
 * through the Runtime API, as AWS's own client for Node 24 does (so: no
 * callback handlers, console lines with time, request id and level).
 */
import { existsSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { flushCompileCache } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { format } from 'node:util';
import { setFlagsFromString } from 'node:v8';

import { Agent, request } from '../http/node-http.ts';
import { endProcessGroup, endWithParent } from './end-with-parent.ts';

type Handler = (event: unknown, context: object) => unknown;

interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const API_PATH = '/2018-06-01/runtime';
const COMPILED_AFTER_MS = 300;
/** Node 24 has 13.6. */
const FIRST_V8_WITH_ONE_LIMIT = 13;
const agent = new Agent({ keepAlive: true, maxSockets: 2 });
let currentRequestId: string | undefined;

class RuntimeError extends Error {
  override readonly name: string;

  constructor(name: string, message: string) {
    super(message);
    this.name = name;
  }
}

function setting(name: string): string {
  return process.env[name] ?? '';
}

/** Read once, before the function's code can change the variables. */
const AUTHORIZATION = `Bearer ${setting('AWS_LAMBDA_METADATA_TOKEN')}`;

function callRuntimeApi(
  method: 'GET' | 'POST',
  path: string,
  body?: { readonly json: string; readonly errorType?: string },
): Promise<Reply> {
  const [host, port] = setting('AWS_LAMBDA_RUNTIME_API').split(':');
  const headers: Record<string, string | number> = { authorization: AUTHORIZATION };
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
    headers['Content-Length'] = Buffer.byteLength(body.json);
    if (body.errorType !== undefined) {
      headers['Lambda-Runtime-Function-Error-Type'] = body.errorType;
    }
  }
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host, port, method, path: `${API_PATH}${path}`, headers, agent },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.once('error', reject);
        incoming.once('end', () => {
          resolve({
            status: incoming.statusCode ?? 0,
            headers: incoming.headers,
            body: Buffer.concat(chunks),
          });
        });
      },
    );
    outgoing.once('error', reject);
    outgoing.end(body?.json);
  });
}

function describeError(error: unknown): { errorType: string; errorMessage: string; trace: string[] } {
  if (error instanceof Error) {
    return {
      errorType: error.name,
      errorMessage: error.message,
      trace: (error.stack ?? '').split('\n'),
    };
  }
  return { errorType: typeof error, errorMessage: String(error), trace: [] };
}

function resolveModule(): { file: string; exportPath: string[] } {
  const handler = setting('_HANDLER');
  const base = basename(handler);
  const dot = base.indexOf('.');
  if (dot <= 0 || dot === base.length - 1 || handler.includes('..')) {
    throw new RuntimeError('Runtime.MalformedHandlerName', `Bad handler: ${handler}`);
  }
  const stem = join(setting('LAMBDA_TASK_ROOT'), dirname(handler), base.slice(0, dot));
  const file = ['.js', '.mjs', '.cjs'].map((end) => `${stem}${end}`).find((path) => existsSync(path));
  if (file === undefined) {
    throw new RuntimeError(
      'Runtime.ImportModuleError',
      `Error: Cannot find module '${base.slice(0, dot)}' in ${setting('LAMBDA_TASK_ROOT')}`,
    );
  }
  return { file, exportPath: base.slice(dot + 1).split('.') };
}

function pickExport(loaded: unknown, path: readonly string[]): unknown {
  let value = loaded;
  for (const key of path) {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
    value = Reflect.get(value, key);
  }
  return value;
}

function isHandler(value: unknown): value is Handler {
  return typeof value === 'function';
}

async function loadHandler(): Promise<Handler> {
  const { file, exportPath } = resolveModule();
  let loaded: unknown;
  try {
    loaded = await import(pathToFileURL(file).href);
  } catch (cause) {
    if (cause instanceof SyntaxError) throw new RuntimeError('Runtime.UserCodeSyntaxError', String(cause));
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    if (code === 'MODULE_NOT_FOUND' || code === 'ERR_MODULE_NOT_FOUND') {
      throw new RuntimeError('Runtime.ImportModuleError', String(cause));
    }
    throw cause;
  }
  const handler = pickExport(loaded, exportPath) ?? pickExport(loaded, ['default', ...exportPath]);
  if (!isHandler(handler)) {
    throw new RuntimeError('Runtime.HandlerNotFound', `${setting('_HANDLER')} is undefined or not exported`);
  }
  if (handler.length >= 3) {
    throw new RuntimeError(
      'Runtime.CallbackHandlerDeprecated',
      'AWS Lambda has removed support for callback-based function handlers starting with Node.js 24.',
    );
  }
  return handler;
}

function formatConsoleLikeLambda(): void {
  const levels = { log: 'INFO', info: 'INFO', debug: 'DEBUG', trace: 'TRACE', warn: 'WARN', error: 'ERROR' };
  const asJson = setting('AWS_LAMBDA_LOG_FORMAT') === 'JSON';
  for (const [method, level] of Object.entries(levels)) {
    Reflect.set(console, method, (...args: unknown[]) => {
      const timestamp = new Date().toISOString();
      const requestId = currentRequestId;
      if (asJson) {
        const message = args.length === 1 ? args[0] : format(...args);
        process.stdout.write(`${JSON.stringify({ timestamp, level, requestId, message })}\n`);
      } else {
        process.stdout.write(`${timestamp}\t${requestId ?? 'undefined'}\t${level}\t${format(...args)}\n`);
      }
    });
  }
}

function buildContext(headers: IncomingHttpHeaders, requestId: string): object {
  const deadlineMs = Number(headers['lambda-runtime-deadline-ms']);
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName: setting('AWS_LAMBDA_FUNCTION_NAME'),
    functionVersion: setting('AWS_LAMBDA_FUNCTION_VERSION'),
    memoryLimitInMB: setting('AWS_LAMBDA_FUNCTION_MEMORY_SIZE'),
    logGroupName: setting('AWS_LAMBDA_LOG_GROUP_NAME'),
    logStreamName: setting('AWS_LAMBDA_LOG_STREAM_NAME'),
    invokedFunctionArn: headers['lambda-runtime-invoked-function-arn'],
    awsRequestId: requestId,
    tenantId: headers['lambda-runtime-aws-tenant-id'],
    getRemainingTimeInMillis: () => Math.max(0, deadlineMs - Date.now()),
  };
}

async function postError(path: string, error: unknown): Promise<void> {
  const body = describeError(error);
  await callRuntimeApi('POST', path, { json: JSON.stringify(body), errorType: body.errorType });
}

function stringifyResult(result: unknown): string {
  try {
    return result === undefined ? 'null' : JSON.stringify(result);
  } catch (cause) {
    throw new RuntimeError('Runtime.MarshalError', `Unable to stringify response body: ${String(cause)}`);
  }
}

async function serveOne(handler: Handler): Promise<void> {
  const next = await callRuntimeApi('GET', '/invocation/next');
  const requestId = String(next.headers['lambda-runtime-aws-request-id']);
  const traceId = next.headers['lambda-runtime-trace-id'];
  if (typeof traceId === 'string') process.env['_X_AMZN_TRACE_ID'] = traceId;
  currentRequestId = requestId;

  let json: string;
  try {
    const event: unknown = JSON.parse(next.body.toString('utf8'));
    json = stringifyResult(await handler(event, buildContext(next.headers, requestId)));
  } catch (error) {
    console.error('Invoke Error', JSON.stringify(describeError(error)));
    await postError(`/invocation/${requestId}/error`, error);
    return;
  }
  await callRuntimeApi('POST', `/invocation/${requestId}/response`, { json });
}

/** Reports a fault outside any handler's reach, and ends as AWS's client does. */
function failHard(error: unknown, exitCode: number): void {
  console.error('Uncaught', JSON.stringify(describeError(error)));
  const path = currentRequestId === undefined ? '/init/error' : `/invocation/${currentRequestId}/error`;
  postError(path, error)
    .catch(() => undefined)
    .finally(() => process.exit(exitCode));
}

/** Soon after the start, since the process will be killed; nothing where nothing is kept or all is kept already. */
function keepCompiled(): void {
  if (setting('NODE_COMPILE_CACHE') === '') return;
  setTimeout(flushCompileCache, COMPILED_AFTER_MS).unref();
}

/**
 * Memory outside of the heap, such as that of buffers, counts towards the limit of the heap, and not towards one of its
 * own of 64 MB: at each of these V8 would mark the whole heap, which costs a worker a fifth of its time. Set here, since
 * a Node whose V8 does not know a flag would not start with it. Before any code of the function is compiled: what is kept
 * of compiled code is kept by flags.
 */
function countBuffersWithHeap(): void {
  if (Number.parseInt(process.versions.v8, 10) >= FIRST_V8_WITH_ONE_LIMIT)
    setFlagsFromString('--external-memory-accounted-in-global-limit');
}

async function main(): Promise<void> {
  countBuffersWithHeap();
  endWithParent();
  formatConsoleLikeLambda();
  process.on('uncaughtException', (error) => {
    failHard(error, 129);
  });
  process.on('unhandledRejection', (reason) => {
    failHard(new RuntimeError('Runtime.UnhandledPromiseRejection', String(reason)), 128);
  });

  let handler: Handler;
  try {
    handler = await loadHandler();
  } catch (error) {
    failHard(error, 1);
    return;
  }
  keepCompiled();
  // Ends when the environment's server goes away, or the process is killed.
  for (;;) {
    try {
      await serveOne(handler);
    } catch {
      endProcessGroup();
    }
  }
}

await main();
