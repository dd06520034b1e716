import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';

import { awaitFault } from '../http/fault-hook.ts';
import { listen } from '../http/listen.ts';
import { readBody } from '../http/read-body.ts';
import { checkSigV4 } from '../http/sigv4.ts';
import { ClusterService } from './cluster-service.ts';
import { EcsError } from './model.ts';
import type { EcsServerOptions, TaskView } from './model.ts';
import { parseFields, readText } from './request.ts';
import type { Fields } from './request.ts';

export type { EcsServerOptions, LocalTaskDefinition, TaskView } from './model.ts';

/** A running local ECS. */
export interface EcsServer {
  /** `http://127.0.0.1:PORT`, for the SDK's client. */
  readonly endpoint: string;
  /** Running tasks and the last 1,000 stopped ones, oldest first. */
  tasks(): TaskView[];
  /** Stops listening and ends all tasks. */
  close(): Promise<void>;
}

const TARGET = /^AmazonEC2ContainerServiceV20141113\.(\w+)$/;
const METADATA_PATH = '/v4';
const METADATA_URL = /^\/v4\/([0-9a-f]{32})(\/task)?$/;
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Serves RunTask, StopTask, DescribeTasks and ListTasks in the AWS JSON 1.1
 * protocol on loopback, a process per task, and the task metadata endpoint.
 *
 * Throws PortTakenError if the port is taken, RangeError on a bad limit, and
 * the system's error if the log folder cannot be made.
 */
export async function startEcsServer(options: EcsServerOptions): Promise<EcsServer> {
  mkdirSync(options.logDir, { recursive: true });
  let endpoint = '';
  const service = new ClusterService(options, () => `${endpoint}${METADATA_PATH}`);
  const listener = await listen((request, response) => serve({ service, options, request, response }), {
    port: options.port ?? 0,
    ...(options.hosts === undefined ? {} : { hosts: options.hosts }),
  });
  endpoint = listener.endpoint;
  return {
    endpoint,
    tasks: () => service.views(),
    close: async () => {
      await Promise.all([service.close(), listener.close()]);
    },
  };
}

interface Exchange {
  readonly service: ClusterService;
  readonly options: EcsServerOptions;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

function answer(
  response: ServerResponse,
  status: number,
  body: object,
  contentType = 'application/x-amz-json-1.1',
): void {
  const json = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(json) });
  response.end(json);
}

function refuse(response: ServerResponse, error: EcsError): void {
  answer(response, error.status, { __type: error.code, message: error.message, ...error.details });
}

function serveMetadata({ service, request, response }: Exchange): void {
  const [, metadataId = '', suffix] = METADATA_URL.exec(request.url ?? '') ?? [];
  const task = service.find(metadataId);
  if (task === undefined) answer(response, 404, { message: 'no such task' }, 'application/json');
  else
    answer(
      response,
      200,
      suffix === undefined ? task.containerMetadata() : task.metadata(),
      'application/json',
    );
}

function perform(service: ClusterService, operation: string, fields: Fields): object {
  switch (operation) {
    case 'RunTask':
      return service.runTask(fields);
    case 'StopTask':
      return service.stopTask(fields);
    case 'DescribeTasks':
      return service.describeTasks(fields);
    case 'ListTasks':
      return service.listTasks(fields);
    default:
      throw new EcsError('UnknownOperationException', `no such operation: ${operation}`);
  }
}

/** Undefined if the connection is to be dropped without an answer. */
async function performRequest(exchange: Exchange): Promise<object | undefined> {
  const { service, options, request } = exchange;
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === 'too-large') {
    request.resume();
    throw new EcsError('RequestEntityTooLargeException', 'The request is too large.', { status: 413 });
  }
  const signature = checkSigV4(request, {
    credentials: options.credentials,
    principals: options.principals,
    region: options.region,
    service: 'ecs',
    body,
  });
  if (!signature.ok) throw new EcsError(signature.jsonCode, signature.message, { status: signature.status });

  const target = request.headers['x-amz-target'];
  const operation = TARGET.exec(typeof target === 'string' ? target : '')?.[1];
  if (operation === undefined || request.method !== 'POST') {
    throw new EcsError('UnknownOperationException', `no such operation: ${String(target)}`);
  }
  const fields = parseFields(body.toString('utf8'));
  const resource =
    readText(fields, 'task') ?? readText(fields, 'taskDefinition') ?? readText(fields, 'cluster') ?? '';
  const denial = signature.principal.authorize?.({ service: 'ecs', operation, resource, input: fields });
  if (denial !== undefined) throw new EcsError('AccessDeniedException', denial);
  const fault = await awaitFault(options.onRequest, { service: 'ecs', operation, resource });
  if (fault.kind === 'drop') return undefined;
  if (fault.kind === 'error') throw new EcsError(fault.code, 'injected fault', { status: fault.status });
  return perform(service, operation, fields);
}

async function serve(exchange: Exchange): Promise<void> {
  const { request, response } = exchange;
  if (request.method === 'GET' && METADATA_URL.test(request.url ?? '')) {
    serveMetadata(exchange);
    return;
  }
  response.setHeader('x-amzn-RequestId', randomUUID());
  try {
    const body = await performRequest(exchange);
    if (body === undefined) request.socket.destroy();
    else answer(response, 200, body);
  } catch (cause) {
    if (!(cause instanceof EcsError)) throw cause;
    refuse(response, cause);
  }
}
