import { decisionsOf } from '../contracts/decision-log.ts';
import { BrokenInvariantError, LeaseHeldError, UnreadableRecordError } from '../contracts/errors.ts';
import type { AttemptId, JobId } from '../contracts/ids.ts';
import { limits } from '../contracts/limits.ts';
import type { Plan } from '../contracts/plan.ts';
import type { JobRecord, LogEntry } from '../contracts/records.ts';
import { durationMs, type EpochMs, epochMs } from '../contracts/units.ts';
import type { Decision } from '../core/model/decision.ts';
import { createJobState, stageAt } from '../core/model/job-state.ts';
import type { JobState } from '../core/model/job-view.ts';
import type { TickConfig } from '../core/model/tick-config.ts';
import { usualGrace } from '../core/model/time-limit.ts';
import type { PolicySet } from '../core/policy/policy-set.ts';
import { policySetOf } from '../core/policy/policy-sets.ts';
import { createRng } from '../lib/rng.ts';
import { append, apply, opened } from './commit-decisions.ts';
import { CopyQueue } from './copy-queue.ts';
import { budgetOf } from './job-budget.ts';
import { recordsOfLiving } from './end-earlier-workers.ts';
import { keepAccess, lease } from './keep-lease.ts';
import { LaunchQueue } from './launch-queue.ts';
import { observe } from './journal.ts';
import { openJournal } from './open-journal.ts';
import { loadPlan, shapesOf } from './load-plan.ts';
import { queueUnmadeLaunches } from './make-launches.ts';
import { runningOf, startWatch } from './observe-launches.ts';
import { type LaunchDecision, performDecisions } from './perform-decisions.ts';
import { keepCounts, openProtection, queueUnmadeCopies } from './protect-outputs.ts';
import { findJob } from './query-jobs.ts';
import { takeAll, takeOutputs } from './read-changes.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Residency, Session } from './scheduler-session.ts';

/** Beyond that a launch of its own is little beside each. */
const longestPackMs = durationMs(2_000);

const named = ({ policy }: Pick<Plan, 'policy'>): PolicySet => policySetOf(policy);

function tickConfigOf({ config, launcher, policyOf = named }: SchedulerDeps, plan: Plan): TickConfig {
  const { tickMs, heartbeatMs, claimLeaseMs, fargateClaimLeaseMs, hasFargate, lambdaMs } = config;
  const takesPacks = launcher.terms?.('lambda').takesPacks ?? true;
  return {
    policy: policyOf(plan),
    policyConfig: plan.policyConfig,
    killFreesSlot: launcher.nodes?.().killsAtOnce ?? false,
    reportMs: heartbeatMs,
    tickMs,
    claimLeaseMs,
    ...(fargateClaimLeaseMs === undefined ? {} : { fargateClaimLeaseMs }),
    nothingBeginsMs: durationMs(limits.nothingBeginsMs),
    silenceMs: durationMs(heartbeatMs * 5),
    // A look at its orders that fails is made again a heartbeat later; then it stops what it does.
    cancelMs: durationMs(heartbeatMs * 2 + usualGrace),
    attemptsPerTask: limits.attemptsPerTask,
    lossesPerTask: limits.lossesPerTask,
    retryBaseMs: durationMs(500),
    retryCeilingMs: durationMs(30_000),
    drainMs: durationMs(heartbeatMs * 3 + 5_000),
    decisionsPerTick: limits.decisionsPerTick,
    ...(takesPacks ? { packMs: longestPackMs } : {}),
    hasFargate: hasFargate ?? false,
    ...(lambdaMs === undefined ? {} : { lambdaMs }),
  };
}

/** The scheduler's hold on a job of which it has read the plan and nothing else yet. */
async function openSession(
  deps: SchedulerDeps,
  job: JobRecord,
  residency: Residency,
  entered: { readonly epoch: number; readonly now: EpochMs },
): Promise<Session> {
  const { epoch, now } = entered;
  const { jobId } = job;
  const plan = await loadPlan(deps.objects, deps.dataBucket, job);
  const order = plan.policyConfig.launchOrder ?? (deps.policyOf ?? named)(plan).launchOrder;
  const shapes = shapesOf(plan);
  const state = createJobState(shapes, order);
  await deps.ledger.forget(jobId); // Others may have served it since.
  await deps.nodes?.open(now);
  const budget = budgetOf(job);
  const tickConfig = tickConfigOf(deps, plan);
  const journal = openJournal(deps, { jobId, epoch, at: now, shapes, launchOrder: order, tickConfig });
  const mayBegin = (): boolean => deps.clock.now() < session.leaseUntil;
  const session: Session = {
    jobId,
    residency,
    plan,
    epoch,
    enteredAt: now,
    submittedAt: job.createdAt,
    share: {
      ...(job.spec.guaranteedSlots === undefined ? {} : { guaranteed: job.spec.guaranteedSlots }),
      ...(job.spec.weight === undefined ? {} : { weight: job.spec.weight }),
    },
    ...(budget === undefined ? {} : { budget }),
    state,
    launches: new LaunchQueue({ ...deps, mayBegin }, { jobId, shards: plan.shards }),
    copies: new CopyQueue({ ...deps, mayBegin }, { jobId, shards: plan.shards }),
    protection: await openProtection(deps, { jobId, plan, state, tickConfig }, now),
    watch: startWatch(deps.room),
    heldLaunches: [],
    openStages: new Map(),
    heartbeatMs: deps.config.heartbeatMs,
    tickMs: deps.config.tickMs,
    rng: createRng(jobId),
    tickConfig,
    journal,
    version: 0,
    leaseUntil: lease(deps, now),
    grant: 0,
    shortByStage: new Map(),
    undecidedLosses: [],
    overBudget: 0,
    cloneCharges: new Map(),
    ...(deps.requests === undefined ? {} : { coordination: job.coordination ?? {} }),
    summarizedAt: epochMs(0),
    lastSummary: '',
    unreadable: new Set(),
    toldRefusals: new Map(),
    toldNodes: new Set(),
  };
  return session;
}

/**
 * Takes the job's lease and rebuilds the job from its plan, its decision log and the store; performs the last
 * entry once more, and makes the launches that were decided on and not made. Throws `LeaseHeldError` where another
 * scheduler holds the lease.
 */
export async function enterJob(deps: SchedulerDeps, jobId: JobId, residency: Residency): Promise<Session> {
  const now = deps.clock.now();
  const { owner, replaces, outlasted = now } = residency;
  const asOf = epochMs(Math.max(now, outlasted));
  const held = await deps.leases.acquire(jobId, owner, asOf, deps.config.leaseMs, replaces);
  if (held.kind === 'held')
    throw new LeaseHeldError('another scheduler holds the lease', { jobId, until: held.until });
  const job = await findJob(deps.jobs, jobId);
  const session = await openSession(deps, job, residency, { epoch: held.epoch, now });
  const { plan, state } = session;
  const space = { jobId, shards: plan.shards };
  const { last, launches } = await followLog(deps, session, now);
  // Fences off whoever held the lease before. The entry repeats the last one's decisions, for it is the last one now:
  // should this scheduler die before it has performed them, the next one finds them there.
  await append(deps, session, { decisions: last, refusals: [] }, now);
  session.journal?.add({ kind: 'fence', version: session.version });
  await keepAccess(deps, session, job, now);
  await performDecisions(deps, session, last, now);
  // After the fence: of what whoever was before has taken out of the inbox nothing is missed.
  const records = await recordsOfLiving(deps, space);
  // It may have been frozen on its way here: what it has seen only now has not been silent since it came.
  const seenAt = deps.clock.now();
  takeAll(deps, session, records, seenAt);
  // Patience with those that live begins anew, by this scheduler's clock.
  observe(session, { kind: 'taken-over', at: seenAt });
  queueUnmadeCopies(deps, session);
  queueUnmadeLaunches(session, launches, held.inOrder ?? false);
  session.watch.room.enter(jobId, runningOf(state), now);
  deps.log.info('entered', { jobId, epoch: held.epoch, version: session.version });
  return session;
}

/** Whether a stage opens by results that were not there yet when they were read. */
const opensUnseen = (state: JobState, decisions: readonly Decision[]): boolean =>
  decisions.some(
    (each) =>
      each.kind === 'open-stage' &&
      state.stages[each.stage]?.shape.upstream.some((input) => stageAt(state, input).state !== 'done') ===
        true,
  );

/**
 * Takes over the results there are, and then what the log has decided by them. Answers the decisions of its last entry,
 * and the last launch of each attempt.
 */
async function followLog(
  deps: SchedulerDeps,
  session: Session,
  now: EpochMs,
): Promise<{ last: readonly Decision[]; launches: ReadonlyMap<AttemptId, LaunchDecision> }> {
  const { jobId, plan, state } = session;
  const space = { jobId, shards: plan.shards };
  let known = await deps.attempts.all(space);
  takeOutputs(session, known, now);
  let last: readonly Decision[] = [];
  const launches = new Map<AttemptId, LaunchDecision>();
  for await (const entry of deps.decisions.read(jobId)) {
    last = decisionsOf(jobId, entry, session.version);
    if (opensUnseen(state, last)) {
      // Whoever was before lives still, and has decided since by results that came after ours were read.
      known = await deps.attempts.all(space);
      takeOutputs(session, known, now);
    }
    follow(session, last, entry);
    // Results of tasks that it has added were nobody's before it.
    if (last.some((each) => each.kind === 'open-stage' && each.splits !== undefined))
      takeOutputs(session, known, now);
    for (const each of last) if (each.kind === 'launch') launches.set(each.attemptId, each);
    session.version = entry.version;
  }
  return { last, launches };
}

/** Applies an entry of the log. One that does not fit the job is as good as one that cannot be read. */
function follow(session: Session, decisions: readonly Decision[], entry: LogEntry): void {
  const { version, at } = entry;
  try {
    apply(session, decisions, at);
    // Hosts that keep no journal are spared the text.
    session.journal?.add({
      ...{ kind: 'entry', version, at, decided: JSON.stringify(entry.decisions) },
      ...opened(session.state, decisions),
    });
  } catch (cause) {
    if (!(cause instanceof BrokenInvariantError)) throw cause;
    const name = `entry ${version} of the decision log of job ${session.jobId}`;
    throw new UnreadableRecordError(`${name} cannot be followed: ${cause.message}`, cause.details, { cause });
  }
}

/**
 * Ends the launches that are under way, and gives the lease back, so that whoever enters next need not wait for it, nor
 * make launches again that were made. No effect if it was lost; never throws.
 */
export async function leaveJob(deps: SchedulerDeps, session: Session): Promise<void> {
  const { jobId, residency, epoch, launches, copies, watch, journal } = session;
  if (session.state.doneAt !== undefined) await keepCounts(deps, session, deps.clock.now());
  await Promise.all([launches.close(), copies.close(), journal?.close()]);
  watch.room.leave(jobId);
  await deps.ledger.forget(jobId).catch(() => undefined);
  const inOrder = launches.isDone ? 'in-order' : undefined;
  await deps.leases.release(jobId, residency.owner, epoch, inOrder).catch((cause: unknown) => {
    deps.log.warn('lease not released', { jobId, cause: String(cause) });
  });
}
