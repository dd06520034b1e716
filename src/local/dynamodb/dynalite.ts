import type { Agent as HttpAgent, ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request } from '../http/node-http.ts';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { readDocument } from './request-document.ts';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type PipedProcess, startPiped } from './child-process.ts';
import { DynamoDbUnavailableError, type Engine, type EngineAnswer, errorAnswer } from './engine.ts';

const READY_LIMIT_MS = 15_000;
const CONNECTIONS = 8;
const FIRST_CONNECTION = 3;
const MAX_WAITING = 4_096;
const GONE = 'The database does not answer';
const MAIN = fileURLToPath(new URL('./dynalite-main.ts', import.meta.url));
/** Dynalite wants a header of this shape; who asks has been checked before. */
const AUTHORIZATION =
  'AWS4-HMAC-SHA256 Credential=local/20200101/us-east-1/dynamodb/aws4_request, ' +
  'SignedHeaders=host;x-amz-date, Signature=0';

const require = createRequire(import.meta.url);

/** Whether Dynalite can be had. */
export function hasDynalite(): boolean {
  try {
    require.resolve('dynalite');
    return true;
  } catch {
    return false;
  }
}

/**
 * Starts Dynalite over a directory in `dir`, in a process of its own that is reached by a few connections which it
 * inherits: it has no address.
 *
 * @throws DynamoDbUnavailableError if it does not answer within 15 s.
 */
export async function startDynalite(dir: string): Promise<Engine> {
  const command = [process.execPath, MAIN, join(dir, 'dynamodb.level'), String(CONNECTIONS)];
  const pipes = Array.from({ length: CONNECTIONS }, () => 'pipe' as const);
  const piped = startPiped(command, ['pipe', 'ignore', 'pipe', ...pipes]);
  const engine = new Dynalite(piped);
  const isReady = await Promise.race([
    engine.perform('ListTables', Buffer.from('{}')).then(({ status }) => status === 200),
    piped.exited.then(() => false),
    delay(READY_LIMIT_MS, false, { ref: false }),
  ]);
  if (isReady) return engine;
  await engine.close();
  throw new DynamoDbUnavailableError(`dynalite did not start: ${piped.log()}`);
}

class Dynalite implements Engine {
  readonly pid: number;
  readonly exited: Promise<void>;
  private readonly piped: PipedProcess;
  private readonly agent: HttpAgent;
  private readonly waiting = new Set<() => void>();
  private isGone = false;

  constructor(piped: PipedProcess) {
    this.piped = piped;
    this.pid = piped.pid;
    this.exited = piped.exited;
    const free = piped.child.stdio.slice(FIRST_CONNECTION).filter((each) => each instanceof Duplex);
    this.agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    // Each is given out once and then kept; requests beyond them wait for one that is free.
    Object.assign(this.agent, {
      createConnection: () => free.pop() ?? new Socket().destroy(new Error(GONE)),
    });
    void piped.exited.then(() => {
      this.isGone = true;
      for (const fail of [...this.waiting]) fail();
    });
  }

  perform(operation: string, body: Buffer): Promise<EngineAnswer> {
    const read = readDocument(body);
    if ('status' in read) return Promise.resolve(read);
    if (this.isGone) return Promise.resolve(errorAnswer('InternalServerError', GONE));
    if (this.waiting.size >= MAX_WAITING) {
      return Promise.resolve(errorAnswer('ThrottlingException', 'Too many requests at once'));
    }
    return this.forward(operation, body);
  }

  async close(): Promise<void> {
    this.agent.destroy();
    await this.piped.close();
  }

  private forward(operation: string, body: Buffer): Promise<EngineAnswer> {
    return new Promise((settle) => {
      const resolve = (answer: EngineAnswer): void => {
        this.waiting.delete(fail);
        settle(answer);
      };
      const fail = (): void => {
        resolve(errorAnswer('InternalServerError', GONE));
      };
      this.waiting.add(fail);
      const outgoing: ClientRequest = request({
        agent: this.agent,
        host: 'dynalite',
        method: 'POST',
        path: '/',
        headers: {
          'content-type': 'application/x-amz-json-1.0',
          'content-length': body.length,
          'x-amz-target': `DynamoDB_20120810.${operation}`,
          'x-amz-date': '20200101T000000Z',
          authorization: AUTHORIZATION,
        },
      });
      outgoing.once('error', fail);
      outgoing.once('response', (incoming: IncomingMessage) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.once('error', fail);
        incoming.once('end', () => {
          resolve({ status: incoming.statusCode ?? 500, body: Buffer.concat(chunks).toString('utf8') });
        });
      });
      outgoing.end(body);
    });
  }
}
