import type { SourceSegment } from '../contracts/plan.ts';
import type { ObjectStore } from '../ports/object-store.ts';

/** Objects up to this size are fetched before it is their turn: larger ones stream well by themselves. */
const smallBytes = 1024 * 1024;
/** How many are fetched or held at once, and their bytes together. */
const mostAhead = 32;
const mostAheadBytes = 8 * 1024 * 1024;
/** More are begun once so few are left, and so several in one turn, which some stores answer together. */
const fewAhead = 16;

/**
 * Fetches small objects of a task before they are read, several at once: one after the other each would cost a
 * request's whole time. Each is fetched once, and pinned to the version that was planned, as any read of it.
 */
export class ReadAhead {
  readonly #objects: ObjectStore;
  readonly #segments: readonly SourceSegment[];
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #fetched = new Map<SourceSegment, Promise<readonly Uint8Array[]>>();
  #next = 0;
  #bytes = 0;

  /** Of segments that are read in this order, each of them once. */
  constructor(objects: ObjectStore, segments: readonly SourceSegment[], signal: AbortSignal) {
    this.#objects = objects;
    this.#segments = segments;
    this.#signal = AbortSignal.any([signal, this.#stop.signal]);
  }

  /** Call when it is the turn of segment number `index`: begins those that follow as far as there is room. */
  reach(index: number): void {
    this.#next = Math.max(this.#next, index);
    if (this.#next - index > fewAhead) return;
    for (; this.#next < Math.min(this.#segments.length, index + mostAhead); this.#next++) {
      const segment = this.#segments[this.#next];
      if (segment === undefined || !isSmall(segment)) continue;
      if (this.#bytes > 0 && this.#bytes + segment.sizeBytes > mostAheadBytes) return;
      this.#bytes += segment.sizeBytes;
      const fetching = this.#fetch(segment);
      fetching.catch(() => undefined); // Whoever takes it gets the error; nobody may take it any more.
      this.#fetched.set(segment, fetching);
    }
  }

  /** The whole object of a segment, if it was begun and is not taken yet. */
  take(segment: SourceSegment): Promise<readonly Uint8Array[]> | undefined {
    const fetching = this.#fetched.get(segment);
    if (fetching === undefined) return undefined;
    this.#fetched.delete(segment);
    this.#bytes -= segment.sizeBytes;
    return fetching;
  }

  /** Ends what is under way. */
  close(): void {
    this.#stop.abort();
    this.#fetched.clear();
  }

  async #fetch({ bucket, key, etag, sizeBytes }: SourceSegment): Promise<readonly Uint8Array[]> {
    const chunks: Uint8Array[] = [];
    const options = { range: { start: 0, end: sizeBytes }, etag, signal: this.#signal };
    for await (const chunk of this.#objects.read({ bucket, key }, options)) chunks.push(chunk);
    return chunks;
  }
}

const isSmall = ({ start, end, sizeBytes }: SourceSegment): boolean =>
  sizeBytes <= smallBytes && sizeBytes > 0 && start === 0 && end === sizeBytes;
