import type { Readable } from 'node:stream';

/**
 * The whole body of a request, for documents that are small by nature.
 * Answers `'too-large'` once more than `limitBytes` have come; the rest is then left unread.
 * An absent body is an empty buffer. Rejects if the connection breaks.
 */
export async function readBody(body: Readable, limitBytes: number): Promise<Buffer | 'too-large'> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of body.iterator({ destroyOnReturn: false })) {
    if (!Buffer.isBuffer(chunk)) throw new TypeError('a request body must be read as bytes');
    sizeBytes += chunk.length;
    if (sizeBytes > limitBytes) return 'too-large';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, sizeBytes);
}
