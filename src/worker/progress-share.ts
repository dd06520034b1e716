import { UserCodeError } from './operator.ts';

/**
 * Throws `UserCodeError` where user code says a share of its task that is none, from 0 to 1. Uses nothing that user code
 * can change: it runs beside it.
 */
export function checkShare(fraction: unknown): asserts fraction is number {
  if (typeof fraction === 'number' && fraction >= 0 && fraction <= 1) return;
  throw new UserCodeError('progress must be a number from 0 to 1');
}
