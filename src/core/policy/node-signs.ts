import { inputOf } from '../model/task-input.ts';
import type { JobId } from '../../contracts/ids.ts';
import { fnv1a } from '../../contracts/fnv1a.ts';
import type { FailureCause } from '../../contracts/records.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import { reportedMs } from '../estimate/progress-rate.ts';
import {
  type AttemptView,
  isLive,
  isUnclaimed,
  type JobState,
  type StageView,
  type TaskView,
} from '../model/job-view.ts';
import {
  defaultNodeBook,
  type NodeBook,
  type NodeBookConfig,
  type NodeEntry,
  type NodeSign,
} from '../model/node-book.ts';
import { wasOutrun, wholeMs } from '../model/stage-statistics.ts';
import { explainedCost } from '../model/task-cost.ts';

/** Failures that say as much of a node as of a task: its process died. So does silence, which has no cause. */
const ofNode: ReadonlySet<FailureCause> = new Set(['exited']);
/** Tasks that must have finished in a stage before anything is usual. */
const leastFinished = 3;
/** A node is not slow for being slower than some: nor where more than so many of those that ran are as slow. */
const slowShare = 0.25;

/** What an ordinary task of a stage takes beside what its input costs; undefined where nothing tells. */
function usualOf({ statistics: { slowness } }: StageView): number | undefined {
  const usual = slowness.size < leastFinished ? undefined : quantileOf(slowness, 0.5);
  return usual === undefined || usual <= 0 ? undefined : usual;
}

/**
 * How much slower than its input explains an attempt was, that has ended or was stopped; undefined where nothing tells, as
 * of one that was stopped young: what it ran went to its start, and what it has read lies in buffers.
 */
function slowdownOf(
  { statistics }: StageView,
  task: TaskView,
  attempt: AttemptView,
  usual: number | undefined,
): number | undefined {
  const ranMs = reportedMs(attempt);
  if (usual === undefined || ranMs <= 0) return undefined;
  const usualMs = usual * explainedCost(statistics.cost, inputOf(task));
  if (attempt.state === 'done') return ranMs / usualMs;
  const isTold = wasOutrun(attempt, usualMs) && (attempt.progress?.bytesRead ?? 0) > 0;
  return isTold ? wholeMs(attempt) / usualMs : undefined;
}

/**
 * Whether an attempt may yet come to something. Of one that was overtaken the job may never see the end; one that was
 * given up for its silence alone may be heard of again as long as nobody else has brought its result.
 */
const isOpen = ({ result }: TaskView, attempt: AttemptView): boolean =>
  result === undefined &&
  (isLive(attempt) ? !attempt.cancelOrdered : attempt.state === 'lost' && attempt.failure === undefined);

/** Whether an attempt came to nothing in a way that its node may be to blame for. */
const isFault = (attempt: AttemptView): boolean =>
  (attempt.state === 'failed' || attempt.state === 'lost') &&
  !isUnclaimed(attempt) &&
  (attempt.failure === undefined || ofNode.has(attempt.failure.cause));

interface Told {
  readonly attempt: AttemptView;
  readonly node: string;
  readonly slowdown: number | undefined;
}

/** Takes what an attempt tells of its node; `slowdown` is undefined of a fault. */
type Listener = (
  attempt: AttemptView,
  node: string,
  slowdown: number | undefined,
  contrasted: boolean,
) => void;

/** What attempts of a task tell of their nodes. One that was slow everywhere tells of itself. */
function tellOfTask(told: readonly Told[], factor: number, tell: Listener): void {
  for (const each of told) {
    const isSlow = (each.slowdown ?? 0) >= factor;
    const others = isSlow ? told.filter(({ node }) => node !== each.node) : [];
    if (others.some(({ slowdown = 0 }) => slowdown >= factor)) continue;
    const isContrasted = others.some(({ slowdown = Infinity }) => slowdown < factor);
    tell(each.attempt, each.node, each.slowdown, isContrasted);
  }
}

/** What attempts of a task tell of their nodes, where it has had several. */
function toldOf(stage: StageView, task: TaskView, usual: number | undefined): readonly Told[] {
  return task.attempts.flatMap((attempt): Told[] => {
    const { node } = attempt;
    if (node === undefined || isOpen(task, attempt)) return [];
    const slowdown = slowdownOf(stage, task, attempt, usual);
    return slowdown === undefined && !isFault(attempt) ? [] : [{ attempt, node, slowdown }];
  });
}

/**
 * What the attempts of a stage tell of where they ran, in the order of its tasks: the slowdown is their time over what is
 * usual in the stage for their input. Most tasks have one: nothing is made of those.
 */
export function tellOfStage(stage: StageView, factor: number, tell: Listener): void {
  const usual = usualOf(stage);
  for (const task of stage.tasks) {
    const { attempts } = task;
    const [first] = attempts;
    if (attempts.length > 1) tellOfTask(toldOf(stage, task, usual), factor, tell);
    else if (first?.node !== undefined && !isOpen(task, first)) {
      const slowdown = slowdownOf(stage, task, first, usual);
      if (slowdown !== undefined || isFault(first)) tell(first, first.node, slowdown, false);
    }
  }
}

function tellAll({ stages }: JobState, factor: number, tell: Listener): void {
  for (const stage of stages) tellOfStage(stage, factor, tell);
}

/** The least and the most that attempts tell of a node; a failure is as slow as can be. */
interface Range {
  least: number;
  most: number;
}

const signedAs = (slowdown: number): number => Math.round(slowdown * 100) / 100;

function rangesOf(state: JobState, factor: number): ReadonlyMap<string, Range> {
  const ranges = new Map<string, Range>();
  tellAll(state, factor, (_attempt, node, slowdown) => {
    const told = slowdown === undefined ? Infinity : signedAs(slowdown);
    const range = ranges.get(node);
    if (range === undefined) ranges.set(node, { least: told, most: told });
    else {
      range.least = Math.min(range.least, told);
      range.most = Math.max(range.most, told);
    }
  });
  return ranges;
}

/**
 * What a job's ended attempts tell of nodes that may be slow or failing, and of those in `known`, whatever it is: of all
 * others nothing is to be kept. Slow beside what is usual for the input in the stage, whether they won or were stopped;
 * not where more than a quarter of the nodes is: then it is the job. Costs a look at every task.
 *
 * Source: Mantri §5.5, locationFactor; LATE §4, SlowNodeThreshold; the statistic is ours.
 */
export function nodeSigns(
  jobId: JobId,
  state: JobState,
  now: EpochMs,
  known: ReadonlySet<string>,
  { factor }: NodeBookConfig = defaultNodeBook,
): NodeBook {
  const ranges = rangesOf(state, factor);
  let slow = 0;
  const byNode = new Map<string, { zone: string; readonly signs: NodeSign[] }>();
  for (const [node, { least, most }] of ranges) {
    if (least >= factor) slow += 1;
    if (most >= factor || known.has(node)) byNode.set(node, { zone: '', signs: [] });
  }
  if (byNode.size === 0 || slow > Math.max(1, slowShare * ranges.size)) return [];
  tellAll(state, factor, (attempt, node, slowdown, contrasted) => {
    const entry = byNode.get(node);
    if (entry === undefined) return;
    if (entry.signs.length === 0) entry.zone = attempt.zone ?? '';
    const { id, seenAt } = attempt;
    entry.signs.push({
      of: fnv1a(`${jobId}/${id}`).toString(36),
      at: seenAt > now ? now : seenAt,
      ...(slowdown === undefined ? {} : { slowdown: signedAs(slowdown) }),
      ...(contrasted ? { contrasted } : {}),
    });
  });
  return [...byNode].map(([node, { zone, signs }]): NodeEntry => ({ node, zone, signs }));
}
