import type { RequestHedge } from './request-hedge.ts';

/**
 * How many of an upload's parts have a second number, under which they may be sent again. Of two requests with one number the
 * later one counts, and where a bucket encrypts by keys of its own its etag is another, so that the upload could not be
 * completed with what the earlier one answered. S3 bears gaps between parts that came without a checksum, and drops what is not on
 * the list of an upload that is completed.
 */
const hedgedParts = 1_000;

/** S3's number of a part that its sender calls `number`, in the order of senders' numbers. */
const firstNumberOf = (number: number): number =>
  number <= hedgedParts ? 2 * number - 1 : number + hedgedParts;

/** The number under which it may be sent again; undefined where there is none. */
const secondNumberOf = (number: number): number | undefined =>
  number <= hedgedParts ? 2 * number : undefined;

interface Answered<T> {
  readonly answer: T;
  /** From the request to its answer. */
  readonly tookMs: number;
}

/**
 * What sending a part answers, or, where it is late, sending it a second time beside that: whichever answers first counts, and the
 * other request is ended. Where both fail, throws what the first one threw. `send` is given S3's number.
 *
 * Source: Starling (SIGMOD 2020) §4.3, double writes.
 */
export async function sendHedged<T>(
  number: number,
  send: (number: number, signal: AbortSignal) => Promise<T>,
  {
    hedge,
    sizeBytes,
    onHedge,
  }: { readonly hedge: RequestHedge; readonly sizeBytes: number; readonly onHedge: () => void },
): Promise<T> {
  const over = new AbortController();
  const begin = async (as: number): Promise<Answered<T>> => {
    const since = hedge.now();
    hedge.began();
    const answer = await send(as, over.signal);
    return { answer, tookMs: hedge.now() - since };
  };
  try {
    const first = begin(firstNumberOf(number));
    const rings = hedge.sleep(hedge.lateAfterMs(sizeBytes), over.signal).then(() => undefined);
    let answered = await Promise.race([first, rings]);
    const second = secondNumberOf(number);
    if (answered === undefined && second !== undefined && hedge.take(0)) {
      onHedge();
      answered = await Promise.any([first, begin(second)]).catch(() => first);
    }
    answered ??= await first;
    hedge.ended(0, sizeBytes, answered.tookMs);
    return answered.answer;
  } finally {
    over.abort();
  }
}
