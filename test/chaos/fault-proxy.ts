import { Buffer } from 'node:buffer';
import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingMessage,
  request as forward,
  type Server,
  type ServerResponse,
} from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

export type ProxiedService = 'dynamodb' | 's3' | 'lambda' | 'ecs';

/** A request on its way from a function or a task to a service. */
export interface Subject {
  readonly service: ProxiedService;
  /** `PutItem` and the like; of S3 the method, and what its query says: `PUT`, `PUT uploads`, `GET list-type`. */
  readonly operation: string;
  /** Of S3 `bucket/key`, of the others the path. */
  readonly resource: string;
  /** From its question mark on. */
  readonly query: string;
  readonly body: Buffer;
}

/** What becomes of a request. */
export type Fault =
  | { readonly kind: 'lose-request' }
  | { readonly kind: 'lose-answer' }
  /** Served twice; the second time after the first was answered where it comes late, else at once. */
  | { readonly kind: 'double'; readonly lateMs?: number }
  /** Held until `until` ends, before it is served or before it is answered. */
  | { readonly kind: 'hold'; readonly at: 'before' | 'after'; readonly until: Promise<unknown> };

export interface Answer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface ProxyOptions {
  readonly service: ProxiedService;
  readonly target: string;
  /** Asked once for each request that a client sends; `undefined` lets it through. */
  readonly decide: (subject: Subject) => Fault | undefined;
  /** Told of each answer of the service, and whether a client has seen it. */
  readonly onAnswer?: (answer: Answer, isSeen: boolean) => void;
}

export interface FaultProxy {
  /** `http://127.0.0.1:PORT` */
  readonly endpoint: string;
  close(): Promise<void>;
}

function operationOf(service: ProxiedService, request: IncomingMessage, url: URL): string {
  const target = request.headers['x-amz-target'];
  if (service !== 's3')
    return String(target ?? `${request.method ?? ''} ${url.pathname}`).replace(/^.*\./, '');
  const named = ['uploads', 'uploadId', 'list-type', 'delete'].find((name) => url.searchParams.has(name));
  return `${request.method ?? ''}${named === undefined ? '' : ` ${named}`}`;
}

/** Passes requests on, headers unchanged (the signed host among them), and does to them what `decide` says. */
class Proxy {
  readonly #options: ProxyOptions;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #server: Server;

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    return `http://127.0.0.1:${String(address.port)}`;
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
    this.#agent.destroy();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { service, target } = this.#options;
    const url = new URL(request.url ?? '/', target);
    const subject: Subject = {
      service,
      operation: operationOf(service, request, url),
      resource: decodeURIComponent(url.pathname.slice(1)),
      query: url.search,
      body: Buffer.concat(chunks),
    };
    const send = (): Promise<Answer> => this.#forward(request, subject.body);
    await this.#apply(this.#options.decide(subject), { send, response });
  }

  async #apply(
    fault: Fault | undefined,
    { send, response }: { send: () => Promise<Answer>; response: ServerResponse },
  ): Promise<void> {
    switch (fault?.kind) {
      case undefined:
        this.#reply(response, await send());
        return;
      case 'lose-request':
        response.destroy();
        return;
      case 'lose-answer':
        this.#unseen(await send());
        response.destroy();
        return;
      case 'double': {
        if (fault.lateMs === undefined) {
          const [first, second] = await Promise.all([send(), send()]);
          this.#unseen(first);
          this.#reply(response, second);
          return;
        }
        this.#reply(response, await send());
        await delay(fault.lateMs, undefined, { ref: false });
        this.#unseen(await send());
        return;
      }
      case 'hold': {
        if (fault.at === 'before') await fault.until;
        const answer = await send();
        if (fault.at === 'after') await fault.until;
        // Who was killed meanwhile, or gave up waiting, never sees it.
        if (response.destroyed) this.#unseen(answer);
        else this.#reply(response, answer);
      }
    }
  }

  #unseen(answer: Answer): void {
    this.#options.onAnswer?.(answer, false);
  }

  #reply(response: ServerResponse, answer: Answer): void {
    this.#options.onAnswer?.(answer, true);
    reply(response, answer);
  }

  async #forward(request: IncomingMessage, body: Buffer): Promise<Answer> {
    const { hostname, port } = new URL(this.#options.target);
    // Its body comes with it, so nobody waits to be asked for it.
    const headers = request.rawHeaders.filter(
      (_, index) =>
        !/^(expect|connection|transfer-encoding)$/i.test(request.rawHeaders[index - (index % 2)] ?? ''),
    );
    const onward = forward({
      hostname,
      port,
      agent: this.#agent,
      ...(request.method === undefined ? {} : { method: request.method }),
      ...(request.url === undefined ? {} : { path: request.url }),
      headers: headersOf(headers, body),
    });
    onward.end(body);
    const [answer] = (await once(onward, 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(chunk as Buffer);
    return { status: answer.statusCode ?? 502, headers: answer.rawHeaders, body: Buffer.concat(chunks) };
  }
}

function headersOf(raw: readonly string[], body: Buffer): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let at = 0; at + 1 < raw.length; at += 2) headers[(raw[at] ?? '').toLowerCase()] = raw[at + 1] ?? '';
  if (body.length > 0) headers['content-length'] = String(body.length);
  return headers;
}

function reply(response: ServerResponse, { status, headers, body }: Answer): void {
  if (response.destroyed) return;
  const kept = headers.filter(
    (_, index) => !/^(connection|keep-alive|transfer-encoding)$/i.test(headers[index - (index % 2)] ?? ''),
  );
  response.writeHead(status, kept);
  response.end(body);
}

/** Starts a proxy before the service at `target`. */
export async function startFaultProxy(options: ProxyOptions): Promise<FaultProxy> {
  const proxy = new Proxy(options);
  return { endpoint: await proxy.listen(), close: () => proxy.close() };
}
