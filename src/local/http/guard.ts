import type { IncomingMessage, ServerResponse } from 'node:http';

/** The one that addresses leave out. */
const httpPort = 80;

/** Why a request is not even looked at. */
export interface GuardRefusal {
  readonly status: 400 | 403;
  readonly message: string;
}

/** Headers by which a request is signed, routed or trusted: two of them would be read differently by different readers. */
const SINGLE: ReadonlySet<string> = new Set([
  'authorization',
  'content-length',
  'content-type',
  'date',
  'expect',
  'host',
  'origin',
  'transfer-encoding',
]);

/**
 * Tells requests that no client of the stack makes: those of web pages, which a browser sends to any address that a
 * page names, and those in which what was signed is ambiguous.
 *
 * - The host must be the server's own. A page of a foreign name whose address was changed to the loopback's after it
 *   was loaded (DNS rebinding) still sends its own name.
 * - An origin, if any, must be the server's own: nothing here serves pages.
 * - A preflight asks for what is never granted.
 *
 * @param port - on which the server listens.
 * @param hosts - `host:port` of proxies that pass requests on as they were signed.
 */
export function guardRequest(
  request: IncomingMessage,
  port: number,
  hosts: ReadonlySet<string>,
): GuardRefusal | undefined {
  const seen = new Set<string>();
  for (let at = 0; at < request.rawHeaders.length; at += 2) {
    const name = (request.rawHeaders[at] ?? '').toLowerCase();
    if (!SINGLE.has(name) && !name.startsWith('x-amz-')) continue;
    if (seen.has(name)) return { status: 400, message: `The header ${name} may be given once.` };
    seen.add(name);
  }
  const host = (request.headers.host ?? '').toLowerCase();
  if (!isOwn(host, port) && !hosts.has(host)) {
    return { status: 403, message: 'The host is not this server.' };
  }
  const { origin } = request.headers;
  if (origin !== undefined && origin !== `http://${host}`) {
    return { status: 403, message: 'Requests of web pages are refused.' };
  }
  if (isOfAnotherSite(request)) return { status: 403, message: 'Requests of web pages are refused.' };
  if (request.method === 'OPTIONS') return { status: 403, message: 'No other origin is allowed anything.' };
  if (request.url?.startsWith('/') !== true) return { status: 400, message: 'The target must be a path.' };
  return undefined;
}

/** Clients leave the port out where it is that of HTTP. */
const isOwn = (host: string, port: number): boolean =>
  ['127.0.0.1', 'localhost'].some(
    (name) => host === `${name}:${String(port)}` || (port === httpPort && host === name),
  );

/** What a page embeds (an image, a script) has no origin but says this; a link that a person follows is their own. */
function isOfAnotherSite({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  return (
    site !== undefined &&
    site !== 'none' &&
    site !== 'same-origin' &&
    headers['sec-fetch-mode'] !== 'navigate'
  );
}

/** Answers a refusal, and ends the connection: the body, if any, is left unread. */
export function answerRefusal(response: ServerResponse, { status, message }: GuardRefusal): void {
  const body = JSON.stringify({ message });
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  response.end(body);
}
