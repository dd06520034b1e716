import { LeaseHeldError } from '../contracts/errors.ts';
import type { JobRecord } from '../contracts/records.ts';
import { type EpochMs, later } from '../contracts/units.ts';
import { grantOf } from './job-grant.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Session } from './scheduler-session.ts';

/** Until when a lease holds that is taken now. */
export const lease = (deps: SchedulerDeps, now: EpochMs): EpochMs => later(now, deps.config.leaseMs);

/** Renews the lease once half of it is over, or its scheduler's clock was set back. Throws `LeaseHeldError` where another has taken over. */
export async function keepLease(deps: SchedulerDeps, session: Session, now: EpochMs): Promise<void> {
  const leftMs = session.leaseUntil - now;
  if (leftMs > deps.config.leaseMs / 2 && leftMs <= deps.config.leaseMs) return;
  const until = lease(deps, now);
  if ((await deps.leases.renew(session.jobId, session.residency.owner, session.epoch, until)) === 'lost') {
    throw new LeaseHeldError('another scheduler has taken over', { jobId: session.jobId });
  }
  session.leaseUntil = until;
}

/** Also without anything to launch: what runs for long lives on the session's renewals. */
export async function keepAccess(
  deps: SchedulerDeps,
  session: Session,
  job: JobRecord,
  now: EpochMs,
): Promise<void> {
  if (deps.access !== undefined) session.access = await deps.access.keep(grantOf(job), now);
}
