import { validateHeaderName, validateHeaderValue } from '../http/node-http.ts';
import * as z from 'zod';

/** An HTTP answer made from what a function returned. */
export interface ProxyResponse {
  readonly status: number;
  /** Names in lower case; several values stand in order. */
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly body: Buffer;
}

const headerValue = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const proxyResponse = z.object({
  statusCode: z.coerce.number().int().min(100).max(599),
  headers: z.record(z.string(), headerValue).nullish(),
  multiValueHeaders: z.record(z.string(), z.array(headerValue)).nullish(),
  body: z.string().nullish(),
  isBase64Encoded: z.boolean().nullish(),
});

/** The front writes these itself; a function's own would contradict the bytes sent. */
const OWN_HEADERS = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding']);

/**
 * Reads a function's result as a proxy integration does; `undefined` if it is malformed
 * (no status code, a body that is not text …), for which AWS answers 502.
 */
export function readProxyResponse(result: unknown): ProxyResponse | undefined {
  const parsed = proxyResponse.safeParse(result);
  if (!parsed.success) return undefined;
  const { statusCode, headers, multiValueHeaders, body, isBase64Encoded } = parsed.data;

  const merged = new Map<string, string[]>([['content-type', ['application/json']]]);
  for (const [name, value] of Object.entries(headers ?? {})) merged.set(name.toLowerCase(), [value]);
  for (const [name, values] of Object.entries(multiValueHeaders ?? {}))
    merged.set(name.toLowerCase(), values);
  const sent = [...merged].filter(([name]) => !OWN_HEADERS.has(name));
  if (!sent.every(([name, values]) => values.every((value) => isHeader(name, value)))) return undefined;
  return {
    status: statusCode,
    headers: Object.fromEntries(sent),
    body: Buffer.from(body ?? '', isBase64Encoded === true ? 'base64' : 'utf8'),
  };
}

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}
