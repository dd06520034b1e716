import { decisionsOf } from '../contracts/decision-log.ts';
import {
  AccessDeniedError,
  BrokenInvariantError,
  JobFailedError,
  LeaseHeldError,
  UnreadableRecordError,
} from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import type { ScheduleOutput } from '../contracts/payloads.ts';
import type { Plan } from '../contracts/plan.ts';
import { finalJobStates, type JobRecord, type LogEntry } from '../contracts/records.ts';
import { type DurationMs, durationMs, type EpochMs, epochMs, later } from '../contracts/units.ts';
import { applyDecisions, decideTick, type TickDecision } from '../core/decide-tick.ts';
import type { Decision } from '../core/model/decision.ts';
import { createJobState, withdrawAttempt } from '../core/model/job-state.ts';
import { summarizeJob } from '../core/model/job-summary.ts';
import { addedCopies, type CloneAnswer, owedClones } from '../core/model/stage-clones.ts';
import type { TickConfig } from '../core/model/tick-config.ts';
import { slotDemand } from '../core/policy/owed-launches.ts';
import { policySetOf } from '../core/policy/policy-sets.ts';
import { createRng } from '../lib/rng.ts';
import type { Clock } from '../ports/clock.ts';
import type { DecisionLog, JobStore, LeaseStore } from '../ports/job-store.ts';
import type { JobAccess } from '../ports/job-access.ts';
import type { Log } from '../ports/log.ts';
import {
  admitClones,
  type CloneDeps,
  clonesTaken,
  type CloneTick,
  releaseEndedClones,
} from './admit-clones.ts';
import { keepAssignments } from './clone-statistics.ts';
import { loadPlan, shapesOf } from './load-plan.ts';
import { logClones } from './log-clones.ts';
import { grantOf } from './job-grant.ts';
import { prepareStage } from './open-stage.ts';
import { performDecisions, type PerformDeps } from './perform-decisions.ts';
import { sweepEnded } from './end-job.ts';
import { findJob } from './query-jobs.ts';
import { readChanges, takeOutputs } from './read-changes.ts';
import type { Residency, Session } from './scheduler-session.ts';

/** Times of the resident scheduler. */
export interface SchedulerConfig {
  readonly tickMs: DurationMs;
  readonly heartbeatMs: DurationMs;
  readonly leaseMs: DurationMs;
  readonly claimLeaseMs: DurationMs;
  /** Slots of all jobs together. */
  readonly totalSlots: number;
  /** How far writers' clocks may differ; 15 s where nothing is said. */
  readonly clockSkewMs?: DurationMs;
  /** How often at most the job's record is brought up to date; each second where nothing is said. */
  readonly summaryEveryMs?: DurationMs;
}

export interface SchedulerDeps extends PerformDeps, CloneDeps {
  readonly jobs: JobStore;
  readonly leases: LeaseStore;
  readonly decisions: DecisionLog;
  readonly clock: Clock;
  readonly log: Log;
  /** Sessions of attempts, on hosts where attempts have rights of their own. */
  readonly access?: JobAccess;
  readonly config: SchedulerConfig;
  /** Opens a stage in the state; another than `prepareStage` where data has sizes but no bytes. */
  readonly prepareStage?: typeof prepareStage;
  /** Settings of a job's ticks that differ from those of its plan. */
  readonly tuneTick?: (config: TickConfig, jobId: JobId) => TickConfig;
  /** Free slots of each node that has any, by its name, on hosts that know. */
  readonly freeNodes?: (jobId: JobId) => ReadonlyMap<string, number> | undefined;
}

/** The job's record is brought up to date at most this often. */
const defaultSummaryEveryMs = durationMs(1_000);
/** A throttled launch waits so long before it is tried again. */
const throttleDelayMs = durationMs(1_000);
/** Beyond any job's life at 20 ticks a second. */
const maxTicks = 1_000_000;

function tickConfigOf({ heartbeatMs, claimLeaseMs }: SchedulerConfig, plan: Plan): TickConfig {
  return {
    policy: plan.policy,
    ...(plan.policyConfig === undefined ? {} : { policyConfig: plan.policyConfig }),
    reportMs: heartbeatMs,
    claimLeaseMs,
    silenceMs: durationMs(heartbeatMs * 5),
    attemptsPerTask: limits.attemptsPerTask,
    retryBaseMs: durationMs(500),
    retryCeilingMs: durationMs(30_000),
    drainMs: durationMs(heartbeatMs * 3 + 5_000),
    decisionsPerTick: limits.decisionsPerTick,
  };
}

const lease = (deps: SchedulerDeps, now: EpochMs): EpochMs => later(now, deps.config.leaseMs);

function apply(deps: SchedulerDeps, session: Session, decisions: readonly Decision[], now: EpochMs): void {
  const open = deps.prepareStage ?? prepareStage;
  applyDecisions(session.state, decisions, {
    now,
    openStage: (stage) => session.openStages.set(stage, open(session.state, session.plan, stage, now)),
  });
}

async function perform(
  deps: SchedulerDeps,
  session: Session,
  decisions: readonly Decision[],
  now: EpochMs,
): Promise<void> {
  const outcomes = await performDecisions(deps, session, decisions, now);
  // The last first: an attempt can be withdrawn only while none of its task is numbered after it.
  for (const { attemptId, outcome, message, denied } of outcomes.toReversed()) {
    if (outcome === 'accepted') continue;
    if (denied === true) throw new AccessDeniedError(message ?? 'access denied', { attemptId });
    if (outcome === 'refused')
      throw new JobFailedError(`attempt ${attemptId} cannot be launched: ${message ?? 'refused'}`);
    deps.log.warn('throttled', { jobId: session.jobId, attemptId, message });
    withdrawAttempt(session.state, attemptId, later(now, throttleDelayMs));
  }
}

/**
 * Takes the job's lease and rebuilds the job from its plan, its decision log and the store; performs the last
 * entry once more. Throws `LeaseHeldError` where another scheduler holds the lease.
 */
export async function enterJob(deps: SchedulerDeps, jobId: JobId, residency: Residency): Promise<Session> {
  const now = deps.clock.now();
  const held = await deps.leases.acquire(jobId, residency.owner, now, deps.config.leaseMs);
  if (held.kind === 'held')
    throw new LeaseHeldError('another scheduler holds the lease', { jobId, until: held.until });
  const plan = await loadPlan(deps.objects, deps.dataBucket, await findJob(deps.jobs, jobId));
  const planned = tickConfigOf(deps.config, plan);
  const tickConfig = deps.tuneTick?.(planned, jobId) ?? planned;
  const state = createJobState(
    shapesOf(plan),
    tickConfig.launchOrder ?? policySetOf(tickConfig.policy).launchOrder,
  );
  const session: Session = {
    jobId,
    residency,
    plan,
    epoch: held.epoch,
    state,
    openStages: new Map(),
    heartbeatMs: deps.config.heartbeatMs,
    rng: createRng(jobId),
    tickConfig,
    version: 0,
    readUntil: epochMs(0),
    leaseUntil: lease(deps, now),
    grant: 0,
    slotsShort: 0,
    grantUntil: epochMs(0),
    cloneCharges: new Map(),
    summarizedAt: epochMs(0),
    lastSummary: '',
    unreadable: new Set(),
  };
  takeOutputs(state, await deps.attempts.changes({ jobId, shards: plan.shards }, epochMs(0)), now);
  let last: readonly Decision[] = [];
  for await (const entry of deps.decisions.read(jobId)) {
    last = decisionsOf(jobId, entry, session.version);
    follow(deps, session, last, entry);
    session.version = entry.version;
  }
  // Fences off whoever held the lease before. The entry repeats the last one's decisions, for it is the last one now:
  // should this scheduler die before it has performed them, the next one finds them there.
  await append(deps, session, { decisions: last, refusals: [] }, now);
  await keepAccess(deps, session, await findJob(deps.jobs, jobId), now);
  await perform(deps, session, last, now);
  await readChanges(deps, session, now);
  deps.log.info('entered', { jobId, epoch: held.epoch, version: session.version });
  return session;
}

/** Applies an entry of the log. One that does not fit the job is as good as one that cannot be read. */
function follow(
  deps: SchedulerDeps,
  session: Session,
  decisions: readonly Decision[],
  { version, at }: LogEntry,
): void {
  try {
    apply(deps, session, decisions, at);
  } catch (cause) {
    if (!(cause instanceof BrokenInvariantError)) throw cause;
    const name = `entry ${version} of the decision log of job ${session.jobId}`;
    throw new UnreadableRecordError(`${name} cannot be followed: ${cause.message}`, cause.details, { cause });
  }
}

async function append(
  deps: SchedulerDeps,
  session: Session,
  decided: Pick<TickDecision, 'decisions' | 'refusals'>,
  now: EpochMs,
): Promise<void> {
  const entry = {
    version: session.version + 1,
    epoch: session.epoch,
    at: now,
    decisions: [...decided.decisions, ...decided.refusals],
  };
  if ((await deps.decisions.append(session.jobId, entry)) === 'stale') {
    throw new LeaseHeldError('another scheduler has taken over', {
      jobId: session.jobId,
      version: entry.version,
    });
  }
  session.version += 1;
}

async function keepLease(deps: SchedulerDeps, session: Session, now: EpochMs): Promise<void> {
  if (session.leaseUntil - now > deps.config.leaseMs / 2) return;
  const until = lease(deps, now);
  if ((await deps.leases.renew(session.jobId, session.residency.owner, session.epoch, until)) === 'lost') {
    throw new LeaseHeldError('another scheduler has taken over', { jobId: session.jobId });
  }
  session.leaseUntil = until;
}

/** Also without anything to launch: what runs for long lives on the session's renewals. */
async function keepAccess(
  deps: SchedulerDeps,
  session: Session,
  job: JobRecord,
  now: EpochMs,
): Promise<void> {
  if (deps.access !== undefined) session.access = await deps.access.keep(grantOf(job), now);
}

const grantContext = ({ config }: SchedulerDeps, now: EpochMs): CloneTick => ({
  totalSlots: config.totalSlots,
  now,
  length: durationMs(config.leaseMs * 4),
});

/**
 * Slots for what is live and owed, and for the copies that the last tick would have launched. The ledger is asked
 * when the need changes or the grant must be renewed.
 */
async function slotsOf(
  deps: SchedulerDeps,
  session: Session,
  now: EpochMs,
  clones: readonly CloneAnswer[],
): Promise<number> {
  const { state, slotsShort } = session;
  const needed = slotDemand(state) + owedClones(state.stages) + addedCopies(clones) + slotsShort;
  const wanted = Math.min(deps.config.totalSlots, needed);
  const renewal = session.grantUntil - now < deps.config.leaseMs * 2;
  if (wanted === session.grant && !renewal) return session.grant;
  const context = grantContext(deps, now);
  session.grant = await deps.ledger.resize(session.jobId, wanted, context);
  session.grantUntil = later(now, context.length);
  return session.grant;
}

async function writeSummary(
  deps: SchedulerDeps,
  session: Session,
  now: EpochMs,
  force: boolean,
): Promise<void> {
  if (!force && now - session.summarizedAt < (deps.config.summaryEveryMs ?? defaultSummaryEveryMs)) return;
  const summary = summarizeJob(session.state, session.plan.stages, now);
  const text = JSON.stringify(summary);
  session.summarizedAt = now;
  if (text === session.lastSummary) return;
  await deps.jobs.update(session.jobId, ['running'], summary);
  session.lastSummary = text;
}

async function tick(deps: SchedulerDeps, session: Session, job: JobRecord): Promise<TickDecision> {
  const now = deps.clock.now(); // The only clock reading of the tick.
  await keepLease(deps, session, now);
  await keepAccess(deps, session, job, now);
  await readChanges(deps, session, now);
  await releaseEndedClones(deps, session);
  const taken = await clonesTaken(deps, session);
  const isCancelled = job.cancelRequestedAt !== undefined;
  const clones = isCancelled ? [] : await admitClones(deps, session, grantContext(deps, now));
  const slots = await slotsOf(deps, session, now, clones);
  const freeNodes = deps.freeNodes?.(session.jobId);
  const budget = {
    slots,
    cancelRequested: isCancelled,
    clusterSlots: deps.config.totalSlots,
    ...(freeNodes === undefined ? {} : { freeNodes }),
    ...(clones.length === 0 ? {} : { clones }),
    ...(taken.length === 0 ? {} : { clonesTaken: taken }),
  };
  const decided = decideTick(session.state, now, session.tickConfig, budget, session.rng);
  session.slotsShort = decided.slotsShort;
  if (decided.decisions.length > 0) {
    await append(deps, session, decided, now);
    logClones(deps.log, session, decided);
    apply(deps, session, decided.decisions, now);
    await perform(deps, session, decided.decisions, now);
  }
  const isOver = decided.outcome.kind !== 'continue';
  if (isOver) await keepAssignments(deps, session, now);
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

/** Gives the lease back, so that whoever enters next need not wait for it. No effect if it was lost; never throws. */
export async function leaveJob(deps: SchedulerDeps, { jobId, residency, epoch }: Session): Promise<void> {
  await deps.leases.release(jobId, residency.owner, epoch).catch((cause: unknown) => {
    deps.log.warn('lease not released', { jobId, cause: String(cause) });
  });
}

async function tickUntilSettled(deps: SchedulerDeps, session: Session): Promise<ScheduleOutput['outcome']> {
  for (let ticks = 0; ticks < maxTicks; ticks++) {
    const { outcome, decisions } = await runTick(deps, session);
    if (outcome.kind === 'finish') return 'finish';
    if (outcome.kind === 'fail') {
      const details = { jobId: session.jobId };
      throw outcome.cause === 'access-denied'
        ? new AccessDeniedError(outcome.message, details)
        : new JobFailedError(outcome.message, details);
    }
    if (decisions.some(({ kind }) => kind === 'open-stage')) continue; // Its tasks are owed at once.
    if (later(deps.clock.now(), deps.config.tickMs) >= session.residency.until) return 'continue';
    await deps.clock.sleep(deps.config.tickMs);
  }
  return 'continue';
}

/**
 * Runs a job's scheduler until every task is committed (`finish`) or its invocation's time is nearly up
 * (`continue`: enter again). Of two schedulers at once one throws `LeaseHeldError` and acts no more. Throws
 * `JobFailedError` where the job cannot end well or was cancelled. One that slept while its job was ended takes back
 * what it has done since.
 */
export async function runScheduler(
  deps: SchedulerDeps,
  jobId: JobId,
  residency: Residency,
): Promise<ScheduleOutput> {
  try {
    return await reside(deps, jobId, residency);
  } catch (cause) {
    await sweepEnded(deps, jobId).catch((failure: unknown) => {
      deps.log.warn('ended job not swept', { jobId, cause: String(failure) });
    });
    throw cause;
  }
}

async function reside(deps: SchedulerDeps, jobId: JobId, residency: Residency): Promise<ScheduleOutput> {
  const session = await enterJob(deps, jobId, residency);
  try {
    return { jobId, outcome: await tickUntilSettled(deps, session) };
  } finally {
    await leaveJob(deps, session); // Also after a failure: whoever tries again must not wait.
  }
}
