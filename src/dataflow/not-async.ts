import { UserCodeError } from '../worker/operator.ts';

/**
 * Answers what a function of a job has returned where that is a promise: whatever comes next would see it as a value. For speed asked
 * of objects alone: `if (typeof result === 'object') refuseAsync(…)`.
 */
export function refuseAsync(step: string, result: unknown): void {
  if (!(result instanceof Promise)) return;
  result.catch(() => undefined);
  throw new UserCodeError(`the function of ${step} returned a promise: functions of a job must not be async`);
}
