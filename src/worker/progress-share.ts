import { UserCodeError } from './operator.ts';

/**
 * Throws `UserCodeError` where user code says a share of its task that is none, from 0 to 1. Uses nothing that user code
 * can change: it runs beside it.
 */
export function checkShare(fraction: unknown): asserts fraction is number {
  if (typeof fraction === 'number' && fraction >= 0 && fraction <= 1) return;
  throw new UserCodeError('progress must be a number from 0 to 1');
}

/** More than any policy tells apart. */
const steps = 10_000;

/**
 * Chooses, of the shares that user code says, those that its worker has to hear of, which keeps the greatest: the first, and each that
 * is a step above what was told before. A function that tells after each step of a loop would else fill memory with
 * messages, since none is sent while it runs. Uses nothing that user code can change.
 */
export class ShareTeller {
  #told = -1;

  /** Of a share that `checkShare` has let pass. */
  isNews(share: number): boolean {
    const step = (share * steps) | 0;
    if (step <= this.#told) return false;
    this.#told = step;
    return true;
  }
}
