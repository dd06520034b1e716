import { limits } from '../../contracts/limits.ts';
import { quantileOf } from '../../lib/sorted-numbers.ts';
import { nodesFailedOn } from '../model/failed-alike.ts';
import { isDeclined, type JobState, type StageView, type TaskView } from '../model/job-view.ts';
import { meanMs } from '../model/stage-statistics.ts';
import type { Account } from './account.ts';
import type { PolicySet, PolicyView } from './policy-set.ts';

/**
 * Launches away from slow nodes, and from those where a task has failed. A host that lets nodes be chosen gets names of those that are free; on one that places
 * attempts itself, as Lambda does, a worker on a node that is named declines, and its task is launched again.
 */

/** Launches take longer than their mean: twice as long covers nearly all. */
const lagFactor = 2;

/** What it takes a task that is declined until it is launched again, in milliseconds: a tick, and a launch. */
const declineMs = ({ statistics }: StageView, tickMs: number): number =>
  tickMs + lagFactor * meanMs(statistics.lag);

/** How long a worker that declines keeps its node busy: until its task was launched again, which comes to a new node. */
export const holdMsOf = (stage: StageView, tickMs = 0): number =>
  Math.min(limits.declineHoldMs, declineMs(stage, tickMs));

const medianMs = ({ statistics }: StageView): number | undefined => quantileOf(statistics.runMs, 0.5);

/** What a task of a stage takes usually: as long as none has ended there, what one does in the job's shortest stage. */
function usualMsOf(stage: StageView, { stages }: JobState): number {
  const own = medianMs(stage);
  if (own !== undefined) return own;
  const others = stages.flatMap((each) => medianMs(each) ?? []);
  return Math.min(Infinity, ...others);
}

/** Whether a task was declined as often as it may be. */
const isDeclinedEnough = ({ attempts }: TaskView): boolean =>
  attempts.filter(isDeclined).length >= limits.declinesPerTask;

/** Whether a task may be declined by slow nodes: not where its like are over sooner than it would be launched again. */
function mayBeDeclined({ state, terms }: Account, task: TaskView): boolean {
  const stage = state.stages[task.stage];
  return stage !== undefined && usualMsOf(stage, state) >= declineMs(stage, terms.tickMs ?? 0);
}

/** Nodes off which owed tasks are kept. Without a slot nothing is launched anywhere, and they need not be looked for. */
export const nodesDeclined = (policy: PolicySet, view: PolicyView, free: number): readonly string[] =>
  free < 1 ? [] : (policy.declinedNodes?.(view) ?? []);

/**
 * The nodes to name with a launch: of those to be avoided, the ones that could run it. On a host that places attempts
 * itself there are as many nodes as attempts at once: where all are named, a launch is declined for nothing. There those on which
 * the task has failed are named as well, and however short it is: such a host gives the next launch to the node that was used last,
 * so that one with a fault of its own would fail the task until its job is lost.
 */
export function namedNodes(account: Account, task: TaskView, avoid: readonly string[]): readonly string[] {
  const { freeNodes } = account.terms;
  if (freeNodes !== undefined) {
    const freed = new Set(account.freedNodes);
    return avoid.filter((node) => freeNodes.has(node) || freed.has(node));
  }
  const failedOn = nodesFailedOn(task, account.state.nodes);
  if (avoid.length + failedOn.length === 0 || isDeclinedEnough(task)) return [];
  const slow = mayBeDeclined(account, task) ? avoid : [];
  const most = Math.max(0, Math.min(limits.avoidedNodes, account.view.slots.cluster - 1));
  return [...new Set([...failedOn, ...slow])].slice(0, most);
}

/** Free slots that lie on other nodes than those to be avoided. Launches of this tick may have taken any of them. */
export function slotsElsewhere(
  account: Account,
  avoid: readonly string[],
  freed: readonly string[] = [],
): number {
  const { freeNodes } = account.terms;
  if (freeNodes === undefined || avoid.length === 0) return Infinity;
  const avoided = new Set(avoid);
  let others = [...account.freedNodes, ...freed].filter((node) => !avoided.has(node)).length;
  for (const [node, slots] of freeNodes) if (!avoided.has(node)) others += slots;
  return Math.max(0, others - account.launches);
}
