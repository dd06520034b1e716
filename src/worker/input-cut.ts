import type { SourceSegment } from '../contracts/plan.ts';

/**
 * Where the rest of an input begins: in which of its segments, by place, and at which byte of that segment's object;
 * without a byte at the segment's own begin. A place behind the last segment: nothing is left.
 */
export interface InputPlace {
  readonly segment: number;
  readonly offset?: number;
}

/** How far one segment was handed out; told by whoever reads its blocks of whole lines. */
export interface SegmentMark {
  /** A block is handed out that ends before byte `end` of the object. */
  hand(end: number): void;
  /** Whether the segment ends there for its reader, who asks for more and so is done with all before it. */
  isCutAt(end: number): boolean;
}

/**
 * Ends what a task reads early, each input between two of its records, so that its operator ends in order and its output
 * is that of exactly what came before. Inputs that are not told here are read to their ends.
 */
export class InputCut {
  #isRequested = false;
  readonly #inputs = new Map<number, InputReach>();

  get isRequested(): boolean {
    return this.#isRequested;
  }

  /** From now on nothing more is begun. May be called at any time, and again. */
  request(): void {
    this.#isRequested = true;
  }

  /** Watches the reading of the task's input at this place; `cutsWithin` tells of which segments each line may be the last. */
  watch(
    input: number,
    segments: readonly SourceSegment[],
    cutsWithin: (segment: SourceSegment) => boolean,
  ): InputReach {
    const reach = new InputReach(this, segments, cutsWithin);
    this.#inputs.set(input, reach);
    return reach;
  }

  /** By input, where the rest begins; undefined where nothing is left, or no input has ended early. */
  rest(): ReadonlyMap<number, InputPlace> | undefined {
    const reaches = [...this.#inputs];
    if (!reaches.some(([, { endedEarly }]) => endedEarly)) return undefined;
    return new Map(reaches.map(([input, reach]) => [input, reach.place] as const));
  }

  /** Whether the last pass of an input was neither ended early nor read to its end: nobody can tell what was done of it. */
  get hasLeftAny(): boolean {
    return [...this.#inputs.values()].some(({ isLeft }) => isLeft);
  }

  /** Bytes of the segments before the rest, as stored. */
  get bytesBefore(): number {
    return [...this.#inputs.values()].reduce((sum, { bytesBefore }) => sum + bytesBefore, 0);
  }
}

/**
 * How far an input was read. It may be read again from its begin, where one way of working it out did not do: no pass
 * ends before what any pass has handed out, since its records are counted.
 */
export class InputReach {
  readonly #cut: InputCut;
  readonly #segments: readonly SourceSegment[];
  readonly #cutsWithin: (segment: SourceSegment) => boolean;
  /** Segments of which something was handed out, and up to where of the last of them. */
  #handed = 0;
  #handedEnd = 0;
  #place: InputPlace = { segment: 0 };
  #isStopped = false;

  constructor(
    cut: InputCut,
    segments: readonly SourceSegment[],
    cutsWithin: (segment: SourceSegment) => boolean,
  ) {
    this.#cut = cut;
    this.#segments = segments;
    this.#cutsWithin = cutsWithin;
  }

  /** Where the last pass has stopped; at the begin where it was left before its end. */
  get place(): InputPlace {
    return this.#place;
  }

  get isAtEnd(): boolean {
    return this.#place.segment >= this.#segments.length;
  }

  /** Whether the present pass was ended before the end of the input. */
  get endedEarly(): boolean {
    return this.#isStopped && !this.isAtEnd;
  }

  /** Whether whoever reads it has seen something of it, and did not ask on. */
  get isLeft(): boolean {
    return this.#handed > 0 && !this.#isStopped && !this.isAtEnd;
  }

  get bytesBefore(): number {
    const { segment: at, offset } = this.#place;
    const before = this.#segments.slice(0, at).reduce((sum, { start, end }) => sum + end - start, 0);
    const within = this.#segments[at];
    return before + (offset === undefined || within === undefined ? 0 : offset - within.start);
  }

  /** Whether the present pass has been ended early. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** A pass begins. */
  begin(): void {
    this.#place = { segment: 0 };
    this.#isStopped = false;
  }

  /** Whether the pass ends before a segment. */
  stopsBefore(segment: number): boolean {
    if (!this.#cut.isRequested || segment < this.#handed) return false;
    this.#stop({ segment });
    return true;
  }

  /** A pass has come to the end of all segments. */
  end(): void {
    this.#place = { segment: this.#segments.length };
  }

  markOf(segment: number): SegmentMark {
    const own = this.#segments[segment];
    const mayCut = own !== undefined && this.#cutsWithin(own);
    return {
      hand: (end) => {
        if (segment + 1 < this.#handed) return;
        this.#handedEnd = segment + 1 === this.#handed ? Math.max(this.#handedEnd, end) : end;
        this.#handed = segment + 1;
      },
      isCutAt: (end) => {
        if (!mayCut || !this.#cut.isRequested || segment + 1 < this.#handed || end < this.#handedEnd)
          return false;
        this.#stop(end < own.end ? { segment, offset: end } : { segment: segment + 1 });
        return true;
      },
    };
  }

  #stop(place: InputPlace): void {
    this.#place = place;
    this.#isStopped = true;
  }
}
