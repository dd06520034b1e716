import type { AttemptPayload } from '../contracts/payloads.ts';
import { declinedOn } from '../contracts/records.ts';
import { durationMs } from '../contracts/units.ts';
import type { ClaimPlace, TaskSpace } from '../ports/attempt-store.ts';
import type { AttemptDeps } from './run-attempt.ts';

/** Whether the launch of an attempt says that its worker's node is to be avoided. */
export const isAvoided = ({ avoid }: AttemptPayload, { node }: ClaimPlace): boolean =>
  avoid?.nodes.includes(node) === true;

/**
 * Declines an attempt that nobody has claimed: its scheduler launches its task again, and nothing of it has run. Then
 * keeps the node busy for as long as the launch says, since a service that chooses nodes by itself hands the next launch
 * to one that is idle, the last one used as a rule. `refused`: it was claimed before, cancelled or lost. Throws what the
 * store throws, as a claim does.
 */
export async function decline(
  { attempts, clock, log, invocation, stopSignal }: AttemptDeps,
  { jobId, attemptId, avoid }: AttemptPayload,
  space: TaskSpace,
  place: ClaimPlace,
): Promise<'declined' | 'refused'> {
  const { node } = place;
  const death = { invocation: invocation ?? node, failure: declinedOn(node) };
  if ((await attempts.recordDeath(space, attemptId, death, clock.now())) === 'refused') return 'refused';
  log.info('attempt-declined', { jobId, attemptId, node });
  await attempts.tell(space, { attemptId, kind: 'end' }, clock.now());
  await clock.sleep(durationMs(avoid?.holdMs ?? 0), stopSignal);
  return 'declined';
}
