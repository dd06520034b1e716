import type { RequestHedge } from './request-hedge.ts';

/** Why a stream brings no more bytes, though there are more. */
export interface BrokenStream {
  readonly cause: unknown;
  /** Whether its consumer was at work for long before, and nobody waited for it; absent: it was not. */
  readonly wasLeft?: boolean;
}

/** One request's bytes, from where it was begun. */
export interface ByteStream {
  /** Bytes, or why there are no more: undefined at its end, else what broke it. Throws what its request threw. */
  next(): Promise<IteratorResult<Uint8Array, BrokenStream | undefined>>;
  /** What came last is taken: reading goes on behind it. */
  accept(): void;
  /** Ends it at once, whatever is under way. */
  stop(): void;
}

type Step = Awaited<ReturnType<ByteStream['next']>>;

/** What a stream that is waited for comes to. */
type Outcome = { readonly from: ByteStream } & ({ readonly step: Step } | { readonly thrown: unknown });

const outcomeOf = (from: ByteStream): Promise<Outcome> =>
  from.next().then(
    (step) => ({ from, step }),
    (thrown: unknown) => ({ from, thrown }),
  );

const hasFailed = (outcome: Outcome): boolean =>
  'thrown' in outcome || (outcome.step.done === true && outcome.step.value !== undefined);

/** Bytes that are waited for beyond those that have come: about what comes at once. */
const stepBytes = 64 * 1024;
/** A timer that was set for an earlier wait rings this much too late at most. */
const longestNapMs = 1_000;

export interface HedgeOptions {
  readonly hedge: RequestHedge;
  /** Second requests that the read has made before. */
  readonly hedgesBefore: number;
  /** Whether another request does no harm now. */
  readonly mayBegin: () => boolean;
  /** Begins a request for what has not come yet. */
  readonly beginAnother: () => ByteStream;
  readonly onHedge: () => void;
}

/**
 * The bytes of a request, and where they are late those of a second one for the rest: whichever brings something first
 * goes on, and the other is ended. Answers as a stream does how it ended. What its consumer takes for what it was given
 * counts for nothing: only what is waited for here.
 */
export async function* hedgedStream(
  first: ByteStream,
  { hedge, hedgesBefore, mayBegin, beginAnother, onHedge }: HedgeOptions,
): AsyncGenerator<Uint8Array, BrokenStream | undefined> {
  const alarm = new Alarm(hedge);
  let stream = first;
  let hedges = hedgesBefore;
  let [bytes, latencyMs, restMs] = [0, 0, 0];
  try {
    for (;;) {
      const since = hedge.now();
      const lateMs = hedge.lateAfterMs(bytes === 0 ? 0 : bytes + stepBytes) - latencyMs - restMs;
      const pending = outcomeOf(stream);
      let outcome = await alarm.inTime(pending, lateMs);
      // Asked in this order: what is not made must not be counted.
      if (outcome === undefined && mayBegin() && hedge.take(hedges)) {
        const second = beginAnother();
        hedges += 1;
        onHedge();
        outcome = await firstOf([pending, outcomeOf(second)]);
        (outcome.from === second ? stream : second).stop();
        stream = outcome.from;
        [bytes, latencyMs, restMs] = [0, 0, 0];
      }
      outcome ??= await pending;
      if ('thrown' in outcome) throw outcome.thrown;
      stream.accept();
      const waitedMs = hedge.now() - since;
      if (bytes === 0) latencyMs = waitedMs;
      else restMs += waitedMs;
      if (outcome.step.done === true) {
        if (outcome.step.value === undefined && bytes > 0) hedge.ended(latencyMs, bytes, restMs);
        return outcome.step.value;
      }
      bytes += outcome.step.value.length;
      yield outcome.step.value;
    }
  } finally {
    alarm.stop();
    stream.stop();
  }
}

/** Tells that what is waited for is late. One timer serves many waits, since most bytes are there at once. */
export class Alarm {
  private readonly hedge: Pick<RequestHedge, 'now' | 'sleep'>;
  private readonly stopped = new AbortController();
  private rings: Promise<undefined> | undefined;

  constructor(hedge: Pick<RequestHedge, 'now' | 'sleep'>) {
    this.hedge = hedge;
  }

  /** What comes within a time, or somewhat later; undefined where nothing does. */
  async inTime<T>(pending: Promise<T>, ms: number): Promise<T | undefined> {
    const until = this.hedge.now() + ms;
    for (;;) {
      const leftMs = Math.max(0, Math.min(until - this.hedge.now(), longestNapMs));
      this.rings ??= this.hedge.sleep(leftMs, this.stopped.signal).then(() => undefined);
      const outcome = await Promise.race([pending, this.rings]);
      if (outcome !== undefined) return outcome;
      this.rings = undefined;
      if (this.hedge.now() >= until || this.stopped.signal.aborted) return undefined;
    }
  }

  stop(): void {
    this.stopped.abort();
  }
}

/** The first that brings anything but a failure; where both fail, the one that failed first. */
async function firstOf(pending: readonly [Promise<Outcome>, Promise<Outcome>]): Promise<Outcome> {
  const first = await Promise.race(pending);
  if (!hasFailed(first)) return first;
  const all = await Promise.all(pending);
  return all.find((outcome) => !hasFailed(outcome)) ?? first;
}
