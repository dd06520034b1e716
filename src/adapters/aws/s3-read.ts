import { Readable } from 'node:stream';
import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { ConflictError, NotFoundError, StoreUnavailableError } from '../../contracts/errors.ts';
import { type ObjectRef, uriOf } from '../../contracts/keys.ts';
import type { ByteRange } from '../../ports/object-store.ts';
import { backoff } from './backoff.ts';
import { denialOf, missingOrDenied } from './denials.ts';
import { faultOf } from './faults.ts';

/** Broken streams in a row without a byte between them. */
const FRUITLESS_LIMIT = 5;
/** Broken streams in all, over one object. */
const BREAK_LIMIT = 100;

interface ReadOptions {
  readonly range?: ByteRange;
  readonly etag?: string;
  readonly signal?: AbortSignal;
}

/** Where reading stands: bytes from `position`, up to `end` once it is known, of the object with this etag. */
interface Cursor {
  position: number;
  end: number | undefined;
  etag: string | undefined;
}

/**
 * Streams an object or a range of it. A stream that breaks goes on with a request for the rest of the range, of
 * the same version of the object. A consumer that stops early ends the transfer at once.
 */
export async function* readObject(
  client: S3Client,
  ref: ObjectRef,
  options: ReadOptions,
): AsyncGenerator<Uint8Array> {
  const { range, signal } = options;
  if (range !== undefined && range.end <= range.start) return;
  const cursor: Cursor = { position: range?.start ?? 0, end: range?.end, etag: options.etag };
  let fruitless = 0;
  for (let breaks = 0; ; breaks++) {
    signal?.throwIfAborted();
    const before = cursor.position;
    const fault = yield* readOnce(client, ref, cursor, signal);
    if (fault === undefined) return;
    signal?.throwIfAborted();
    fruitless = cursor.position > before ? 1 : fruitless + 1;
    if (fruitless > FRUITLESS_LIMIT || breaks >= BREAK_LIMIT || isRead(cursor)) {
      throw new StoreUnavailableError('reading an object keeps failing', detailsOf(ref, cursor), {
        cause: fault.cause,
      });
    }
    await backoff(fruitless);
  }
}

const isRead = ({ position, end }: Cursor): boolean => end !== undefined && position >= end;

/** One request's stream; answers what broke it, or undefined at its end. Request faults are thrown, translated. */
async function* readOnce(
  client: S3Client,
  ref: ObjectRef,
  cursor: Cursor,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, { cause: unknown } | undefined> {
  const abort = new AbortController();
  const onAbort = (): void => {
    abort.abort();
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  let body: Readable | undefined;
  try {
    body = await open(client, ref, cursor, abort.signal);
    if (body === undefined) return undefined;
    for await (const chunk of bytesOf(body)) {
      cursor.position += chunk.length;
      yield chunk;
    }
    return isRead(cursor) ? undefined : { cause: new Error('the stream ended early') };
  } catch (cause) {
    if (body === undefined) throw cause;
    return { cause };
  } finally {
    signal?.removeEventListener('abort', onAbort);
    // Without both, the connection of a stream that is not read to its end would be held until it times out.
    if (body?.readableEnded !== true) {
      body?.on('error', () => undefined);
      abort.abort();
      body?.destroy();
    }
  }
}

async function* bytesOf(body: Readable): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    if (!(chunk instanceof Uint8Array)) throw new TypeError('the body of an object is no bytes');
    yield chunk;
  }
}

/** The body from the cursor on, or undefined where the range begins at or past the object's end. */
async function open(
  client: S3Client,
  ref: ObjectRef,
  cursor: Cursor,
  signal: AbortSignal,
): Promise<Readable | undefined> {
  const { position, end, etag } = cursor;
  const isWhole = position === 0 && end === undefined;
  try {
    const answer = await client.send(
      new GetObjectCommand({
        Bucket: ref.bucket,
        Key: ref.key,
        Range: isWhole ? undefined : `bytes=${position}-${end === undefined ? '' : end - 1}`,
        IfMatch: etag,
      }),
      { abortSignal: signal },
    );
    cursor.etag = answer.ETag ?? etag;
    cursor.end = position + (answer.ContentLength ?? 0);
    if (answer.Body instanceof Readable) return answer.Body;
    throw new TypeError('the body of an object is no stream');
  } catch (cause) {
    signal.throwIfAborted();
    const { name, status } = faultOf(cause);
    const details = { ...detailsOf(ref, cursor), fault: name };
    if (status === 416) return undefined;
    if (status === 404) throw new NotFoundError('no such object', details, { cause });
    if (status === 412) throw new ConflictError('the object has changed', details, { cause });
    const asked = { action: 's3:GetObject', resource: uriOf(ref), hint: missingOrDenied };
    throw denialOf(cause, asked) ?? new StoreUnavailableError('reading an object failed', details, { cause });
  }
}

const detailsOf = (ref: ObjectRef, { position, end }: Cursor): Readonly<Record<string, unknown>> => ({
  uri: uriOf(ref),
  position,
  end,
});
