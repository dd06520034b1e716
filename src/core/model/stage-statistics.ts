import { hasLeft } from './left-lambda.ts';
import { durationMs, elapsedMs, type EpochMs } from '../../contracts/units.ts';
import { emptySorted, insertSorted } from '../../lib/sorted-numbers.ts';
import { launchMadeAt, reportedMs } from '../estimate/progress-rate.ts';
import { densityOf } from '../estimate/record-density.ts';
import { addSlotTimes, slotTimeOf } from '../estimate/slot-time.ts';
import {
  type AttemptView,
  isLive,
  type NodeView,
  type RunSample,
  type StageStatistics,
  type Tally,
  type TaskView,
} from './job-view.ts';
import { courseOf } from './progress-history.ts';
import { evenShape, shapeOf } from './progress-shape.ts';
import { inputOf, isEmptyAfterAll } from './task-input.ts';
import { hasTakenUp } from './taken-up.ts';
import { costOf, fitCost, supposedCost } from './task-cost.ts';
import { recordSlowness } from './zone-slowness.ts';

const recentLimit = 32;
/** Tasks by which a node is remembered. */
export const nodeSampleLimit = 3;
/** Logarithm of the growth of samples after which costs and shapes are learnt anew. */
const learnStep = Math.log(4 / 3);

/**
 * An attempt that was told to stop tells of its node as much as two that finished there, once it had run for a good part
 * of what its task takes elsewhere: it is slow beside its stage, and beside another attempt of the very task.
 */
export const outrunTells = 2;

/** A stage of which nothing has finished. */
export const createStageStatistics = (): StageStatistics => ({
  runMs: emptySorted(),
  sinceLaunchMs: emptySorted(),
  msPerByte: emptySorted(),
  meanBytes: 0,
  samples: [],
  outrun: [],
  cost: supposedCost(0),
  slowness: emptySorted(),
  zones: new Map(),
  shape: evenShape,
  readBytes: 0,
  density: emptySorted(),
  lag: { sumMs: 0, count: 0 },
  wrapUpMs: emptySorted(),
  slotTime: { ownMs: 0, othersMs: 0 },
  recent: [],
});

/** The mean of a tally; 0 of nothing. */
export const meanMs = ({ sumMs, count }: Tally): number => (count === 0 ? 0 : sumMs / count);

/** Bytes by which a task's time is measured: no less than a share of its stage's mean, and never 0. */
export const workBytes = ({ cost }: StageStatistics, task: TaskView): number =>
  Math.max(cost.leastBytes, inputOf(task));

/** Learns what tasks cost, and measures those that have finished by it. */
function learnCosts(statistics: StageStatistics): void {
  const samples = statistics.samples.map(({ task, ms }) => ({ bytes: inputOf(task), ms }));
  statistics.cost = fitCost(samples, statistics.meanBytes);
  statistics.slowness = emptySorted();
  statistics.zones.clear();
  for (const sample of statistics.samples) measureSample(statistics, sample, true);
  for (const sample of statistics.outrun) measureSample(statistics, sample, false);
}

/** Adds how slow an attempt was for its input, to its zone's, and to the stage's if it has won. */
function measureSample(
  { cost, slowness: ofStage, zones }: StageStatistics,
  { task, ms, zone }: RunSample,
  hasWon: boolean,
): void {
  const slowness = ms / costOf(cost, inputOf(task));
  if (hasWon) insertSorted(ofStage, slowness);
  recordSlowness(zones, zone, { slowness, hasWon });
}

/** Takes note of what the tasks of a stage read, once all of it is known: some may have finished before. */
export function recordInputs(statistics: StageStatistics, tasks: readonly TaskView[]): void {
  const bytes = tasks.reduce((sum, { inputBytes }) => sum + inputBytes, 0);
  statistics.meanBytes = tasks.length === 0 ? 0 : bytes / tasks.length;
  learnCosts(statistics);
  statistics.msPerByte = emptySorted();
  statistics.readBytes = 0;
  for (const { task, ms } of statistics.samples) recordRate(statistics, task, ms);
}

function recordRate(statistics: StageStatistics, task: TaskView, ms: number): void {
  insertSorted(statistics.msPerByte, ms / workBytes(statistics, task));
  statistics.readBytes += workBytes(statistics, task);
}

/** Whether samples have grown by a third since costs were learnt last: so learning costs a few sorts in all. */
const isWorthLearning = (samples: number): boolean =>
  samples < 8 || Math.floor(Math.log(samples) / learnStep) > Math.floor(Math.log(samples - 1) / learnStep);

/** Adds a finished task to what is known of costs, and of its zone. */
function recordCost(statistics: StageStatistics, sample: RunSample): void {
  statistics.samples.push(sample);
  if (isWorthLearning(statistics.samples.length)) learnCosts(statistics);
  else measureSample(statistics, sample, true);
}

/**
 * Adds what attempts tell of their zones that another of their task has outrun: what is slow in a zone is copied, and were
 * winners all that counts, a zone would look the better the more of its tasks had to be.
 */
function recordOutrun(statistics: StageStatistics, task: TaskView, winner: AttemptView, runMs: number): void {
  for (const each of task.attempts) {
    if (each === winner || each.number < task.since || each.claimedAt === undefined || hasTakenUp(each))
      continue;
    if (each.state === 'failed' || each.state === 'lost' || hasLeft(each)) continue;
    if (reportedMs(each) < leastOutrun * runMs) continue;
    const sample = { task, ms: wholeMs(each), zone: each.zone };
    statistics.outrun.push(sample);
    measureSample(statistics, sample, false);
  }
}

/** Adds a finished attempt to what is known of progress. */
function learnShape(statistics: StageStatistics, attempt: AttemptView): void {
  statistics.recent.push(attempt);
  const forgotten = statistics.recent.length > recentLimit ? statistics.recent.shift() : undefined;
  if (forgotten !== undefined) forgotten.looks = [];
  if (!isWorthLearning(statistics.samples.length)) return;
  statistics.shape = shapeOf(
    statistics.recent.map(({ reports, looks, progress, claimedAt, endedAt }) => ({
      reports: courseOf({ reports, looks }),
      bytesTotal: progress?.bytesTotal ?? 0,
      runMs: claimedAt === undefined || endedAt === undefined ? 0 : elapsedMs(claimedAt, endedAt),
    })),
  );
}

/** Of a run: an attempt that was told to stop earlier may merely have begun slowly. */
export const leastOutrun = 0.5;

/**
 * Whether an attempt was told to stop when it had run for a good part of what its task, or its like, takes in all. One that was
 * given up or has failed by itself tells nothing of how fast its node is.
 */
export const wasOutrun = (attempt: AttemptView, usualMs: number): boolean =>
  (attempt.state === 'cancelled' || (attempt.cancelOrdered && isLive(attempt))) &&
  !hasTakenUp(attempt) &&
  !hasLeft(attempt) &&
  attempt.claimedAt !== undefined &&
  reportedMs(attempt) >= leastOutrun * usualMs;

/** What an attempt that did not end by itself would have taken at the rate at which it read, and no less than it ran. */
export function wholeMs(attempt: AttemptView): number {
  const { bytesRead = 0, bytesTotal = 0 } = attempt.progress ?? {};
  const ms = reportedMs(attempt);
  return bytesRead <= 0 ? ms : (ms * Math.max(bytesRead, bytesTotal)) / bytesRead;
}

/** Counts how long a launch took to become a claim. Clocks differ, so that it is never beyond the time we waited. */
export function recordClaim(statistics: StageStatistics, attempt: AttemptView, now: EpochMs): void {
  if (attempt.claimedAt === undefined) return;
  const madeAt = launchMadeAt(attempt);
  const lagMs = Math.min(elapsedMs(madeAt, attempt.claimedAt), elapsedMs(madeAt, now));
  statistics.lag.sumMs += lagMs;
  statistics.lag.count += 1;
}

function nodeOf(nodes: Map<string, NodeView>, id: string): NodeView {
  const known = nodes.get(id);
  if (known !== undefined) return known;
  const node: NodeView = { id, finished: 0, won: 0, recent: [] };
  nodes.set(id, node);
  return node;
}

/** Notes that a node exists, once an attempt tells where it runs. */
export function recordNode(nodes: Map<string, NodeView>, attempt: AttemptView): void {
  if (attempt.node === undefined) return;
  const node = nodeOf(nodes, attempt.node);
  if (attempt.zone !== undefined) node.zone = attempt.zone;
}

/**
 * Takes the winning attempt of a task into account; call it once per task. One that did only the rest of it tells nothing of
 * what tasks take, nor of its node.
 */
export function recordFinish(
  statistics: StageStatistics,
  nodes: Map<string, NodeView>,
  task: TaskView,
  attempt: AttemptView,
): void {
  if (attempt.claimedAt === undefined || attempt.endedAt === undefined || hasTakenUp(attempt)) return;
  statistics.slotTime = addSlotTimes(statistics.slotTime, slotTimeOf(task, attempt.seenAt));
  if (isEmptyAfterAll(task)) return;
  const runMs = elapsedMs(attempt.claimedAt, attempt.endedAt);
  // The worker's clock may be ahead of the one that launched it: then not beyond when its end was seen.
  const endedAt = Math.min(attempt.endedAt, attempt.seenAt) as EpochMs;
  insertSorted(statistics.runMs, runMs);
  insertSorted(statistics.sinceLaunchMs, Math.max(runMs, elapsedMs(attempt.launchedAt, endedAt)));
  recordRate(statistics, task, runMs);
  recordCost(statistics, { task, ms: runMs, zone: attempt.zone });
  recordOutrun(statistics, task, attempt, runMs);
  const density = densityOf(attempt);
  if (density !== undefined) insertSorted(statistics.density, density);
  const total = attempt.progress?.bytesTotal ?? 0;
  const allRead = attempt.reports.find(({ bytesRead }) => total > 0 && bytesRead >= total);
  if (allRead !== undefined) insertSorted(statistics.wrapUpMs, durationMs(runMs - allRead.workedMs));
  learnShape(statistics, attempt);
  recordPlace(nodes, attempt, { msPerByte: runMs / workBytes(statistics, task), hasWon: true });
  for (const each of task.attempts) {
    // The log tells whoever takes a job over that losers were told to stop, which came after the winner's end.
    if (each === attempt || each.cancelReason === 'sibling-won' || !wasOutrun(each, runMs)) continue;
    const msPerByte = wholeMs(each) / workBytes(statistics, task);
    for (let told = 0; told < outrunTells; told++) recordPlace(nodes, each, { msPerByte, hasWon: false });
  }
}

/** Takes note of how fast a task went where an attempt of it ran, and whether that has won. */
function recordPlace(
  nodes: Map<string, NodeView>,
  { node: id, stage }: AttemptView,
  { msPerByte, hasWon }: { readonly msPerByte: number; readonly hasWon: boolean },
): void {
  if (id === undefined) return;
  const node = nodeOf(nodes, id);
  node.finished += 1;
  if (hasWon) node.won += 1;
  node.recent.push({ stage, msPerByte });
  if (node.recent.length > nodeSampleLimit) node.recent.shift();
}
