import { Readable } from 'node:stream';
import { GetObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { ConflictError, NotFoundError, StoreUnavailableError } from '../../contracts/errors.ts';
import { type ObjectRef, uriOf } from '../../contracts/keys.ts';
import type { ReadOptions } from '../../ports/object-store.ts';
import { backoff } from './backoff.ts';
import { denialOf, missingOrDenied } from './denials.ts';
import { type Fault, faultOf, isPassing } from './faults.ts';
import { Alarm, type BrokenStream, type ByteStream, hedgedStream } from './hedged-stream.ts';
import type { RequestHedge } from './request-hedge.ts';
import type { ReadPace } from './read-pace.ts';
import { archived } from './archives.ts';
import { elsewhere, refused } from './s3-faults.ts';

/** Broken streams in a row without a byte between them. */
const FRUITLESS_LIMIT = 5;
/**
 * Broken streams in all, over one object. One whose consumer was at work for long is none of them: a connection
 * over which nobody takes anything for a minute is given up, by S3 perhaps sooner. Each of those has brought bytes, and cost its consumer so long.
 */
const BREAK_LIMIT = 100;
const LONG_PAUSE_MS = 5_000;

/** Requests that fail without a byte, for another reason than that they came too fast. */
const FAULT_LIMIT = 5;
/** Tries that are made even where patience is over: a connection may have died, or this process have been busy. */
const LEAST_TRIES = 2;

/** How reads are made: by this client, which must try each request once, since all tries are counted here. */
export interface Reading {
  readonly client: S3Client;
  readonly pace: ReadPace;
  /** How long a read that S3 refuses for its rate goes on trying; its signal ends it before. */
  readonly patienceMs: number;
  /**
   * How long bytes of an answer are waited for. Where it is said patience is for every fault that passes, and not for refusals
   * alone. Absent: as long as the client bears.
   */
  readonly silenceMs?: number | undefined;
  /** When a read is slow enough to be asked for again, and who is told of it. */
  readonly hedge: RequestHedge;
  readonly onHedge?: ((ref: ObjectRef) => void) | undefined;
}

/** Where reading stands: bytes from `position`, up to `end` once it is known, of the object with this etag. */
interface Cursor {
  position: number;
  end: number | undefined;
  etag: string | undefined;
}

/**
 * Streams an object or a range of it. A stream that breaks goes on with a request for the rest of the range, of
 * the same version of the object, and beside one that is late such a request is made. A consumer that stops early ends the transfer at once.
 */
export async function* readObject(
  reading: Reading,
  ref: ObjectRef,
  options: ReadOptions,
): AsyncGenerator<Uint8Array> {
  const { range, signal } = options;
  if (range !== undefined && range.end <= range.start) return;
  const cursor: Cursor = { position: range?.start ?? 0, end: range?.end, etag: options.etag };
  const hedges = { made: 0 };
  let fruitless = 0;
  for (let breaks = 0; ;) {
    signal?.throwIfAborted();
    const before = cursor.position;
    const fault = yield* readLate(reading, { ref, cursor, hedges, signal });
    if (fault === undefined) return;
    signal?.throwIfAborted();
    fruitless = cursor.position > before ? 1 : fruitless + 1;
    if (fault.wasLeft !== true) breaks += 1;
    if (fruitless > FRUITLESS_LIMIT || breaks > BREAK_LIMIT || isRead(cursor)) {
      throw new StoreUnavailableError('reading an object keeps failing', detailsOf(ref, cursor), {
        cause: fault.cause,
      });
    }
    await backoff(fruitless);
  }
}

const isRead = ({ position, end }: Cursor): boolean => end !== undefined && position >= end;

interface Asked {
  readonly ref: ObjectRef;
  readonly cursor: Cursor;
  readonly hedges: { made: number };
  readonly signal: AbortSignal | undefined;
}

/** As `readOnce`, with a second request for the rest where the first is slow and S3 refuses nobody. */
async function* readLate(
  reading: Reading,
  { ref, cursor, hedges, signal }: Asked,
): AsyncGenerator<Uint8Array, BrokenStream | undefined> {
  const { hedge, pace } = reading;
  const begin = (): ByteStream => {
    const own = { ...cursor };
    const abort = new AbortController();
    const steps = readOnce(reading, ref, own, signal, abort);
    hedge.began();
    return {
      next: () => steps.next(),
      accept: () => {
        Object.assign(cursor, own);
      },
      stop() {
        abort.abort();
        void steps.return(undefined).catch(() => undefined);
      },
    };
  };
  return yield* hedgedStream(begin(), {
    hedge,
    hedgesBefore: hedges.made,
    // Where all has come but the end, the rest would be a range of no bytes, which S3 answers with the whole object.
    mayBegin: () => pace.hasRoom && !isRead(cursor),
    beginAnother: begin,
    onHedge: () => {
      hedges.made += 1;
      reading.onHedge?.(ref);
    },
  });
}

/** One request's stream; answers what broke it, or undefined at its end. Request faults are thrown, translated. */
async function* readOnce(
  reading: Reading,
  ref: ObjectRef,
  cursor: Cursor,
  signal: AbortSignal | undefined,
  abort: AbortController,
): AsyncGenerator<Uint8Array, BrokenStream | undefined> {
  const onAbort = (): void => {
    abort.abort();
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  let body: Readable | undefined;
  let wasLeft = false;
  try {
    body = await open(reading, ref, cursor, abort.signal);
    if (body === undefined) return undefined;
    for await (const chunk of bytesOf(body, reading)) {
      cursor.position += chunk.length;
      const givenAt = reading.pace.now();
      yield chunk;
      // Whoever closes the connection meanwhile, what has come by then is given before anybody hears of it.
      wasLeft ||= reading.pace.now() - givenAt >= LONG_PAUSE_MS;
    }
    return isRead(cursor) ? undefined : { cause: new Error('the stream ended early'), wasLeft };
  } catch (cause) {
    if (body === undefined) throw cause;
    return { cause, wasLeft };
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

/** Breaks off where nothing comes for so long as silence may last; while nobody waits for bytes it does not count. */
async function* bytesOf(body: Readable, { hedge, silenceMs }: Reading): AsyncGenerator<Uint8Array> {
  const chunks: AsyncIterator<unknown, undefined> = body[Symbol.asyncIterator]();
  const alarm = new Alarm(hedge);
  try {
    for (;;) {
      const next = chunks.next();
      const step = await (silenceMs === undefined ? next : alarm.inTime(next, silenceMs));
      if (step === undefined) throw new Error('the stream fell silent');
      if (step.done === true) return;
      if (!(step.value instanceof Uint8Array)) throw new TypeError('the body of an object is no bytes');
      yield step.value;
    }
  } finally {
    alarm.stop();
  }
}

/**
 * The body from the cursor on, or undefined where the range begins at or past the object's end. What S3 refuses for
 * its rate is asked again, in its turn, for as long as patience lasts; other passing faults a few times, and of a zone no longer
 * than that either.
 */
async function open(
  reading: Reading,
  ref: ObjectRef,
  cursor: Cursor,
  signal: AbortSignal,
): Promise<Readable | undefined> {
  const { pace, patienceMs, silenceMs } = reading;
  const until = pace.now() + patienceMs;
  const mayTry = (faults: number): boolean =>
    faults < FAULT_LIMIT && (silenceMs === undefined || faults < LEAST_TRIES || pace.now() < until);
  let refusals = 0;
  for (let faults = 0; ;) {
    try {
      return await pace.request(() => send(reading.client, ref, cursor, signal), isRefusal, signal);
    } catch (cause) {
      signal.throwIfAborted();
      const fault = faultOf(cause);
      if (fault.status === 416) return undefined;
      if (isRefusal(cause) && pace.now() < until) {
        await pace.pause(++refusals, signal);
      } else if (isWorthAnother(fault) && !isRefusal(cause) && mayTry(++faults)) {
        refusals = 0;
        await backoff(faults + 1, signal);
      } else throw translated(cause, ref, cursor);
    }
  }
}

/** The SDK sets its clock by an answer that says how far it is off. */
const isWorthAnother = (fault: Fault): boolean => isPassing(fault) || fault.name === 'RequestTimeTooSkewed';

/** S3 says `SlowDown`, and 503 where it says nothing else. */
function isRefusal(cause: unknown): boolean {
  const { name, status } = faultOf(cause);
  return status === 429 || /^(SlowDown|ServiceUnavailable|503|\w*Throttl\w*)$/i.test(name);
}

async function send(
  client: S3Client,
  ref: ObjectRef,
  cursor: Cursor,
  signal: AbortSignal,
): Promise<Readable> {
  const { position, end, etag } = cursor;
  const isWhole = position === 0 && end === undefined;
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
}

function translated(cause: unknown, ref: ObjectRef, cursor: Cursor): Error {
  const { name, status } = faultOf(cause);
  const details = { ...detailsOf(ref, cursor), fault: name };
  // Details stay in logs: what a failed job is told is the message alone.
  if (status === 404) return new NotFoundError(`there is no object ${uriOf(ref)}`, details, { cause });
  if (status === 412) return new ConflictError(`the object ${uriOf(ref)} has changed`, details, { cause });
  const asked = { action: 's3:GetObject', resource: uriOf(ref), hint: missingOrDenied };
  return (
    denialOf(cause, asked) ??
    archived(cause, ref) ??
    elsewhere(cause, ref) ??
    refused('reading', ref, cause) ??
    new StoreUnavailableError(`reading ${uriOf(ref)} failed`, details, { cause })
  );
}

const detailsOf = (ref: ObjectRef, { position, end }: Cursor): Readonly<Record<string, unknown>> => ({
  uri: uriOf(ref),
  position,
  end,
});
