import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { awaitFault, type FaultHook } from '../http/fault-hook.ts';
import { listen } from '../http/listen.ts';
import type { Credentials, Principals } from '../http/principals.ts';
import { readBody } from '../http/read-body.ts';
import { checkSigV4 } from '../http/sigv4.ts';
import type { RoleSessions } from '../iam/roles.ts';
import { type Assumed, assumeRole, StsError } from './assume-role.ts';
import { type KeptSession, SessionFile } from './session-file.ts';

export interface StsServerOptions {
  /** 0 or absent: any free port. */
  readonly port?: number;
  readonly credentials: Credentials;
  readonly principals?: Principals;
  readonly region: string;
  readonly sessions: RoleSessions;
  /** Keeps sessions beyond the life of the server; without it they end with it. */
  readonly sessionsPath?: string;
  readonly onRequest?: FaultHook;
}

/** A running STS. */
export interface StsServer {
  readonly endpoint: string;
  close(): Promise<void>;
}

interface ServiceParts extends StsServerOptions {
  readonly kept: SessionFile | undefined;
}

const MAX_BODY_BYTES = 64 * 1024;

/**
 * Serves AssumeRole of AWS STS's query protocol on the loopback interface.
 *
 * @throws PortTakenError if the port is in use.
 */
export async function startStsServer(options: StsServerOptions): Promise<StsServer> {
  const { sessions, sessionsPath } = options;
  const kept = sessionsPath === undefined ? undefined : new SessionFile(sessionsPath);
  await kept?.restore(sessions, Date.now());
  const listener = await listen((request, response) => serve({ ...options, kept }, request, response), {
    port: options.port ?? 0,
  });
  return { endpoint: listener.endpoint, close: () => listener.close() };
}

async function serve(
  options: ServiceParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const requestId = randomUUID();
  try {
    const assumed = await perform(options, request);
    if (assumed === 'drop') request.socket.destroy();
    else answer(response, 200, requestId, answerOf(assumed, requestId));
  } catch (cause) {
    if (!(cause instanceof StsError)) throw cause;
    answer(response, cause.status, requestId, errorOf(cause, requestId));
  }
}

async function perform(options: ServiceParts, request: IncomingMessage): Promise<Assumed | 'drop'> {
  const { credentials, principals, region, sessions } = options;
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === 'too-large') {
    request.resume();
    throw new StsError('ValidationError', 'The request is too large.', 413);
  }
  const signature = checkSigV4(request, { credentials, principals, region, service: 'sts', body });
  if (!signature.ok) throw new StsError(signature.jsonCode, signature.message, signature.status);
  const fields = new URLSearchParams(body.toString('utf8'));
  const operation = fields.get('Action') ?? '';
  if (request.method !== 'POST' || operation !== 'AssumeRole' || fields.get('Version') !== '2011-06-15')
    throw new StsError('InvalidAction', `Could not find operation ${operation}`);
  const resource = fields.get('RoleArn') ?? '';
  const fault = await awaitFault(options.onRequest, { service: 'sts', operation, resource });
  if (fault.kind === 'drop') return 'drop';
  if (fault.kind === 'error') throw new StsError(fault.code, 'injected fault', fault.status);
  const assumed = assumeRole(fields, signature.principal, sessions, Date.now());
  await options.kept?.add(keptOf(fields, assumed));
  return assumed;
}

function keptOf(fields: URLSearchParams, { credentials, expiresAtMs, tags }: Assumed): KeptSession {
  const policy = fields.get('Policy');
  return {
    roleArn: fields.get('RoleArn') ?? '',
    name: fields.get('RoleSessionName') ?? '',
    tags: [...tags],
    ...(policy === null ? {} : { policy }),
    credentials,
    expiresAtMs,
  };
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
const element = (name: string, ...content: readonly string[]): string =>
  `<${name}>${content.join('')}</${name}>`;
const text = (name: string, content: string): string => element(name, escaped(content));

const answerOf = ({ credentials, expiresAtMs, arn }: Assumed, requestId: string): string =>
  '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">' +
  element(
    'AssumeRoleResult',
    element(
      'Credentials',
      text('AccessKeyId', credentials.accessKeyId),
      text('SecretAccessKey', credentials.secretAccessKey),
      text('SessionToken', credentials.sessionToken),
      text('Expiration', new Date(expiresAtMs).toISOString()),
    ),
    element('AssumedRoleUser', text('AssumedRoleId', credentials.accessKeyId), text('Arn', arn)),
  ) +
  element('ResponseMetadata', text('RequestId', requestId)) +
  '</AssumeRoleResponse>';

const errorOf = ({ code, message, status }: StsError, requestId: string): string =>
  '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">' +
  element(
    'Error',
    text('Type', status < 500 ? 'Sender' : 'Receiver'),
    text('Code', code),
    text('Message', message),
  ) +
  text('RequestId', requestId) +
  '</ErrorResponse>';

function answer(response: ServerResponse, status: number, requestId: string, body: string): void {
  response.writeHead(status, {
    'content-type': 'text/xml',
    'content-length': Buffer.byteLength(body),
    'x-amzn-requestid': requestId,
  });
  response.end(body);
}
