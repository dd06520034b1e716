import type { EpochMs } from '../contracts/units.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { AttemptStore, TaskRecords, TaskSpace } from '../ports/attempt-store.ts';

interface EarlierDeps {
  readonly attempts: Pick<AttemptStore, 'all' | 'recordDeath'>;
  readonly config: { readonly workersSince?: EpochMs };
}

const writesAtOnce = 16;

/**
 * All records of a job. On a host that ends with its workers those that had claimed an attempt before it began are gone: their
 * attempts are ended as interrupted first, so that none is waited for, and none is a strike against its task. They end with what
 * was heard of them last: how long nothing ran since, which may be days, is no time of workers.
 */
export async function recordsOfLiving(deps: EarlierDeps, space: TaskSpace): Promise<TaskRecords> {
  const { attempts, config } = deps;
  const records = await attempts.all(space);
  const { workersSince } = config;
  if (workersSince === undefined) return records;
  const earlier = records.attempts.flatMap(({ attemptId, state, claimedAt, reportedAt, invocation }) =>
    state === 'running' && claimedAt !== undefined && claimedAt < workersSince && invocation !== undefined
      ? [{ attemptId, invocation, endedAt: reportedAt ?? claimedAt }]
      : [],
  );
  if (earlier.length === 0) return records;
  const failure = { cause: 'interrupted', message: 'its worker ended with the stack that ran it' } as const;
  await forEachBounded(earlier, writesAtOnce, async ({ attemptId, invocation, endedAt }) => {
    await attempts.recordDeath(space, attemptId, { invocation, failure }, endedAt, 'claimed');
  });
  return attempts.all(space);
}
