import {
  AccessDeniedError,
  ConflictError,
  NotFoundError,
  StoreRefusedError,
  StoreUnavailableError,
} from '../contracts/errors.ts';
import { isDirectoryBucket } from '../contracts/directory-buckets.ts';
import type { AttemptId } from '../contracts/ids.ts';
import type { ObjectRef } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import type { Failure, LossKind, LostOutput } from '../contracts/records.ts';
import { workerOfBucket } from '../contracts/worker-places.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { UpstreamSegment } from './upstream-segment.ts';

/** Workers that are asked at once whether they keep what they did. */
const askedAtOnce = 16;
/** Its multiples, less their whole parts, lie evenly between 0 and 1, however many there are. */
const goldenRatio = (Math.sqrt(5) - 1) / 2;

const said = {
  missing: 'is gone',
  short: 'is shorter than what was written',
  damaged: 'is not what was written (CRC-32)',
  denied: 'may not be read',
  unreachable: 'is where nobody answers',
} as const satisfies Record<LossKind, string>;

/** Thrown by whoever reads a piece of another stage's output that is not there as it was written. */
export class LostInputError extends StoreUnavailableError {
  readonly segment: UpstreamSegment;
  readonly how: LossKind;

  constructor(segment: UpstreamSegment, how: LossKind, cause?: unknown) {
    const why = how === 'denied' && cause instanceof Error ? `: ${cause.message}` : '';
    super(`output of ${segment.producer} ${said[how]}${why}`, {}, cause === undefined ? {} : { cause });
    this.segment = segment;
    this.how = how;
  }
}

/**
 * How an object is lost of which a read has thrown this; undefined where that says nothing of the object. What is in one
 * zone, or with one worker, alone and was asked for in vain, again and again, is taken for lost with it.
 */
export function howLost(cause: unknown, { bucket }: ObjectRef): LossKind | undefined {
  if (cause instanceof LostInputError) return undefined;
  // S3 has answered, and would refuse the same made again alike: its words are what the attempt is to fail of.
  if (cause instanceof StoreRefusedError) return undefined;
  if (cause instanceof StoreUnavailableError && isInOnePlace(bucket)) return 'unreachable';
  if (cause instanceof NotFoundError) return 'missing';
  // Whoever may not list gets the same answer for an object that is not there.
  if (cause instanceof AccessDeniedError) return 'denied';
  // It was written anew while it was read.
  return cause instanceof ConflictError ? 'damaged' : undefined;
}

const isWithWorker = (bucket: string): boolean => workerOfBucket(bucket) !== undefined;
const isInOnePlace = (bucket: string): boolean => isDirectoryBucket(bucket) || isWithWorker(bucket);

/** Passes on what `read` gives or throws, and tells of input that it has found lost. */
export async function noting<T>(check: InputCheck | undefined, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof LostInputError) check?.lose(error);
    throw error;
  }
}

/** A piece of another stage's output that is read bit by bit, so that its checksum is known at its end alone. */
export interface UncheckedPiece {
  readonly segment: UpstreamSegment;
  /** Reads it to its end. Throws what reading throws, and where its bytes, those before included, were not as written. */
  readRest(): Promise<void>;
}

/**
 * What an attempt knows of its input from other stages: what it has found lost, whatever its operator made of that, and
 * which pieces it has taken in before their checksum was known. Records of those may be nonsense, of which an operator
 * fails in any way, or makes a result: before it is blamed, or believed, they are read to their ends.
 */
export class InputCheck {
  readonly #lost = new Map<string, LostInputError>();
  readonly #unchecked = new Set<UncheckedPiece>();

  /** An output was found lost; the first word of it counts. */
  lose(error: LostInputError): void {
    const { producer } = error.segment;
    if (!this.#lost.has(producer)) this.#lost.set(producer, error);
  }

  /** Some of a piece is taken in. */
  begin(piece: UncheckedPiece): void {
    this.#unchecked.add(piece);
  }

  /** All of it was, and is as it was written. */
  end(piece: UncheckedPiece): void {
    this.#unchecked.delete(piece);
  }

  /**
   * Reads the pieces that were not checked to their ends, and throws the first loss, if there was one, or what else keeps it
   * from being sure: a result that was made of such input is none. Heads are left out: what they say of columns has
   * to fit what the task's own pieces say, and a task would read as much of others' pieces as of its own.
   */
  async throwIfUnsure(signal: AbortSignal): Promise<void> {
    for (const piece of [...this.#unchecked]) {
      if (this.#lost.size > 0) break;
      signal.throwIfAborted();
      if (piece.segment.isHead !== true) await piece.readRest();
    }
    const [first] = this.#lost.values();
    if (first !== undefined) throw first;
  }

  /** Reads the pieces that were not checked to their ends. Never throws. */
  async recheck(signal: AbortSignal): Promise<void> {
    for (const piece of [...this.#unchecked]) {
      if (signal.aborted || this.#lost.size >= limits.lostPerReport) return;
      await piece.readRest().catch(() => undefined);
    }
  }

  /**
   * Where a worker is gone that kept a piece of the input, asks those that keep the others. Whoever schedules cannot, being
   * in another network, and each that is found by itself would cost another attempt. A report has room for few: readers of
   * one stage begin at different places, by the `index` of their task, so that together they name most. Never throws.
   */
  async askOthers(
    objects: ObjectStore,
    input: readonly UpstreamSegment[],
    signal: AbortSignal,
    index: number,
  ): Promise<void> {
    if (![...this.#lost.values()].some(({ segment }) => isWithWorker(segment.ref.bucket))) return;
    const others = new Map(
      input
        .filter(({ ref, length, isHead }) => length > 0 && isHead !== true && isWithWorker(ref.bucket))
        .map((segment) => [segment.producer, segment]),
    );
    const inOrder = [...others.values()];
    const first = Math.floor(((index * goldenRatio) % 1) * inOrder.length);
    const turned = [...inOrder.slice(first), ...inOrder.slice(0, first)];
    await forEachBounded(turned, askedAtOnce, async (segment) => {
      const { producer, ref } = segment;
      if (signal.aborted || this.#lost.has(producer) || this.#lost.size >= limits.lostPerReport) return;
      try {
        if ((await objects.head(ref)) === undefined) this.lose(new LostInputError(segment, 'missing'));
      } catch (cause) {
        const how = howLost(cause, ref);
        if (how !== undefined) this.lose(new LostInputError(segment, how, cause));
      }
    });
  }

  /** As what an attempt has failed that did not find its input; undefined where it found all that it asked for. */
  failure(): Failure | undefined {
    const [first] = this.#lost.values();
    if (first === undefined) return undefined;
    const others = this.#lost.size === 1 ? '' : `, and ${this.#lost.size - 1} more`;
    const lost = [...this.#lost.values()].slice(0, limits.lostPerReport).map(lostOutput);
    return { cause: 'input-lost', message: `${first.message}${others}`.slice(0, limits.failureChars), lost };
  }
}

const lostOutput = ({ segment, how }: LostInputError): LostOutput => ({
  attemptId: segment.producer as AttemptId,
  how,
  offset: segment.offset,
  length: segment.length,
  crc: segment.crc,
});
