import { durationMs, type EpochMs } from '../contracts/units.ts';
import type { BackupsSaid } from '../core/capacity/admit-backups.ts';
import type { TickDecision } from '../core/decide-tick.ts';
import { addedCopies, type CloneAnswer, owedClones } from '../core/model/stage-clones.ts';
import { slotDemand } from '../core/policy/owed-launches.ts';
import type { OwnPlaces } from '../core/policy/own-places.ts';
import type { TickBudget } from '../core/model/tick-config.ts';
import { policySetOf } from '../core/policy/policy-sets.ts';
import type { GrantContext } from './capacity-ledger.ts';
import { type Outlook, type StageCopies, usableSlots } from './observe-launches.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Session } from './scheduler-session.ts';

const sumOf = (copies: StageCopies): number => [...copies.values()].reduce((sum, each) => sum + each, 0);

/** For whom the ledger is asked, and when. */
export const grantContext = ({ config }: SchedulerDeps, session: Session, now: EpochMs): GrantContext => ({
  totalSlots: config.totalSlots,
  now,
  length: durationMs(config.leaseMs * 4),
  since: session.submittedAt,
  epoch: session.epoch,
  ...session.share,
  live: session.state.live.size,
});

/**
 * Copies that each stage of a job can use beside one attempt of each task, by its place: its clones, and those that the
 * last tick had no slot for.
 */
export const wantedCopies = (
  { state, shortByStage }: Pick<Session, 'state' | 'shortByStage'>,
  clones: readonly CloneAnswer[],
): StageCopies =>
  new Map(
    state.stages.flatMap((stage): (readonly [number, number])[] => {
      const { index } = stage;
      const added = addedCopies(clones.filter((each) => each.stage === index));
      const copies = owedClones([stage]) + added + (shortByStage.get(index) ?? 0);
      return copies === 0 ? [] : [[index, copies]];
    }),
  );

/** Whether the job's policy bounds the backups of all jobs together. */
function sharesCap({ tickConfig: { policy, policyConfig } }: Session): boolean {
  return policySetOf(policy).isCapOfCluster?.(policyConfig) === true;
}

/** What the job says of its backups. */
function backupsSaid({ state, shortByStage }: Session): BackupsSaid {
  let running = 0;
  for (const { reason, cancelOrdered } of state.live) if (reason === 'backup' && !cancelOrdered) running += 1;
  return { running, wanted: running + sumOf(shortByStage) };
}

/** Backups that the job may run of those that all jobs may, where its policy bounds those. */
export const admittedBackups = ({ ledger }: SchedulerDeps, session: Session): Pick<TickBudget, 'backups'> =>
  sharesCap(session) ? { backups: ledger.admitted(session.jobId, 'backups') } : {};

/** Asks for the backups that a tick would launch if all jobs might run more; answers whether the job may run more now. */
export async function admitBackups(
  deps: SchedulerDeps,
  session: Session,
  now: EpochMs,
  { backupsShort }: Pick<TickDecision, 'backupsShort'>,
): Promise<boolean> {
  if (backupsShort === undefined) return false;
  const { ledger } = deps;
  const before = ledger.admitted(session.jobId, 'backups');
  const context = grantContext(deps, session, now);
  return (await ledger.admitBackups(session.jobId, backupsShort, context)) > before;
}

/** The most slots of a job that takes none but those that are its own. */
export function ownSlotsAlone({ plan, state: { allocation }, share: { guaranteed = 0 } }: Session): number {
  const isOwn = !plan.policyConfig.jockey.spareSlots && allocation !== undefined && allocation.slots > 0;
  return isOwn ? Math.max(1, guaranteed) : Infinity;
}

/** What the job may launch with. */
export interface SlotsAnswered {
  readonly granted: number;
  /** Launches beside what is live that it could make with the slots that it may have, if there were room for all. */
  readonly able: number;
}

/** What the job has of what is shared. */
export const shareOf = (
  { ledger }: SchedulerDeps,
  { jobId, share: { weight } }: Session,
): { readonly weight: number | undefined; readonly guaranteed: number } => ({
  weight,
  guaranteed: ledger.admitted(jobId, 'guaranteed'),
});

/**
 * Slots that the job may launch with: for what is live and owed, and for the copies that the last tick would have
 * launched, as far as its part of the room goes. The ledger is asked each tick, which costs something only where
 * there is news.
 */
export async function slotsOf(
  deps: SchedulerDeps,
  session: Session,
  now: EpochMs,
  {
    copies,
    outlook,
    own,
  }: { readonly copies: StageCopies; readonly outlook: Outlook | undefined; readonly own: OwnPlaces },
): Promise<SlotsAnswered> {
  const { state } = session;
  // What there are no dollars for needs no slot either.
  const owed = Math.max(state.live.size, slotDemand(state, own) - session.overBudget);
  const needed = owed + sumOf(copies);
  const usable = outlook === undefined ? needed : Math.min(needed, usableSlots(state, outlook));
  const most = Math.min(deps.config.totalSlots, ownSlotsAlone(session));
  const wanted = Math.min(most, usable);
  const backups = sharesCap(session) ? { backups: backupsSaid(session) } : {};
  const context = { ...grantContext(deps, session, now), ...backups };
  const granted = await deps.ledger.resize(session.jobId, wanted, context);
  session.grant = granted;
  // Where its part of the room is all that it has asked for, it could use more of that.
  const slots = granted < wanted ? granted : Math.min(most, needed);
  return { granted, able: Math.max(0, slots - state.live.size) };
}
