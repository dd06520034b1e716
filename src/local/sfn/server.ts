import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import { STORAGE_FULL } from '../../contracts/errors.ts';
import { fullDiskText } from '../full-disk.ts';
import { answerJson } from '../http/answer-json.ts';
import { awaitFault } from '../http/fault-hook.ts';
import type { FaultHook } from '../http/fault-hook.ts';
import { listen } from '../http/listen.ts';
import { readBody } from '../http/read-body.ts';
import type { Principals } from '../http/principals.ts';
import { checkSigV4 } from '../http/sigv4.ts';
import type { Credentials } from '../http/sigv4.ts';
import type { ExecutionRecord } from './execution-log.ts';
import { loadInterpreter } from './interpreter.ts';
import { StatesApi } from './states-api.ts';
import { StatesError } from './states-error.ts';
import { executionOfToken } from './task-tokens.ts';
import type { LocalStateMachine } from './states-api.ts';
import type { InvokeLambda } from './execution.ts';

export interface StepFunctionsOptions {
  /** Loopback port; 0 or absent takes a free one. */
  readonly port?: number;
  readonly credentials: Credentials;
  /** Whose keys are accepted; absent: `credentials` alone. */
  readonly principals?: Principals;
  readonly region: string;
  readonly stateMachines: readonly LocalStateMachine[];
  readonly invokeLambda: InvokeLambda;
  /** Where executions are kept as JSON lines; those that ran when they were left go on. Absent: in memory only. */
  readonly runDir?: string;
  /** Told of each execution that begins or ends. */
  readonly onStatus?: (record: ExecutionRecord) => void;
  /** Told why an execution cannot be kept on record any more, as on a full disk; it is suspended by then. */
  readonly onUnwritable?: (error: Error) => void;
  /** Makes requests fail at will; asked before each is served. */
  readonly onRequest?: FaultHook;
}

export interface StepFunctionsServer {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string;
  /** Loads what the first execution needs, so that it need not wait for it. */
  prepare(): void;
  /** Suspends what runs, which the next server over the same directory resumes; then stops listening. */
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 2 * 1024 * 1024;
const TARGET_PREFIX = 'AWSStepFunctions.';

/**
 * Serves Step Functions' AWS JSON 1.0 protocol on the loopback interface.
 *
 * @throws UnsupportedDefinitionError for a definition outside the supported subset;
 * PortTakenError if the port is in use.
 */
export async function startStepFunctionsServer(options: StepFunctionsOptions): Promise<StepFunctionsServer> {
  const api = new StatesApi(options);
  const listener = await listen((request, response) => serve(options, api, request, response), {
    port: options.port ?? 0,
  });
  return {
    endpoint: listener.endpoint,
    prepare: () => {
      // The first execution tells what is wrong with it.
      loadInterpreter().catch(() => undefined);
    },
    close: async () => {
      api.suspendAll();
      await listener.close();
    },
  };
}

async function serve(
  options: StepFunctionsOptions,
  api: StatesApi,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === 'too-large') {
    answerError(response, 413, 'RequestEntityTooLarge', 'The request is too large.');
    return;
  }
  const signature = checkSigV4(request, {
    credentials: options.credentials,
    principals: options.principals,
    region: options.region,
    service: 'states',
    body,
  });
  if (!signature.ok) {
    answerError(response, signature.status, signature.jsonCode, signature.message);
    return;
  }
  const target = request.headers['x-amz-target'];
  const operation =
    typeof target === 'string' && target.startsWith(TARGET_PREFIX) ? target.slice(TARGET_PREFIX.length) : '';
  const input = parseBody(body);
  if (input === undefined) {
    answerError(response, 400, 'SerializationException', 'The body is not a JSON object.');
    return;
  }

  const resource = resourceOf(input);
  const denial = signature.principal.authorize?.({ service: 'states', operation, resource, input });
  if (denial !== undefined) {
    answerError(response, 400, 'AccessDeniedException', denial);
    return;
  }
  const fault = await awaitFault(options.onRequest, { service: 'states', operation, resource });
  if (fault.kind === 'drop') {
    response.destroy();
    return;
  }
  if (fault.kind === 'error') {
    answerError(response, fault.status, fault.code, 'injected');
    return;
  }
  try {
    answerJson(response, '1.0', 200, api.perform(operation, input));
  } catch (cause) {
    // Not a fault of the service, for which clients would ask again and again: it lasts until somebody makes room.
    const full = fullDiskText(cause);
    if (full !== undefined) answerError(response, 400, STORAGE_FULL, full);
    else if (cause instanceof StatesError) answerError(response, 400, cause.code, cause.message);
    else throw cause;
  }
}

/** What a request is about; a task's token is about its state machine. */
function resourceOf(input: Readonly<Record<string, unknown>>): string {
  const { executionArn, stateMachineArn, taskToken } = input;
  if (typeof taskToken === 'string') {
    const execution = executionOfToken(taskToken) ?? '';
    return execution.replace(':execution:', ':stateMachine:').split(':').slice(0, 7).join(':');
  }
  return [executionArn, stateMachineArn].find((arn) => typeof arn === 'string') ?? '';
}

const jsonObject = z.record(z.string(), z.unknown());

function parseBody(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    return jsonObject.parse(JSON.parse(body.toString('utf8')));
  } catch {
    return undefined;
  }
}

function answerError(response: ServerResponse, status: number, code: string, message: string): void {
  answerJson(response, '1.0', status, { __type: code, message });
}
