import type { AttemptPayload } from '../contracts/payloads.ts';
import type { AttemptDeps } from './run-attempt.ts';
import { type PackOutcome, runPack } from './run-pack.ts';

/**
 * Executes one attempt of those that were launched with it: the first that nobody has claimed. All tasks of a launch
 * begin at its head, so that where fewer were started than were asked for, those at its end are left, as its scheduler
 * takes it. One that finds none ends at once, and so does one that is to stop before it has claimed any. Throws what a
 * claim throws.
 */
export async function runBatch(
  deps: AttemptDeps,
  { batch = [], ...first }: AttemptPayload,
): Promise<PackOutcome> {
  let outcomes = await runPack(deps, first);
  for (const other of batch) {
    if (outcomes[0] !== 'refused' || deps.stopSignal?.aborted === true) break;
    outcomes = await runPack(deps, { ...first, copies: undefined, saved: undefined, ...other });
  }
  return outcomes;
}
