import type { AttemptId } from '../contracts/ids.ts';
import { declinedOn } from '../contracts/records.ts';
import type { EpochMs } from '../contracts/units.ts';
import type { AttemptStore, TaskSpace } from '../ports/attempt-store.ts';

/** Declines an attempt as production's worker does, and has the scheduler look at it. */
export async function recordDecline(
  { store, now }: { readonly store: AttemptStore; readonly now: () => EpochMs },
  space: TaskSpace,
  attemptId: AttemptId,
  node: string,
): Promise<'recorded' | 'refused'> {
  const death = { invocation: node, failure: declinedOn(node) };
  const outcome = await store.recordDeath(space, attemptId, death, now());
  if (outcome === 'recorded') await store.tell(space, { attemptId, kind: 'end' }, now());
  return outcome;
}
