import { setTimeout as delay } from 'node:timers/promises';

/** A question to a worker that may have ended, and another, to where it would have put what it kept. */
export interface Asking<T> {
  /** Asks the worker; ends soon, in whatever way, once its signal is aborted. */
  readonly ask: (signal: AbortSignal) => Promise<T>;
  /** Whether the worker has put it there. */
  readonly hasMoved: () => Promise<boolean>;
  /** For how long the worker alone is waited for, in ms. */
  readonly patienceMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * What a worker answers, or throws what it throws. Where it says nothing for a while, it is asked whether what it kept is
 * elsewhere by now: then `moved`, and the worker is waited for no longer. Whatever comes first counts.
 */
export async function askBeside<T>({
  ask,
  hasMoved,
  patienceMs,
  signal,
}: Asking<T>): Promise<{ readonly answer: T } | 'moved'> {
  const stop = new AbortController();
  const heard = new AbortController();
  const asking = ask(signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]))
    .then((answer) => ({ answer }))
    .finally(() => {
      heard.abort();
    });
  const elsewhere = async (): Promise<boolean> => {
    await delay(patienceMs, undefined, { signal: heard.signal, ref: false });
    return hasMoved();
  };
  const looking = elsewhere().catch(() => false);
  const first = await Promise.race([asking, looking]);
  if (first === true) {
    asking.catch(() => undefined); // Nobody hears of it any more.
    stop.abort();
    return 'moved';
  }
  return asking;
}
