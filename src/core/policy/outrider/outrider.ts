import { quantileOf } from '../../../lib/sorted-numbers.ts';
import { ranMs, reportedMs } from '../../estimate/progress-rate.ts';
import { isLive } from '../../model/job-view.ts';
import { byAdvance, isContended, isQueueLong } from '../mantri/appraise.ts';
import { cloneProposals } from '../dolly/clone-proposals.ts';
import { lateCopiesServe } from '../dolly/copy-wait.ts';
import { lossLeftMs } from '../loss-limit.ts';
import { withLostToZones, zonesOfOwed } from '../mantri/choose-zone.ts';
import { restartsOf } from '../mantri/decline.ts';
import { prune, pruneLosses } from '../mantri/prune.ts';
import { isCopiedInVain, isSlowAnywhere } from '../mantri/restart.ts';
import { finiteMs } from '../merit.ts';
import { nodesInSpell, onceAsked, slowBeyondChance, type SlowNodes, slowNodesBy } from '../node-slowdown.ts';
import type { PolicySet, PolicyView, Proposal, RunningTask, StageRuns } from '../policy-set.ts';
import { declines, factsOf, recordFacts } from './decline.ts';
import { judgeStage, type JudgedStage, type JudgedTask } from './judge.ts';
import { leaveEarly } from './leave-early.ts';
import { outrun } from './outrun.ts';
import { isSmall, smallPhases } from './small-phases.ts';
import { type Candidate, type Worth, worthForEnd, worthOf } from './worth.ts';

/** Most copies at once: few while each takes a waiting task's slot, all spare slots otherwise. */
function copyCap({ config, slots }: PolicyView): number {
  const { contendedCap, spareCap } = config.outrider;
  return Math.max(1, Math.floor((isContended(slots) ? contendedCap : spareCap) * slots.cluster));
}

/**
 * Whether a task reads more than the stage's finished tasks did on the mean, or more records by the byte: one that does not
 * has no excuse in it.
 */
function readsMore({ bytes, recordFactor }: JudgedTask, { stage }: StageRuns): boolean {
  const { readBytes, runMs } = stage.statistics;
  return runMs.size === 0 || recordFactor > 1 || bytes > readBytes / runMs.size;
}

/** Whether a task takes what it does since it has more to read. */
const isExplained = (task: JudgedTask, runs: StageRuns, view: PolicyView): boolean =>
  task.slowness <= view.config.outrider.explainedFactor && readsMore(task, runs);

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
      ...recordFacts(task),
    },
  };
}

/** Nodes that the node book knows to be slow, those that are slow on the whole, and then those that are slow now. */
function suspects(view: PolicyView): readonly string[] {
  const { slowNodeFactor } = view.config.outrider;
  return [
    ...new Set([
      ...(view.slowNodes ?? []).map(({ node }) => node),
      ...slowNodesBy(view, slowNodeFactor),
      ...nodesInSpell(view, slowNodeFactor, view.config.mantri.reportWindow),
    ]),
  ];
}

/**
 * Nodes so slow that a task which starts there now would still run when the others are through with all that waits:
 * slower than by the waves that are left. Of those that only this job knows no more than half of the nodes known.
 */
function declinedNodes(view: PolicyView): readonly string[] {
  const { granted, waiting } = view.slots;
  if (waiting === 0 || granted === 0) return [];
  const factor = Math.max(view.config.outrider.slowNodeFactor, 1 + waiting / granted);
  const known = (view.slowNodes ?? []).flatMap(({ node, slowdown }) => (slowdown >= factor ? [node] : []));
  const slow = slowBeyondChance(view, factor);
  if (slow.length === 0) return known;
  return [...new Set([...known, ...slow.slice(0, Math.floor(view.state.nodes.size / 2))])];
}

/** Where copies of a task must not run: slow nodes, and for a second copy beside it, the nodes that run it now. */
function elsewhere(task: JudgedTask, slow: SlowNodes): readonly string[] {
  const own = task.running.copies.flatMap(({ node }) => node ?? []);
  return [...new Set([...own, ...slow()])];
}

/** Whether a copy beside those that run is worth it by itself. One more than are kept must be better than one of them. */
function isWorthOne(task: JudgedTask, worth: Worth, { config }: PolicyView, urgent: boolean): boolean {
  const { costShare, leastGain } = config.outrider;
  const { savedMs, newMs, extraMs } = worth;
  if (savedMs < leastGain * newMs || extraMs > (urgent ? 0 : savedMs / costShare)) return false;
  const remMs = task.copies.map((copy) => copy.remMs).sort((a, b) => a - b);
  const worstKeptMs = remMs[config.mantri.keptCopies - 1] ?? Infinity;
  return (1 + leastGain) * newMs <= worstKeptMs;
}

/**
 * Whether tasks wait, and a task would still run when all that wait are through and a copy launched after them is, too.
 * Then the stage ends with it, and each task that goes before its copy keeps that end back.
 */
function outlastsQueue({ leastRemMs, usualMs }: JudgedTask, { slots }: PolicyView): boolean {
  if (usualMs === undefined || slots.granted === 0 || !isContended(slots)) return false;
  return leastRemMs > usualMs * (1 + Math.ceil(slots.waiting / slots.granted));
}

/**
 * A copy beside those that run: while tasks wait, where it saves slot time; with slots to spare, where the time that it
 * saves is worth the slot time that it takes. Never soon after another copy.
 */
function beside(
  { task, worth }: Candidate,
  stage: JudgedStage,
  view: PolicyView,
  slow: SlowNodes,
): Proposal | undefined {
  const urgent = isQueueLong(view.slots) || outlastsQueue(task, view);
  if (!isWorthOne(task, worth, view, urgent) || task.sinceCopyMs < stage.deltaMs) return undefined;
  if (isCopiedInVain(task.running)) return undefined;
  return {
    kind: 'backup',
    task: task.running.task,
    gainMs: finiteMs(worth.savedMs),
    urgent,
    ...(urgent ? { lossMs: task.newMs[task.newMs.length >>> 1] ?? 0 } : {}),
    avoidNodes: elsewhere(task, slow),
    zone: task.chosen?.zone,
    facts: factsOf(task, stage, worth),
  };
}

/** Whether tasks wait that get no slot even if all that are free are theirs. Else they need nobody's place. */
const areSlotsShort = ({ slots }: PolicyView): boolean => slots.waiting > slots.free;

/** A kill gains at least so much of what a new attempt takes: that one may draw badly, and what was done is gone. */
const killGain = 0.25;

/** Time that restarts of a task have thrown away. What was done before its output was lost was not. */
const thrownAwayMs = ({ task }: RunningTask): number =>
  task.attempts.reduce((sum, attempt) => {
    const isThrownAway = attempt.number >= task.since && !isLive(attempt) && attempt.state !== 'failed';
    return sum + (isThrownAway ? reportedMs(attempt) : 0);
  }, 0);

/** An estimate may err by this factor, and a kill still throws away less than it gains. */
const certainty = 4;

/**
 * Whether a kill gains so much that the stage need not have room for its loss: that bounds what doubtful kills cost
 * together, and leaves a stage none of it in its first wave, where a task on a slow node is known to be slow at once.
 */
function isCertain({ leastRemMs, newMs }: JudgedTask, lostMs: number): boolean {
  const usualMs = newMs[newMs.length >>> 1] ?? Infinity;
  return leastRemMs >= certainty * (usualMs + lostMs);
}

/**
 * Another attempt in place of the slowest, while tasks wait: where it ends clearly sooner, and what is thrown away with
 * it, and was before, is less than what it has left. Only one whose progress tells what it has left is killed: of one
 * that stands still nobody knows how near its end it is, and a copy beside it throws nothing away.
 *
 * Source: Mantri §5.1, kill and restart, at most γ times; the bound on what is thrown away is ours.
 */
function again(
  { task, worth }: Candidate,
  stage: JudgedStage,
  runs: StageRuns,
  view: PolicyView,
  slow: SlowNodes,
): Proposal | undefined {
  if (!areSlotsShort(view) || task.sinceCopyMs < stage.deltaMs) return undefined;
  const leastGainMs = Math.max(stage.deltaMs, killGain * worth.newMs);
  if (task.leastRemMs < worth.newMs + leastGainMs) return undefined;
  const slowest = task.copies.toSorted(byAdvance).at(-1);
  if (slowest?.isTold !== true) return undefined;
  const { attempt: victim } = slowest;
  const restarts = restartsOf(task.running);
  const lostMs = thrownAwayMs(task.running) + ranMs(victim, view.now);
  if (restarts >= view.config.mantri.restartsPerTask || lostMs > task.leastRemMs) return undefined;
  if (isSlowAnywhere(task.running.task, victim)) return undefined;
  const lossMs = isCertain(task, lostMs) ? 0 : ranMs(victim, view.now);
  // Where the stage cannot bear the loss of what it has done, a copy beside it loses nothing of that. Tasks that wait bear
  // none of one that has more to read: what that costs may not be learnt yet.
  const losesAhead = view.losesAhead === true && !readsMore(task, runs);
  if (lossMs > 0 && lossMs > lossLeftMs(runs, { ...view, losesAhead })) return undefined;
  return {
    kind: 'restart',
    task: task.running.task,
    attempt: victim,
    lossMs,
    gainMs: finiteMs(task.leastRemMs - worth.newMs),
    avoidNodes: slow(),
    zone: task.chosen?.zone,
    facts: { ...factsOf(task, stage, worth), restarts },
  };
}

function proposeForTask(
  candidate: Candidate,
  stage: JudgedStage,
  runs: StageRuns,
  view: PolicyView,
  slow: SlowNodes,
): Proposal | undefined {
  const { task } = candidate;
  if (isExplained(task, runs, view)) return explained(task, runs, view);
  const copy = beside(candidate, stage, view, slow);
  // A restart off a slow node takes a good slot and leaves a bad one: it has to be worth as much as a duplicate.
  const isNeutral = (): boolean =>
    !task.running.copies.some(({ node }) => node !== undefined && slow().includes(node));
  const restart = again(candidate, stage, runs, view, slow);
  const other = restart !== undefined && (copy !== undefined || isNeutral()) ? restart : undefined;
  return view.config.mantri.prefer === 'restart' ? (other ?? copy) : (copy ?? other);
}

/** Tasks whose copies are worth it while no task waits: those that the stage ends with, and those that save slot time. */
function worthwhile(
  { tasks }: JudgedStage,
  weighed: readonly Candidate[],
  runs: StageRuns,
  view: PolicyView,
): ReadonlySet<JudgedTask> {
  const candidates = weighed.filter(
    ({ task, worth }) => !isExplained(task, runs, view) && isWorthOne(task, worth, view, false),
  );
  const thrifty = candidates.filter(({ worth }) => worth.extraMs <= 0).map(({ task }) => task);
  return new Set([...thrifty, ...worthForEnd(candidates, tasks, view.config.outrider.costShare)]);
}

/**
 * Tasks of a stage whose clones run: those were admitted from the start to run until the first of them has ended, so that the rules
 * which stop late copies leave them alone. None once they were taken away.
 *
 * Source: Dolly §3.3.
 */
function clonedIn(
  { tasks }: JudgedStage,
  { stage: { index } }: StageRuns,
  { cloned }: PolicyView,
): ReadonlySet<JudgedTask> {
  const clones = cloned?.get(index);
  if (clones === undefined || clones.preempted === true) return new Set();
  return new Set(tasks.filter(({ copies }) => copies.some(({ attempt }) => attempt.reason === 'clone')));
}

function proposeIn(
  stage: JudgedStage,
  runs: StageRuns,
  view: PolicyView,
  slow: SlowNodes,
): readonly Proposal[] {
  // Too few to weigh one against others: only what is late beyond doubt by those that have finished.
  const areFew = stage.samples < view.config.outrider.minSamples;
  const judged = areFew ? stage.tasks.filter(({ isLate }) => isLate) : stage.tasks;
  if (judged.length === 0) return [];
  const cloned = clonedIn(stage, runs, view);
  const late = cloned.size === 0 ? stage.tasks : stage.tasks.filter((task) => !cloned.has(task));
  const dear = pruneLosses(late, runs, view);
  if (dear.length > 0) return dear;
  const weighed = judged.map((task): Candidate => ({ task, worth: worthOf(task) }));
  let known: ReadonlySet<JudgedTask> | undefined;
  // Most ticks copy nothing: it is asked for where one would.
  const worth = (): ReadonlySet<JudgedTask> => (known ??= worthwhile(stage, weighed, runs, view));
  const proposals: Proposal[] = [];
  const left: Candidate[] = [];
  for (const candidate of weighed) {
    const tooMany = cloned.has(candidate.task) ? [] : prune(candidate.task, stage.deltaMs, view);
    const pruned = tooMany.length > 0 ? tooMany : outrun(candidate.task, stage);
    if (pruned.length > 0) {
      proposals.push(...pruned);
      continue;
    }
    const proposed = proposeForTask(candidate, stage, runs, view, slow);
    // How near its end it is by then they do not tell.
    const proposal = areFew && proposed?.kind === 'restart' ? undefined : proposed;
    const isWorth = proposal?.kind !== 'backup' || proposal.urgent || worth().has(candidate.task);
    if (proposal !== undefined && isWorth) proposals.push(proposal);
    else if (!isExplained(candidate.task, runs, view) && !isCopiedInVain(candidate.task.running))
      left.push(candidate);
  }
  return [...proposals, ...declines(left, stage, view)];
}

function proposeFor(runs: StageRuns, view: PolicyView, slow: SlowNodes): readonly Proposal[] {
  const stage = judgeStage(runs, view);
  const leaving = leaveEarly(stage, runs, view);
  const left = new Set(leaving.map(({ task }) => task));
  // Most ticks stop none.
  const staying =
    left.size === 0
      ? stage
      : { ...stage, tasks: stage.tasks.filter(({ running }) => !left.has(running.task)) };
  const proposals = [...leaving, ...proposeIn(staying, runs, view, slow)];
  const anywhere = { ...view, zones: undefined };
  const ifAlike = (): readonly Proposal[] => proposeIn(judgeStage(runs, anywhere), runs, anywhere, slow);
  return withLostToZones(stage.zones, proposals, ifAlike, () =>
    stage.tasks.map(({ running, chosen, newMeanMs }) => ({ running, chosen, newMs: newMeanMs })),
  );
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
  protectsOutputs: true,
  placesTasks: true,
  placesOwed: (view) => zonesOfOwed(view, (runs) => judgeStage(runs, view).zones),
  losesAhead: true,
  copyCap,
  declinedNodes,
  mayWish: (stage, config) => isSmall(stage, config.outrider.minSamples),
  wishes: smallPhases,
  keepsLateCopies: lateCopiesServe,
  propose(view) {
    const slow = onceAsked(() => suspects(view));
    const judged = rankedForEnd(
      view.runs.flatMap((runs) => proposeFor(runs, view, slow)),
      view,
    );
    return [...cloneProposals(view), ...judged];
  },
};
