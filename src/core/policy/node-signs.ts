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
import { wholeMs } from '../model/stage-statistics.ts';
import { costOf } from '../model/task-cost.ts';

/** Failures that say as much of a node as of a task: its process died. So does silence, which has no cause. */
const ofNode: ReadonlySet<FailureCause> = new Set(['exited']);
/** Tasks that must have finished in a stage before anything is usual. */
const leastFinished = 3;
/** A node is not slow for being slower than some: nor where more than so many of those that ran are as slow. */
const slowShare = 0.25;

/** How much slower than usual for its input an attempt was, that has ended or was stopped; undefined where nothing tells. */
function slowdownOf({ statistics }: StageView, task: TaskView, attempt: AttemptView): number | undefined {
  const usual = quantileOf(statistics.slowness, 0.5);
  const ranMs = reportedMs(attempt);
  if (usual === undefined || usual <= 0 || statistics.slowness.size < leastFinished || ranMs <= 0)
    return undefined;
  const isDone = attempt.state === 'done';
  const isStopped = attempt.state === 'cancelled' || isLive(attempt);
  if (!isDone && (!isStopped || (attempt.progress?.bytesRead ?? 0) <= 0)) return undefined;
  const totalMs = isDone ? ranMs : wholeMs(attempt);
  return totalMs / (usual * costOf(statistics.cost, task.inputBytes));
}

/** Whether an attempt may yet come to something. Of one that was overtaken the job may never see the end. */
const isOpen = ({ result }: TaskView, attempt: AttemptView): boolean =>
  isLive(attempt) && !attempt.cancelOrdered && result === undefined;

/** Whether an attempt came to nothing in a way that its node may be to blame for. */
const isFault = (attempt: AttemptView): boolean =>
  (attempt.state === 'failed' || attempt.state === 'lost') &&
  !isUnclaimed(attempt) &&
  (attempt.failure === undefined || ofNode.has(attempt.failure.cause));

interface Told {
  readonly attempt: AttemptView & { readonly node: string };
  readonly slowdown: number | undefined;
}

/** What attempts of a task tell of their nodes. One that was slow everywhere tells of itself. */
function toldBy(
  stage: StageView,
  task: TaskView,
  { factor }: NodeBookConfig,
): readonly (Told & { readonly contrasted: boolean })[] {
  const told = task.attempts.flatMap((attempt): Told[] => {
    const { node } = attempt;
    if (node === undefined || isOpen(task, attempt)) return [];
    const slowdown = slowdownOf(stage, task, attempt);
    return slowdown === undefined && !isFault(attempt) ? [] : [{ attempt: { ...attempt, node }, slowdown }];
  });
  return told.flatMap((each) => {
    const others = told.filter(({ attempt }) => attempt.node !== each.attempt.node);
    const isSlow = (each.slowdown ?? 0) >= factor;
    if (isSlow && others.some(({ slowdown = 0 }) => slowdown >= factor)) return [];
    return [{ ...each, contrasted: isSlow && others.some(({ slowdown = Infinity }) => slowdown < factor) }];
  });
}

/**
 * What a job's ended attempts tell of nodes that may be slow or failing. Slow beside what is usual for the input in the
 * stage, whether they won or were stopped; not where more than a quarter of the nodes is: then it is the job.
 *
 * Source: Mantri §5.5, locationFactor; LATE §4, SlowNodeThreshold; the statistic is ours.
 */
export function nodeSigns(
  jobId: JobId,
  state: JobState,
  now: EpochMs,
  config: NodeBookConfig = defaultNodeBook,
): NodeBook {
  const byNode = new Map<string, { readonly zone: string; readonly signs: NodeSign[] }>();
  for (const stage of state.stages) {
    for (const task of stage.tasks) {
      if (task.attempts.every((attempt) => isOpen(task, attempt))) continue;
      for (const { attempt, slowdown, contrasted } of toldBy(stage, task, config)) {
        const { node, zone = '', id, seenAt } = attempt;
        const entry = byNode.get(node) ?? { zone, signs: [] };
        byNode.set(node, entry);
        entry.signs.push({
          of: fnv1a(`${jobId}/${id}`).toString(36),
          at: seenAt > now ? now : seenAt,
          ...(slowdown === undefined ? {} : { slowdown: Math.round(slowdown * 100) / 100 }),
          ...(contrasted ? { contrasted } : {}),
        });
      }
    }
  }
  const entries = [...byNode].map(([node, { zone, signs }]): NodeEntry => ({ node, zone, signs }));
  const isSlow = ({ signs }: NodeEntry): boolean =>
    signs.every(({ slowdown = Infinity }) => slowdown >= config.factor);
  const mostSlow = Math.max(1, slowShare * entries.length);
  return entries.filter(isSlow).length > mostSlow ? [] : entries;
}
