import { quantileOf } from '../../../lib/sorted-numbers.ts';
import { ranMs, reportedMs } from '../../estimate/progress-rate.ts';
import type { Facts } from '../../model/decision.ts';
import { isLive } from '../../model/job-view.ts';
import { byAdvance, isContended } from '../mantri/appraise.ts';
import { prune } from '../mantri/prune.ts';
import { isSlowAnywhere } from '../mantri/restart.ts';
import { finiteMs } from '../merit.ts';
import { nodeSlowdowns, nodesInSpell, slowNodesBy } from '../node-slowdown.ts';
import type { PolicySet, PolicyView, Proposal, RunningTask, StageRuns } from '../policy-set.ts';
import { judgeStage, type JudgedStage, type JudgedTask } from './judge.ts';
import { type Worth, worthOf } from './worth.ts';

/** Most copies at once: few while each takes a waiting task's slot, all spare slots otherwise. */
function copyCap({ config, slots }: PolicyView): number {
  const { contendedCap, spareCap } = config.outrider;
  return Math.max(1, Math.floor((isContended(slots) ? contendedCap : spareCap) * slots.cluster));
}

/** Whether a task reads more than the stage's finished tasks did on the mean: one that does not has no excuse in it. */
function readsMore({ bytes }: JudgedTask, { stage }: StageRuns): boolean {
  const { readBytes, runMs } = stage.statistics;
  return runMs.size === 0 || bytes > readBytes / runMs.size;
}

/**
 * A slow task that has more to read, for the log; undefined where it is not slow beside its siblings.
 *
 * Source: Mantri §4.2: a task is explained by its data where its time is near what the regression on its input says.
 */
function explained(task: JudgedTask, runs: StageRuns, view: PolicyView): Proposal | undefined {
  const medianMs = quantileOf(runs.stage.statistics.runMs, 0.5);
  if (medianMs === undefined || task.remMs <= view.config.outrider.explainedFactor * medianMs)
    return undefined;
  return {
    kind: 'decline',
    task: task.running.task,
    reason: 'input-explained',
    gainMs: 0,
    facts: {
      remMs: finiteMs(task.remMs),
      medianMs,
      slownessForInput: task.slowness,
      inputBytes: task.bytes,
    },
  };
}

/** Nodes that are slow on the whole, slowest first, and then those that are slow now. */
function suspects(view: PolicyView): readonly string[] {
  const { slowNodeFactor } = view.config.outrider;
  return [
    ...new Set([
      ...slowNodesBy(view, slowNodeFactor),
      ...nodesInSpell(view, slowNodeFactor, view.config.mantri.reportWindow),
    ]),
  ];
}

/**
 * Nodes so slow that a task which starts there now would still run when the others are through with all that waits:
 * slower than by the waves that are left. No more than half of the nodes known.
 */
function declinedNodes(view: PolicyView): readonly string[] {
  const { granted, waiting } = view.slots;
  if (waiting === 0 || granted === 0) return [];
  const known = nodeSlowdowns(view).size;
  return slowNodesBy(view, Math.max(view.config.outrider.slowNodeFactor, 1 + waiting / granted)).slice(
    0,
    Math.floor(known / 2),
  );
}

/** Where copies of a task must not run: slow nodes, and for a second copy beside it, the nodes that run it now. */
function elsewhere(task: JudgedTask, slow: readonly string[]): readonly string[] {
  const own = task.running.copies.flatMap(({ node }) => node ?? []);
  return [...new Set([...own, ...slow])];
}

const factsOf = (task: JudgedTask, stage: JudgedStage, worth: Worth): Facts => ({
  remMs: finiteMs(task.remMs),
  leastRemMs: finiteMs(task.leastRemMs),
  newMs: finiteMs(worth.newMs),
  savedMs: finiteMs(worth.savedMs),
  extraMs: finiteMs(worth.extraMs),
  deltaMs: finiteMs(stage.deltaMs),
  copies: task.copies.length,
  slownessForInput: task.slowness,
});

/**
 * A copy beside those that run: while tasks wait, where it saves slot time; with slots to spare, where the time that it
 * saves is worth the slot time that it takes. Never soon after another copy.
 */
function beside(
  task: JudgedTask,
  stage: JudgedStage,
  view: PolicyView,
  slow: readonly string[],
): Proposal | undefined {
  const { costShare, leastGain } = view.config.outrider;
  const worth = worthOf(task);
  const urgent = isContended(view.slots);
  const isWorth =
    worth.savedMs >= leastGain * worth.newMs && worth.extraMs <= (urgent ? 0 : worth.savedMs / costShare);
  if (!isWorth || task.sinceCopyMs < stage.deltaMs) return undefined;
  return {
    kind: 'backup',
    task: task.running.task,
    gainMs: finiteMs(worth.savedMs),
    urgent,
    avoidNodes: elsewhere(task, slow),
    facts: factsOf(task, stage, worth),
  };
}

/** Time that restarts of a task have thrown away. */
const thrownAwayMs = ({ task }: RunningTask): number =>
  task.attempts.reduce(
    (sum, attempt) => sum + (isLive(attempt) || attempt.state === 'failed' ? 0 : reportedMs(attempt)),
    0,
  );

/**
 * Another attempt in place of the slowest, while tasks wait: where it ends clearly sooner, and what is thrown away with
 * it, and was before, is less than what it has left. Only one whose progress tells what it has left is killed: of one
 * that stands still nobody knows how near its end it is, and a copy beside it throws nothing away.
 *
 * Source: Mantri §5.1, kill and restart, at most γ times; the bound on what is thrown away is ours.
 */
function again(
  task: JudgedTask,
  stage: JudgedStage,
  view: PolicyView,
  slow: readonly string[],
): Proposal | undefined {
  const slowest = task.copies.toSorted(byAdvance).at(-1);
  if (slowest === undefined || !isContended(view.slots) || task.sinceCopyMs < stage.deltaMs) return undefined;
  if (!slowest.isTold) return undefined;
  const { attempt: victim } = slowest;
  const worth = worthOf(task);
  const restarts = task.running.task.attempts.filter(({ reason }) => reason === 'restart').length;
  const lostMs = thrownAwayMs(task.running) + ranMs(victim, view.now);
  if (restarts >= view.config.mantri.restartsPerTask || lostMs > task.leastRemMs) return undefined;
  if (isSlowAnywhere(task.running.task, victim)) return undefined;
  if (task.leastRemMs < worth.newMs + stage.deltaMs) return undefined;
  return {
    kind: 'restart',
    task: task.running.task,
    attempt: victim,
    gainMs: finiteMs(task.leastRemMs - worth.newMs),
    avoidNodes: slow,
    facts: { ...factsOf(task, stage, worth), restarts },
  };
}

function proposeForTask(
  task: JudgedTask,
  stage: JudgedStage,
  runs: StageRuns,
  view: PolicyView,
  slow: readonly string[],
): Proposal | undefined {
  if (task.slowness <= view.config.outrider.explainedFactor && readsMore(task, runs))
    return explained(task, runs, view);
  const copy = beside(task, stage, view, slow);
  // A restart off a slow node takes a good slot and leaves a bad one: it has to be worth as much as a duplicate.
  const isNeutral = !task.running.copies.some(({ node }) => node !== undefined && slow.includes(node));
  const other = isNeutral || copy !== undefined ? again(task, stage, view, slow) : undefined;
  return view.config.mantri.prefer === 'restart' ? (other ?? copy) : (copy ?? other);
}

function proposeFor(runs: StageRuns, view: PolicyView, slow: readonly string[]): readonly Proposal[] {
  const stage = judgeStage(runs, view);
  if (stage.samples < view.config.outrider.minSamples) return [];
  return stage.tasks.flatMap((task): readonly Proposal[] => {
    const pruned = prune(task, stage.deltaMs, view);
    if (pruned.length > 0) return pruned;
    const proposal = proposeForTask(task, stage, runs, view, slow);
    return proposal === undefined ? [] : [proposal];
  });
}

/** Ranks by time left once no task waits: then the stage ends with the task that ends last, whatever a copy saves. */
function rankedForEnd(proposals: readonly Proposal[], view: PolicyView): readonly Proposal[] {
  if (isContended(view.slots)) return proposals;
  return proposals.map((each) =>
    each.kind === 'backup' ? { ...each, gainMs: each.facts['remMs'] ?? each.gainMs } : each,
  );
}

/**
 * The default: a copy is made where it is worth its cost by Mantri's account, with estimates that know the shape of the
 * stage's progress, what its tasks cost by their input, and their own error; LATE's time left decides which comes first
 * once slots are spare; slow nodes and the task's own are declined; and a task that is slow because it reads more is
 * never copied. No time in it is absolute.
 *
 * Source: LATE §4, Mantri §5.1 and §4.2; the combination and the estimates are ours.
 */
export const outrider: PolicySet = {
  name: 'outrider',
  launchOrder: 'largest-first',
  copyCap,
  declinedNodes,
  propose(view) {
    const slow = suspects(view);
    return rankedForEnd(
      view.runs.flatMap((runs) => proposeFor(runs, view, slow)),
      view,
    );
  },
};
