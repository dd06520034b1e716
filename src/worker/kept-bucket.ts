import { type AttemptId, attemptParts } from '../contracts/ids.ts';
import type { StageDescription } from '../contracts/plan.ts';
import { bucketOfWorker } from '../contracts/worker-places.ts';
import type { OutputKeeper } from '../ports/output-keeper.ts';

/**
 * The bucket that stands for this worker, where the attempt is to leave its output with it. Only first attempts do: what is
 * done again, since an output is gone, a disk was full or a worker is slow, goes to the data bucket. So a task is done
 * again once for this tier, also where workers cannot reach each other at all.
 */
export async function keptBucket(
  keeper: OutputKeeper | undefined,
  { keptTasks = 0, output }: StageDescription,
  attemptId: AttemptId,
): Promise<string | undefined> {
  const { task, attempt } = attemptParts(attemptId);
  if (output === 'final' || attempt > 0 || task >= keptTasks) return undefined;
  const address = await keeper?.open();
  return address === undefined ? undefined : bucketOfWorker(address);
}
