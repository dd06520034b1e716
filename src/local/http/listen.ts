import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from './node-http.ts';
import { answerRefusal, guardRequest } from './guard.ts';

/** Serves one request; a rejection becomes a bare 500, or a broken connection once an answer has begun. */
export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void;

/** Options of {@link listen}. */
export interface ListenOptions {
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /**
   * Leaves the answer to `Expect: 100-continue` to the handler, which calls
   * `response.writeContinue()` once it wants the body. Default: answered at once.
   */
  readonly deferContinue?: boolean;
  /** How long `close` lets requests under way finish before it cuts them off. Default 1,000. */
  readonly closeGraceMs?: number;
  /** `host:port` of proxies before the server that pass requests on as they were signed; asked at each request. */
  readonly hosts?: ReadonlySet<string>;
}

/** A server that accepts requests on the loopback interface. */
export interface Listener {
  /** `http://127.0.0.1:PORT`, without a trailing slash. */
  readonly endpoint: string;
  readonly port: number;
  /** Stops accepting, drops idle connections, waits for the rest up to the grace time. May be called again. */
  close(): Promise<void>;
}

/** Another process already listens on the wanted port. */
export class PortTakenError extends Error {
  override readonly name = 'PortTakenError';
  readonly port: number;

  constructor(port: number, options?: ErrorOptions) {
    super(`port ${String(port)} is taken`, options);
    this.port = port;
  }
}

const LOOPBACK = '127.0.0.1';

/** Longer than the keep-alive of any SDK client, so that the client always closes first. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/** A whole upload must arrive within this time. */
const REQUEST_TIMEOUT_MS = 15 * 60 * 1000;

/**
 * Starts an HTTP/1.1 server with keep-alive on 127.0.0.1. Requests of web pages, those to another host, and
 * ambiguous ones are refused before the handler sees them.
 *
 * @throws {PortTakenError} if the port is in use; other socket errors as Node gives them.
 */
export async function listen(handler: RequestHandler, options: ListenOptions = {}): Promise<Listener> {
  const server = createServer({
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    headersTimeout: KEEP_ALIVE_TIMEOUT_MS + 1000,
    requestTimeout: REQUEST_TIMEOUT_MS,
    noDelay: true,
  });
  // All that fit the size of a head: Node drops those beyond a number, and with them what the guard looks for.
  server.maxHeadersCount = 0;
  const hosts = options.hosts ?? new Set<string>();
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    const refusal = guardRequest(request, port, hosts);
    if (refusal !== undefined) answerRefusal(response, refusal);
    else void runHandler(handler, request, response);
  };
  server.on('request', serve);
  if (options.deferContinue === true) server.on('checkContinue', serve);

  const port = await bind(server, options.port ?? 0);
  let closing: Promise<void> | undefined;
  return {
    endpoint: `http://${LOOPBACK}:${String(port)}`,
    port,
    close: () => (closing ??= closeServer(server, options.closeGraceMs ?? 1000)),
  };
}

async function runHandler(
  handler: RequestHandler,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    await handler(request, response);
  } catch {
    // Handlers answer their own failures; what comes here is unforeseen, and must not end the process.
    if (response.headersSent) {
      response.destroy();
      return;
    }
    response.writeHead(500, { 'content-length': '0', connection: 'close' });
    response.end();
  }
}

function bind(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException): void => {
      reject(cause.code === 'EADDRINUSE' ? new PortTakenError(port, { cause }) : cause);
    };
    server.once('error', fail);
    server.listen({ port, host: LOOPBACK }, () => {
      server.off('error', fail);
      const address: AddressInfo | string | null = server.address();
      if (address === null || typeof address === 'string') {
        reject(new Error('the server has no port'));
        return;
      }
      resolve(address.port);
    });
  });
}

function closeServer(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const cutOff = setTimeout(() => {
      server.closeAllConnections();
    }, graceMs);
    server.close(() => {
      clearTimeout(cutOff);
      resolve();
    });
    server.closeIdleConnections();
  });
}
