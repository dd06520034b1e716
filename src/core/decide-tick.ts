import { failedTaskText } from '../contracts/failed-task.ts';
import { type AttemptId, taskIdOf } from '../contracts/ids.ts';
import { durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { Rng } from '../lib/rng.ts';
import type { CancelReason, Decision, Refusal, TickOutcome } from './model/decision.ts';
import {
  addAttempt,
  cancelAttempt,
  cloneStage,
  loseAttempt,
  preemptClones,
  stageAt,
} from './model/job-state.ts';
import { loseOutput, renewInputs } from './model/lost-outputs.ts';
import { splitStage } from './model/split-stage.ts';
import type { CloneAnswer, ClonesTaken } from './model/stage-clones.ts';
import type { LaunchRoom, TickBudget, TickConfig } from './model/tick-config.ts';
import { affordsOwed, budgetEnd, type Spending, spendingOf } from './policy/budget.ts';
import { dispose } from './policy/arbitrate.ts';
import { launchOwed, launchRiders } from './policy/launch-owed.ts';
import { openAccount } from './policy/spend-slots.ts';
import { nodesDeclined } from './policy/elsewhere.ts';
import { preemptedCopies } from './policy/dolly/preempted-copies.ts';
import { lostAttempts } from './policy/lost-attempts.ts';
import { lossDecisions, lostTooOften } from './policy/lost-outputs.ts';
import { lambdaToLeave, onFitWorkers } from './policy/fit-workers.ts';
import { hopeless } from './policy/next-worker.ts';
import { nothingBegins } from './policy/nothing-begins.ts';
import { type OwedLaunch, owedLaunches, slotDemand } from './policy/owed-launches.ts';
import type { PolicySet, PolicyView, Proposal } from './policy/policy-set.ts';
import { proposalsOf } from './policy/give-way.ts';
import { policySetOf } from './policy/policy-sets.ts';
import { type OwnPlaces, ownPlaces } from './policy/own-places.ts';
import { packsOf } from './policy/ride-together.ts';
import { readyAt } from './policy/retry-backoff.ts';
import { runningTasks } from './policy/running-tasks.ts';
import { stagesToOpen } from './policy/stages-to-open.ts';
import {
  type AttemptView,
  isLive,
  type JobState,
  type StageClones,
  type TaskView,
} from './model/job-view.ts';

/** Backups that a job would run, those that it runs included, under a cap on those of all jobs. */
export interface BackupsShort {
  readonly wanted: number;
  readonly cap: number;
}

/** What a tick decides, in the order in which it is to be done. */
export interface TickDecision {
  readonly decisions: readonly Decision[];
  readonly refusals: readonly Refusal[];
  readonly outcome: TickOutcome;
  /** Copies that wanted for nothing but a slot: with so many more slots, they would have been launched. */
  readonly slotsShort: number;
  /** The same by the place of their stage: those on Lambda wait for room, and those on Fargate do not. */
  readonly shortByStage: ReadonlyMap<number, number>;
  /** Backups that would be launched if all jobs together might run more, and the cap on those; absent: none. */
  readonly backupsShort?: BackupsShort;
  /** Tasks that are owed an attempt for which the job has no dollars left: they need no slots. */
  readonly overBudget: number;
}

const nothing: readonly never[] = [];

/** Cancels of every live attempt that was not told yet. */
function cancelAll(state: JobState, reason: CancelReason): Decision[] {
  return [...state.live, ...state.riding]
    .filter((attempt) => !attempt.cancelOrdered)
    .map((attempt) => ({ kind: 'cancel', attemptId: attempt.id, reason }));
}

/** Whether an attempt works on although another has won its task, and was not told yet. */
const isUntoldLoser = ({ result }: TaskView, each: AttemptView): boolean =>
  result !== undefined && !each.cancelOrdered && isLive(each) && each.id !== result.attemptId;

function cancelsOfLosers(
  state: JobState,
  now: EpochMs,
  policy: PolicySet,
  preempted: ReadonlySet<number>,
): Decision[] {
  if (state.justDone.length === 0) return [];
  const served = new Set(
    state.stages
      .filter((stage) => !preempted.has(stage.index) && policy.keepsLateCopies?.(state, stage, now))
      .map(({ index }) => index),
  );
  return state.justDone
    .filter(({ stage }) => !served.has(stage))
    .flatMap((task) => task.attempts.filter((each) => isUntoldLoser(task, each)))
    .map((attempt) => ({ kind: 'cancel', attemptId: attempt.id, reason: 'sibling-won' }));
}

/** What the ledger has admitted becomes part of the job, so that whoever takes over clones the same tasks. */
const clonesAdmitted = (answers: readonly CloneAnswer[]): Decision[] =>
  answers.flatMap(({ stage, clones, facts }): Decision[] =>
    clones === undefined ? [] : [{ kind: 'clone-stage', stage, ...clones, facts }],
  );

/** Stages that learn now that their clones were taken away. */
const clonesPreempted = (state: JobState, taken: readonly ClonesTaken[]): Decision[] =>
  taken.flatMap(({ stage, by, facts }): Decision[] => {
    const { clones } = stageAt(state, stage);
    const isNews = clones !== undefined && clones.preempted !== true;
    return isNews ? [{ kind: 'preempt-clones', stage, by, facts }] : [];
  });

/** Why stages are not cloned, and outputs not copied: both were asked for before the tick. */
function refusedBefore(state: JobState, { clones = [], notCopied = [] }: TickBudget): readonly Refusal[] {
  const notCloned = clones.flatMap(({ stage, reason, facts }): Refusal[] => {
    if (reason === undefined) return [];
    return [{ kind: 'refuse', taskId: taskIdOf(stageAt(state, stage).shape.name, 0), reason, facts }];
  });
  return [...notCloned, ...notCopied];
}

/** How a stage is cloned by a decision. */
const clonesIn = ({ copies, tasks, waitMs }: Extract<Decision, { kind: 'clone-stage' }>): StageClones => ({
  copies,
  tasks,
  ...(waitMs === undefined ? {} : { waitMs }),
});

/** How stages are cloned, with what this tick decides. */
function clonedStages(state: JobState, owed: readonly Decision[]): ReadonlyMap<number, StageClones> {
  const before = state.stages.flatMap(({ index, clones }) =>
    clones === undefined ? [] : [[index, clones] as const],
  );
  const now = owed.flatMap((each) =>
    each.kind === 'clone-stage' ? [[each.stage, clonesIn(each)] as const] : [],
  );
  const all = new Map([...now, ...before]);
  for (const each of owed) {
    const clones = each.kind === 'preempt-clones' ? all.get(each.stage) : undefined;
    if (each.kind === 'preempt-clones' && clones !== undefined)
      all.set(each.stage, { ...clones, preempted: true });
  }
  return all;
}

/** Why the job cannot end well, or undefined while it can. */
function fatalMessage(state: JobState, now: EpochMs, config: TickConfig): string | undefined {
  if (state.fatal !== undefined) {
    const { stage, task, failure, alike } = state.fatal;
    return `${failedTaskText(stage, task)}${alike === true ? ' failed alike twice' : ''}: ${failure.message}`;
  }
  for (const stage of state.stages) {
    for (const task of stage.retryable) {
      const why = hopeless(stage, task, config);
      if (why !== undefined) return `${failedTaskText(stage.shape.name, task.index)} ${why}`;
      if (task.failures < config.attemptsPerTask) continue;
      const last = task.attempts.findLast((attempt) => attempt.failure !== undefined);
      const cause = last?.failure?.message ?? 'its workers stopped reporting';
      return `${failedTaskText(stage.shape.name, task.index)} failed ${task.failures} times, at last: ${cause}`;
    }
  }
  return nothingBegins(state, now, config);
}

/** Attempts that decisions end, of one kind of end. */
const endedBy = (decisions: readonly Decision[], kind: 'lose' | 'cancel'): AttemptId[] =>
  decisions.flatMap((each) => (each.kind === kind ? [each.attemptId] : []));

function viewOf(
  state: JobState,
  now: EpochMs,
  config: TickConfig,
  budget: TickBudget & { readonly own: OwnPlaces },
  owed: readonly Decision[],
): PolicyView {
  const freed = config.killFreesSlot ? endedBy(owed, 'cancel').length : 0;
  return {
    state,
    now,
    config: config.policyConfig,
    runs: runningTasks(state, new Set([...endedBy(owed, 'lose'), ...endedBy(owed, 'cancel')])),
    slots: {
      granted: budget.slots,
      cluster: budget.clusterSlots ?? budget.slots,
      free: Math.max(0, budget.slots - state.live.size + freed),
      waiting: slotDemand(state, budget.own) - state.live.size - (budget.room?.refused?.beyond ?? 0),
    },
    cloned: clonedStages(state, owed),
    reportMs: config.reportMs ?? durationMs(0),
    slowNodes: budget.slowNodes ?? nothing,
    zones: budget.zones,
    zonesTold: budget.zonesTold,
    lambdaMs: lambdaToLeave(config, budget),
    losesAhead: policySetOf(config.policy).losesAhead === true,
  };
}

/** The node of each slot that cancels of this tick free. */
const freedNodesOf = (state: JobState, config: TickConfig, owed: readonly Decision[]): readonly string[] =>
  config.killFreesSlot
    ? endedBy(owed, 'cancel').flatMap((id) => state.attempts.get(id)?.node ?? [])
    : nothing;

/** A job that has all results is finished once every attempt that is left was told to stop: it is not waited for. */
function outcomeOf(
  state: JobState,
  now: EpochMs,
  config: TickConfig,
  owed: readonly Decision[],
): TickOutcome {
  if (state.doneAt === undefined) return { kind: 'continue' };
  const told = new Set(endedBy(owed, 'cancel'));
  const areTold = [...state.live].every(({ id, cancelOrdered }) => cancelOrdered || told.has(id));
  const isDrained = areTold || elapsedMs(state.doneAt, now) > config.drainMs;
  return isDrained ? { kind: 'finish' } : { kind: 'continue' };
}

/** A tick that launches nothing. */
const only = (decisions: readonly Decision[], outcome: TickOutcome): TickDecision => ({
  decisions,
  refusals: nothing,
  outcome,
  slotsShort: 0,
  shortByStage: new Map(),
  overBudget: 0,
});

/** A tick that ends the job. */
const failing = (state: JobState, reason: CancelReason, message: string): TickDecision =>
  only(cancelAll(state, reason), { kind: 'fail', message });

const isUrgent = (proposal: Proposal): boolean =>
  proposal.kind !== 'decline' && proposal.kind !== 'clone' && (proposal.kind !== 'backup' || proposal.urgent);

/** What is done whatever the policy proposes, in order. */
function owedDecisions(state: JobState, now: EpochMs, config: TickConfig, budget: TickBudget): Decision[] {
  const preempted = clonesPreempted(state, budget.clonesTaken ?? []);
  const stages = new Set(preempted.flatMap((each) => ('stage' in each ? [each.stage] : [])));
  const lost = lostAttempts(state, now, config, new Set(budget.renewed));
  const surplus = preemptedCopies(state, stages, new Set(endedBy(lost, 'lose')));
  return [
    ...(budget.allocation === undefined ? [] : [budget.allocation]),
    ...clonesAdmitted(budget.clones ?? []),
    ...preempted,
    ...stagesToOpen(state, budget),
    ...lost,
    ...cancelsOfLosers(state, now, policySetOf(config.policy), stages),
    ...(budget.copies ?? []),
    ...surplus.map(({ id }): Decision => ({ kind: 'cancel', attemptId: id, reason: 'preempted' })),
  ];
}

/** The tick that ends a job which was cancelled, cannot end well, or has used up its dollars; undefined while it goes on. */
function endingOf(
  state: JobState,
  now: EpochMs,
  config: TickConfig,
  {
    cancelRequested,
    refused,
    spending,
    losses,
  }: Pick<TickBudget, 'cancelRequested' | 'refused' | 'losses'> & { readonly spending: Spending | undefined },
): TickDecision | undefined {
  if (cancelRequested) return failing(state, 'job-cancelled', 'cancelled on request');
  const fatal = refused ?? fatalMessage(state, now, config) ?? lostTooOften(state, losses ?? [], config);
  if (fatal !== undefined) {
    // Whoever ends the job tells people of a missing right as what it is.
    const cause = state.fatal?.failure.cause;
    const failed = failing(state, 'job-failed', fatal);
    return cause !== 'access-denied'
      ? failed
      : { ...failed, outcome: { kind: 'fail', message: fatal, cause } };
  }
  const tooDear = spending === undefined ? undefined : budgetEnd(state, spending);
  if (tooDear === undefined) return undefined;
  const failed = failing(state, 'job-failed', tooDear);
  return { ...failed, outcome: { kind: 'fail', message: tooDear, cause: 'budget' } };
}

/**
 * Decides one tick of a job: gives up lost attempts, cancels losers, opens stages whose inputs are complete, and
 * fills free slots with urgent copies, then owed launches, then other copies, as the job's policy set proposes and
 * the arbiter allows. Pure: changes nothing, reads no clock. Decisions take effect by `applyDecisions`. The first
 * owed task that gets no slot is reported as a refusal, as are proposals not followed. `rng` is the job's own
 * stream, the same at every tick.
 */
export function decideTick(
  state: JobState,
  now: EpochMs,
  config: TickConfig,
  budget: TickBudget,
  rng: Rng,
): TickDecision {
  const spending = spendingOf(state, now, config, budget);
  const ending = endingOf(state, now, config, { ...budget, spending });
  if (ending !== undefined) return ending;
  const losses = lossDecisions(state, budget.losses ?? [], config.decisionsPerTick);
  // Nothing is launched beside them: the next tick, which is due at once, knows who waits for what is made again.
  if (losses.length > 0) return only(losses, { kind: 'continue' });
  const policy = policySetOf(config.policy);
  const owed = owedDecisions(state, now, config, budget).slice(0, config.decisionsPerTick);
  const own = budget.own ?? ownPlaces(state, now);
  const view = viewOf(state, now, config, { ...budget, own }, owed);
  const isReady = (task: TaskView): boolean => readyAt(task, config, rng) <= now;
  const mayLaunch = (task: TaskView): boolean =>
    isReady(task) && (spending === undefined || affordsOwed(spending, task));
  const account = openAccount(state, view, {
    room: config.decisionsPerTick - owed.length,
    launchRoom: budget.room,
    copyCap: policy.copyCap?.(view) ?? Infinity,
    admitted: policy.isCapOfCluster?.(view.config) === true ? budget.backups : undefined,
    ...{ killFreesSlot: config.killFreesSlot, tickMs: config.tickMs },
    freeNodes: budget.freeNodes,
    freedNodes: freedNodesOf(state, config, owed),
    spending,
    placeOf: policy.placesOwed?.(view),
    isReady,
  });
  const proposals = proposalsOf(policy, view, budget);
  dispose(account, proposals.filter(isUrgent));
  const owedUpTo = (limit: number, room?: LaunchRoom): OwedLaunch[] =>
    owedLaunches(state, mayLaunch, limit, room);
  // A worker that is killed with its attempt takes those behind it along: there each has its own.
  const packMs = config.killFreesSlot ? undefined : config.packMs;
  const packs = packsOf(state, { packMs, places: budget.slots, cloned: view.cloned ?? new Map() });
  launchRiders(account, own.urgent);
  launchOwed(account, owedUpTo, nodesDeclined(policy, view, account.free), packs);
  launchRiders(account, own.spare);
  dispose(
    account,
    proposals.filter((each) => !isUrgent(each)),
  );
  return {
    decisions: [...owed, ...onFitWorkers(state, account.decisions, config, budget.earlierMs)],
    refusals: [...refusedBefore(state, budget), ...account.refusals],
    outcome: outcomeOf(state, now, config, owed),
    slotsShort: account.slotsShort,
    shortByStage: account.shortByStage,
    overBudget: spending?.refused.size ?? 0,
    ...(account.copiesShort === 0
      ? {}
      : { backupsShort: { wanted: account.copies + account.copiesShort, cap: account.terms.copyCap } }),
  };
}

/**
 * Takes decisions over into the state; the second time (replay of the log) has no effect. Cancels of a tick that
 * was cut short come again, since their tasks stay in `justDone` until all of them are ordered.
 */
export function applyDecisions(
  state: JobState,
  decisions: readonly Decision[],
  context: { readonly now: EpochMs; readonly openStage: (stage: number) => void },
): void {
  for (const decision of decisions) {
    switch (decision.kind) {
      case 'open-stage':
        if (decision.splits !== undefined) splitStage(state, stageAt(state, decision.stage), decision.splits);
        if (decision.placement !== undefined) stageAt(state, decision.stage).placement ??= decision.placement;
        if (decision.revision !== undefined) renewInputs(stageAt(state, decision.stage), decision.revision);
        context.openStage(decision.stage);
        break;
      case 'copy-output':
        state.copied.set(decision.attemptId, { bytes: decision.bytes, reason: decision.reason });
        break;
      case 'lose-output':
        loseOutput(state, decision.attemptId, decision.use, decision.how);
        break;
      case 'clone-stage':
        cloneStage(state, decision.stage, clonesIn(decision));
        break;
      case 'preempt-clones':
        preemptClones(state, decision.stage);
        break;
      case 'allocate':
        state.allocation = { ...decision, at: context.now };
        break;
      case 'launch':
        addAttempt(state, decision.attemptId, decision.reason, context.now, decision.worker, decision.behind);
        break;
      case 'cancel':
        cancelAttempt(state, decision.attemptId, context.now, decision.reason);
        break;
      case 'lose':
        loseAttempt(state, decision.attemptId, context.now);
        break;
    }
  }
  const untold = state.justDone.filter((task) => task.attempts.some((each) => isUntoldLoser(task, each)));
  state.justDone.splice(0, state.justDone.length, ...untold);
}
