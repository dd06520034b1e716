import { durationMs, type EpochMs } from '../contracts/units.ts';
import { addedCopies, type CloneAnswer, owedClones } from '../core/model/stage-clones.ts';
import { slotDemand } from '../core/policy/owed-launches.ts';
import type { GrantContext } from './capacity-ledger.ts';
import { type Outlook, usableSlots } from './observe-launches.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Session } from './scheduler-session.ts';

/** For whom the ledger is asked, and when. */
export const grantContext = ({ config }: SchedulerDeps, session: Session, now: EpochMs): GrantContext => ({
  totalSlots: config.totalSlots,
  now,
  length: durationMs(config.leaseMs * 4),
  since: session.submittedAt,
  epoch: session.epoch,
  ...(config.sharing === 'first-come' ? {} : { live: session.state.live.size }),
});

/** Copies that a job can use beside one attempt of each task: its clones, and those that the last tick had no slot for. */
export const wantedCopies = ({ state, slotsShort }: Session, clones: readonly CloneAnswer[]): number =>
  owedClones(state.stages) + addedCopies(clones) + slotsShort;

/**
 * Slots that the job may launch with: for what is live and owed, and for the copies that the last tick would have
 * launched, as far as there seems to be room for them. The ledger is asked each tick, which costs something only where
 * there is news.
 */
export async function slotsOf(
  deps: SchedulerDeps,
  session: Session,
  now: EpochMs,
  { copies, outlook }: { readonly copies: number; readonly outlook: Outlook | undefined },
): Promise<number> {
  const { state } = session;
  const needed = slotDemand(state) + copies;
  const wanted = Math.min(deps.config.totalSlots, usableSlots(state, needed, outlook));
  session.grant = await deps.ledger.resize(session.jobId, wanted, grantContext(deps, session, now));
  return session.grant;
}
