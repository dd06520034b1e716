import { JobFailedError } from '../contracts/errors.ts';
import { type JobRecord, finalJobStates } from '../contracts/records.ts';
import { type EpochMs, epochMs } from '../contracts/units.ts';
import { type TickDecision, decideTick } from '../core/decide-tick.ts';
import { summarizeJob } from '../core/model/job-summary.ts';
import { admitClones, clonesTaken, releaseEndedClones } from './admit-clones.ts';
import { admitBackups, admittedBackups, grantContext, shareOf, slotsOf, wantedCopies } from './ask-slots.ts';
import { keepAssignments } from './clone-statistics.ts';
import { append, apply, perform } from './commit-decisions.ts';
import { budgetTerms } from './job-budget.ts';
import { keepAccess, keepLease } from './keep-lease.ts';
import { controlDeadline, type DeadlineTurn } from './control-deadline.ts';
import { lookForLosses } from './look-for-losses.ts';
import { logDecisions } from './log-decisions.ts';
import { takeLaunches } from './make-launches.ts';
import { giveBackRoom, takeRoom, watchLaunches, watchUnplaced } from './observe-launches.ts';
import type { FoundLoss, TickBudget } from '../core/model/tick-config.ts';
import { undecidedLosses } from '../core/policy/lost-outputs.ts';
import { stagePlacements } from '../core/policy/mantri/place-stages.ts';
import { workerOf } from '../core/model/stage-worker.ts';
import { policySetOf } from '../core/policy/policy-sets.ts';
import { partitionsToSplit } from '../core/policy/split-partitions.ts';
import { ownPlaces } from '../core/policy/own-places.ts';
import { tellTick } from './open-journal.ts';
import { copiesMade, keepUndecided, learnLosses, protectOutputs, takeCopies } from './protect-outputs.ts';
import { findJob } from './query-jobs.ts';
import { clearInbox, readChanges } from './read-changes.ts';
import { takeCounts } from './tell-costs.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Session } from './scheduler-session.ts';

/** Counters that are longer are written at the end alone: they change with each look, and cost by their length. */
const longCountersChars = 1_000;
/**
 * The job's record is brought up to date at most this often: a sum over all that there is, so less often where there is much.
 * A hundred thousand attempts take a tenth of a second and more.
 */
const summaryEveryMs = ({ state }: Session): number => Math.max(1_000, 0.1 * state.attempts.size);

/** Of the slots that the job asks to be its own, those that are. */
const guaranteedSlots = (
  { ledger }: SchedulerDeps,
  { jobId, share }: Session,
): { guaranteedSlots?: number } =>
  share.guaranteed === undefined ? {} : { guaranteedSlots: ledger.admitted(jobId, 'guaranteed') };

/**
 * Notes that the job waits for no scheduler where its record says that it does. Looked for in each tick: whoever enlisted it
 * says so perhaps only once it is served, and by a clock that may be ahead.
 */
function noteServed(session: Session, { waitingSince, scheduledAt }: JobRecord, now: EpochMs): void {
  const known = Math.max(scheduledAt ?? 0, session.scheduledAt ?? 0);
  if (waitingSince !== undefined && known < waitingSince)
    session.scheduledAt = epochMs(Math.max(now, waitingSince));
}

async function writeSummary(
  deps: SchedulerDeps,
  session: Session,
  now: EpochMs,
  force: boolean,
): Promise<void> {
  if (!force && now - session.summarizedAt < (deps.config.summaryEveryMs ?? summaryEveryMs(session))) return;
  takeCounts(deps, session);
  const { coordination } = session;
  const summary = {
    ...summarizeJob(session.state, session.plan.stages, now, coordination, deps.prices),
    ...guaranteedSlots(deps, session),
    ...copiesMade(session.state),
    ...(session.scheduledAt === undefined ? {} : { scheduledAt: session.scheduledAt }),
    ...(session.deadlineControl?.told === undefined ? {} : { forecast: session.deadlineControl.told }),
  };
  const { counters, ...others } = summary;
  const isLong = JSON.stringify(counters).length > longCountersChars;
  const told = isLong && !force ? others : summary;
  // Counts and costs grow with each look; what they are looked at for has not changed where nothing else has. What was left
  // out before is another text at the end.
  const text = JSON.stringify({ ...told, coordination: undefined, requests: undefined, costs: undefined });
  session.summarizedAt = now;
  if (text === session.lastSummary) return;
  // One that has slept knows less than its successor, and has perhaps nothing to decide by which it would notice.
  await deps.jobs.update(session.jobId, ['running'], told, { epoch: session.epoch });
  session.lastSummary = text;
}

/** Has others know what the job has learned; answers whether it is over. */
async function keepKnowledge(
  deps: SchedulerDeps,
  session: Session,
  now: EpochMs,
  { outcome }: Pick<TickDecision, 'outcome'>,
): Promise<boolean> {
  const isOver = outcome.kind !== 'continue';
  if (isOver) await keepAssignments(deps, session, now);
  await deps.nodes?.keep(session.jobId, session.state, now, isOver);
  await deps.zones?.keep(session.jobId, session.state, now, isOver);
  return isOver;
}

/**
 * Outputs that are gone: those that the last tick was too full to decide on, and what those find who copy outputs, and
 * whoever looks for what readers have missed.
 */
async function lossesFound(
  deps: SchedulerDeps,
  session: Session,
  now: EpochMs,
): Promise<readonly FoundLoss[]> {
  const fresh = [...takeCopies(deps, session), ...(await lookForLosses(deps, session))];
  learnLosses(deps, session, fresh, now);
  return [...session.undecidedLosses, ...fresh];
}

/**
 * Partitions that the stages which open now are to read by several tasks each, where those tasks are to run, among which
 * zones launches may choose, and what other jobs have told of those.
 */
async function placesTerms(
  { config, launcher, zones: zoneBook }: SchedulerDeps,
  { state, tickConfig, deadlineControl }: Session,
  now: EpochMs,
): Promise<Pick<TickBudget, 'splits' | 'placements' | 'zones' | 'zonesTold'>> {
  const { earlierMs } = deadlineControl?.forecast ?? {};
  const splits = partitionsToSplit(state, tickConfig.policyConfig.split, {
    slots: config.totalSlots,
    ...(earlierMs === undefined ? {} : { earlierMs }),
  });
  const policy = policySetOf(tickConfig.policy);
  const placesTasks = policy.placesTasks === true;
  const zones = placesTasks || policy.placesOwed !== undefined ? (launcher.zones?.() ?? []) : [];
  const placements = placesTasks ? stagePlacements(state, zones, splits) : [];
  const isOnFargate = state.stages.some((stage) => workerOf(stage).kind === 'fargate');
  const mayChoose = tickConfig.policyConfig.mantri.locationFactor && isOnFargate && zones.length >= 2;
  const zonesTold = mayChoose ? ((await zoneBook?.told(now)) ?? []) : [];
  return {
    ...(splits.length === 0 ? {} : { splits }),
    ...(placements.length === 0 ? {} : { placements }),
    ...(mayChoose ? { zones } : {}),
    ...(zonesTold.length === 0 ? {} : { zonesTold }),
  };
}

/** What the next tick is to know of one that has decided, before its decisions are taken over. */
function keepForNext(session: Session, used: TickBudget, decided: TickDecision): void {
  keepUndecided(session, used.copies, decided.decisions);
  session.undecidedLosses = undecidedLosses(decided.decisions, used.losses);
  giveBackRoom(session, used, decided);
  session.shortByStage = decided.shortByStage;
  session.overBudget = decided.overBudget;
}

async function tick(deps: SchedulerDeps, session: Session, job: JobRecord): Promise<TickDecision> {
  const now = deps.clock.now(); // The only clock reading of the tick.
  takeLaunches(deps, session, now);
  noteServed(session, job, now);
  await keepLease(deps, session, now);
  await keepAccess(deps, session, job, now);
  const inbox = await readChanges(deps, session, now);
  const losses = await lossesFound(deps, session, now);
  await releaseEndedClones(deps, session);
  const taken = await clonesTaken(deps, session);
  const isCancelled = job.cancelRequestedAt !== undefined;
  const { dollars } = budgetTerms(deps, session);
  const turn: DeadlineTurn = isCancelled ? {} : await controlDeadline(deps, session, job, now);
  const context = grantContext(deps, session, now);
  const mayClone = !isCancelled && turn.givesWay !== true;
  const clones = mayClone ? await admitClones(deps, session, context, dollars) : [];
  const own = ownPlaces(session.state, now);
  const copies = turn.givesWay === true ? new Map<number, number>() : wantedCopies(session, clones);
  const { earlierMs } = session.deadlineControl?.forecast ?? {};
  const share = shareOf(deps, session);
  watchUnplaced(session);
  const outlook = watchLaunches(deps, session, { now, copies, own, share, earlierMs });
  const { granted, able } = await slotsOf(deps, session, now, { copies, outlook, own });
  const { isHeldBack = false, ...forDeadline } = turn;
  const budget = {
    slots: isHeldBack ? 0 : granted,
    ...forDeadline,
    cancelRequested: isCancelled,
    own,
    clusterSlots: deps.config.totalSlots,
    ...(dollars === undefined ? {} : { dollars }),
    ...(earlierMs === undefined ? {} : { earlierMs }),
    freeNodes: deps.launcher.nodes?.().free,
    ...(clones.length === 0 ? {} : { clones }),
    ...(taken.length === 0 ? {} : { clonesTaken: taken }),
    ...(losses.length === 0 ? {} : { losses }),
    ...(await placesTerms(deps, session, now)),
    slowNodes: deps.nodes?.learn(session.jobId, session.state, now) ?? [],
    ...(await protectOutputs(deps, session, context, mayClone && losses.length === 0)),
  };
  const room = takeRoom(session, outlook, isHeldBack ? 0 : able);
  const terms = (): TickBudget => ({ ...budget, ...room, ...admittedBackups(deps, session) });
  const decide = (used: TickBudget): TickDecision =>
    decideTick(session.state, now, session.tickConfig, used, session.rng);
  let used = terms();
  let decided = decide(used);
  // Backups that were admitted just now are launched now.
  if (await admitBackups(deps, session, now, decided)) decided = decide((used = terms()));
  keepForNext(session, used, decided);
  if (decided.decisions.length > 0) await append(deps, session, decided, now);
  logDecisions(deps.log, session, decided, budget.slowNodes);
  if (decided.decisions.length > 0) apply(session, decided.decisions, now);
  tellTick(session, now, used, decided);
  if (decided.decisions.length > 0) await perform(deps, session, decided.decisions, now);
  else session.launches.pump(); // What the services' rates held back.
  await clearInbox(deps, session, inbox);
  const isOver = await keepKnowledge(deps, session, now, decided);
  await writeSummary(deps, session, now, isOver);
  return decided;
}

/**
 * One tick: reads what changed, decides, commits the decisions to the log, and then acts. The commit is the
 * fence: where another scheduler has taken over this throws `LeaseHeldError` and acts no more. Throws
 * `JobFailedError` where the job has ended meanwhile. After a tick that opened a stage another is due at once.
 */
export async function runTick(deps: SchedulerDeps, session: Session): Promise<TickDecision> {
  const job = await findJob(deps.jobs, session.jobId);
  if (finalJobStates.includes(job.state))
    throw new JobFailedError(`job ${session.jobId} has ended`, { state: job.state });
  return tick(deps, session, job);
}
