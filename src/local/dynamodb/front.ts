import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as z from 'zod';
import { awaitFault, type FaultHook } from '../http/fault-hook.ts';
import { listen, type Listener } from '../http/listen.ts';
import type { Credentials, Principal, Principals } from '../http/principals.ts';
import { readBody } from '../http/read-body.ts';
import { checkSigV4 } from '../http/sigv4.ts';
import { type Engine, type EngineAnswer, errorAnswer } from './engine.ts';

export interface FrontOptions {
  readonly engine: Engine;
  /** Loopback port; 0 or absent takes a free one. */
  readonly port?: number;
  readonly credentials: Credentials;
  readonly principals?: Principals;
  readonly region: string;
  readonly onRequest?: FaultHook;
  /** `host:port` of proxies before it that pass requests on as they were signed. */
  readonly hosts?: ReadonlySet<string>;
}

/** DynamoDB accepts bodies up to 16 MB. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;
const TARGET = /^DynamoDB_20120810\.([A-Za-z]+)$/;
const tableSchema = z.looseObject({ TableName: z.string().optional() });

/**
 * Serves DynamoDB's JSON protocol on the loopback interface to those who sign their requests.
 *
 * @throws PortTakenError if the port is in use.
 */
export function startFront(options: FrontOptions): Promise<Listener> {
  return listen(
    async (request, response) => {
      const answer = await perform(options, request);
      if (answer === 'drop') request.socket.destroy();
      else send(response, answer);
    },
    { port: options.port ?? 0, ...(options.hosts === undefined ? {} : { hosts: options.hosts }) },
  );
}

async function perform(options: FrontOptions, request: IncomingMessage): Promise<EngineAnswer | 'drop'> {
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === 'too-large') {
    request.resume();
    return { ...errorAnswer('SerializationException', 'The request is too large.'), status: 413 };
  }
  const { credentials, principals, region, engine } = options;
  const signature = checkSigV4(request, { credentials, principals, region, service: 'dynamodb', body });
  if (!signature.ok) return errorAnswer(signature.jsonCode, signature.message);
  const target = request.headers['x-amz-target'];
  const operation = TARGET.exec(typeof target === 'string' ? target : '')?.[1];
  if (operation === undefined || request.method !== 'POST') {
    return errorAnswer('UnknownOperationException', '');
  }
  const denial = denialOf(signature.principal, operation, body);
  if (denial !== undefined) return errorAnswer('AccessDeniedException', denial);
  const fault = await awaitFault(options.onRequest, { service: 'dynamodb', operation, resource: '' });
  if (fault.kind === 'drop') return 'drop';
  if (fault.kind === 'error') return { ...errorAnswer(fault.code, 'injected'), status: fault.status };
  return engine.perform(operation, body);
}

/** The document is parsed only for those whom a policy binds. */
function denialOf({ authorize }: Principal, operation: string, body: Buffer): string | undefined {
  if (authorize === undefined) return undefined;
  let input: unknown;
  try {
    input = JSON.parse(body.toString('utf8'));
  } catch {
    return 'The request names nothing that could be allowed: it is no JSON.';
  }
  const resource = tableSchema.safeParse(input).data?.TableName ?? '';
  return authorize({ service: 'dynamodb', operation, resource, input });
}

function send(response: ServerResponse, { status, body }: EngineAnswer): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    'content-type': 'application/x-amz-json-1.0',
    'content-length': bytes.length,
    'x-amzn-requestid': randomUUID(),
  });
  response.end(bytes);
}
