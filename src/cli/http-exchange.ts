import { request as requestHttp } from '../local/http/node-http.ts';

/** A request whose answer is wanted as text. */
export interface HttpRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

/**
 * One request and its whole answer, on a connection that is kept for the next. Not by `fetch`, which takes longer to load
 * than a request to answer.
 *
 * @throws the network's error, or an AbortError with the signal's reason as its cause.
 */
export function exchange(url: URL, { method, headers, body, signal }: HttpRequest): Promise<HttpAnswer> {
  const send = url.protocol === 'https:' ? process.getBuiltinModule('node:https').request : requestHttp;
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
    const outgoing = send(url, { method, headers: { ...headers, ...length }, signal }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.once('error', reject);
      incoming.once('end', () => {
        const { statusCode: status = 0, headers: answered } = incoming;
        const text = Buffer.concat(chunks).toString('utf8');
        resolve({ status, retryAfter: answered['retry-after'], text });
      });
    });
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}
