import type { EpochMs } from '../contracts/units.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { AttemptStore, TaskRecords, TaskSpace } from '../ports/attempt-store.ts';
import type { Clock } from '../ports/clock.ts';

interface EarlierDeps {
  readonly attempts: Pick<AttemptStore, 'all' | 'recordDeath'>;
  readonly clock: Clock;
  readonly config: { readonly workersSince?: EpochMs };
}

const writesAtOnce = 16;

/**
 * All records of a job. On a host that ends with its workers those that had claimed an attempt before it began are gone: their
 * attempts are ended as interrupted first, so that none is waited for, and none is a strike against its task.
 */
export async function recordsOfLiving(deps: EarlierDeps, space: TaskSpace): Promise<TaskRecords> {
  const { attempts, clock, config } = deps;
  const records = await attempts.all(space);
  const { workersSince } = config;
  if (workersSince === undefined) return records;
  const earlier = records.attempts.flatMap(({ attemptId, state, claimedAt, invocation }) =>
    state === 'running' && claimedAt !== undefined && claimedAt < workersSince && invocation !== undefined
      ? [{ attemptId, invocation }]
      : [],
  );
  if (earlier.length === 0) return records;
  const failure = { cause: 'interrupted', message: 'its worker ended with the stack that ran it' } as const;
  await forEachBounded(earlier, writesAtOnce, async ({ attemptId, invocation }) => {
    await attempts.recordDeath(space, attemptId, { invocation, failure }, clock.now(), 'claimed');
  });
  return attempts.all(space);
}
