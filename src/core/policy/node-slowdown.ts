import { countBelow, quantileIn, quantileOf } from '../../lib/sorted-numbers.ts';
import { recentMsPerByte } from '../estimate/remaining-time.ts';
import { scoreOf } from '../estimate/progress-rate.ts';
import { msPerByteOf } from '../estimate/new-copy.ts';
import type { NodeView } from '../model/job-view.ts';
import { nodeSampleLimit, outrunTells, wasOutrun, wholeMs, workBytes } from '../model/stage-statistics.ts';
import type { PolicyView } from './policy-set.ts';

/** Ordinary milliseconds per byte of each stage: the median of finished attempts, else of running ones. */
function ordinaryRates({ state, runs }: PolicyView): ReadonlyMap<number, number> {
  const rates = new Map<number, number>();
  for (const { index, statistics } of state.stages) {
    const median = quantileOf(statistics.msPerByte, 0.5);
    if (median !== undefined) rates.set(index, median);
  }
  for (const { stage, tasks } of runs) {
    if (rates.has(stage.index)) continue;
    const running = Float64Array.from(
      tasks.flatMap(({ task, copies }) =>
        copies.flatMap((copy) => msPerByteOf(copy, stage.statistics, task) ?? []),
      ),
    ).sort();
    const median = quantileIn(running, 0.5);
    if (median !== undefined) rates.set(stage.index, median);
  }
  return rates;
}

/** Nodes that a job has met, in one order: how many tasks tell of each, and the least slowdown that they tell. */
interface Judged {
  readonly nodes: readonly string[];
  readonly places: ReadonlyMap<string, number>;
  readonly tasks: Int32Array;
  readonly least: Float64Array;
}

/** What the last winners of each node tell, in the order of the nodes. It changes where one more finishes there. */
interface Winners {
  readonly nodes: readonly NodeView[];
  /** Winners of each when it was looked at last. */
  readonly seen: Int32Array;
  /** The stage of all its last winners, or one of the two below. */
  readonly stage: Int32Array;
  /** The least time for a byte, where they are of one stage. */
  readonly leastMsPerByte: Float64Array;
}

/** Its last winners are of several stages; it has none. */
const ofSeveral = -1;
const ofNone = -2;

/** What finished tasks tell, by how many had finished, of how many nodes, at which ordinary rates by stage. */
interface Known extends Judged {
  readonly finished: number;
  readonly ordinary: readonly number[];
  readonly winners: Winners;
}

/** What a tick has worked out before: its rules ask for the same more than once. A view lasts for one tick. */
const judgedBefore = new WeakMap<PolicyView, Judged>();
/** What the ticks before have: it changes where a task finishes, and most ticks see none. */
const knownBefore = new WeakMap<PolicyView['state'], Known>();
/** Tasks that must tell of a node before it is judged. */
const leastTold = 2;

/** A node as what runs there now tells of it. */
interface NodeLoad {
  tasks: number;
  least: number;
}

function loadsOf({ runs }: PolicyView, rates: ReadonlyMap<number, number>): Map<string, NodeLoad> {
  const loads = new Map<string, NodeLoad>();
  for (const { stage, tasks } of runs) {
    const ordinary = rates.get(stage.index) ?? 0;
    if (ordinary <= 0) continue;
    const usualMs = quantileOf(stage.statistics.runMs, 0.5) ?? Infinity;
    for (const { task, copies } of tasks) {
      for (const copy of copies) {
        const msPerByte = msPerByteOf(copy, stage.statistics, task);
        if (msPerByte !== undefined) addLoad(loads, copy.node, 1, msPerByte / ordinary);
      }
      if (task.attempts.length === copies.length) continue;
      for (const each of task.attempts) {
        if (!wasOutrun(each, usualMs)) continue;
        const msPerByte = wholeMs(each) / workBytes(stage.statistics, task);
        addLoad(loads, each.node, outrunTells, msPerByte / ordinary);
      }
    }
  }
  return loads;
}

function addLoad(
  loads: Map<string, NodeLoad>,
  node: string | undefined,
  tasks: number,
  slowdown: number,
): void {
  if (node === undefined) return;
  const load = loads.get(node);
  if (load === undefined) loads.set(node, { tasks, least: slowdown });
  else {
    load.tasks += tasks;
    load.least = Math.min(load.least, slowdown);
  }
}

/** Looks again at nodes where a task has finished since, and at those that are new. */
function winnersOf(state: PolicyView['state'], before: Winners | undefined): Winners {
  const isGrown = before?.nodes.length !== state.nodes.size;
  const winners = isGrown ? emptyWinners([...state.nodes.values()]) : before;
  for (const [place, { finished, recent }] of winners.nodes.entries()) {
    if (winners.seen[place] === finished) continue;
    winners.seen[place] = finished;
    const [first] = recent;
    const isOfOne = recent.every(({ stage }) => stage === first?.stage);
    winners.stage[place] = first === undefined ? ofNone : isOfOne ? first.stage : ofSeveral;
    winners.leastMsPerByte[place] = Math.min(...recent.map(({ msPerByte }) => msPerByte));
  }
  return winners;
}

const emptyWinners = (nodes: readonly NodeView[]): Winners => ({
  nodes,
  seen: new Int32Array(nodes.length),
  stage: new Int32Array(nodes.length).fill(ofNone),
  leastMsPerByte: new Float64Array(nodes.length).fill(Infinity),
});

/** How many of a node's last winners tell of it, and the least slowdown that they tell. */
function toldBy({ recent }: NodeView, ordinary: readonly number[]): NodeLoad {
  const load = { tasks: 0, least: Infinity };
  for (const { stage, msPerByte } of recent) {
    const usual = ordinary[stage] ?? 0;
    if (usual <= 0) continue;
    load.tasks += 1;
    load.least = Math.min(load.least, msPerByte / usual);
  }
  return load;
}

/** Every node at other ordinary rates: two looks at numbers for a node whose winners are of one stage. */
function judgeWinners(
  { nodes, stage, leastMsPerByte }: Winners,
  ordinary: readonly number[],
): Pick<Judged, 'tasks' | 'least'> {
  const tasks = new Int32Array(nodes.length);
  const least = new Float64Array(nodes.length).fill(Infinity);
  for (const [place, node] of nodes.entries()) {
    const own = stage[place] ?? ofNone;
    if (own === ofNone) continue;
    const usual = own === ofSeveral ? 0 : (ordinary[own] ?? 0);
    if (usual > 0) {
      tasks[place] = node.recent.length;
      least[place] = (leastMsPerByte[place] ?? Infinity) / usual;
    } else if (own === ofSeveral) {
      const told = toldBy(node, ordinary);
      tasks[place] = told.tasks;
      least[place] = told.least;
    }
  }
  return { tasks, least };
}

/** Costs a look at every node that the job has met, where a task has finished since. */
function knownOf({ state }: PolicyView): Known {
  const ordinary = state.stages.map(({ statistics }) => quantileOf(statistics.msPerByte, 0.5) ?? 0);
  const finished = state.stages.reduce((sum, { statistics }) => sum + statistics.samples.length, 0);
  const before = knownBefore.get(state);
  const isSame =
    before?.finished === finished &&
    before.nodes.length === state.nodes.size &&
    before.ordinary.every((rate, place) => rate === ordinary[place]);
  if (isSame) return before;
  const isGrown = before?.nodes.length !== state.nodes.size;
  const nodes = isGrown ? [...state.nodes.keys()] : before.nodes;
  const places = isGrown ? new Map(nodes.map((id, place) => [id, place])) : before.places;
  const winners = winnersOf(state, before?.winners);
  const known = { nodes, places, ...judgeWinners(winners, ordinary), finished, ordinary, winners };
  knownBefore.set(state, known);
  return known;
}

/** With what runs now. */
function judge(view: PolicyView): Judged {
  const known = knownOf(view);
  const loads = loadsOf(view, ordinaryRates(view));
  if (loads.size === 0) return known;
  const { nodes, places } = known;
  const [tasks, least] = [known.tasks.slice(), known.least.slice()];
  for (const [id, load] of loads) {
    const place = places.get(id);
    if (place === undefined) continue;
    tasks[place] = (tasks[place] ?? 0) + load.tasks;
    least[place] = Math.min(least[place] ?? Infinity, load.least);
  }
  return { nodes, places, tasks, least };
}

function judged(view: PolicyView): Judged {
  const before = judgedBefore.get(view);
  if (before !== undefined) return before;
  const now = judge(view);
  judgedBefore.set(view, now);
  return now;
}

/**
 * How much slower each node is than the job's ordinary one: the least that its last tasks and those that run there
 * now have taken for a byte, over the stage's median; 1 is ordinary. The least, since a task may be slow by its own
 * bad luck: a node is slow when nothing on it is fast. Nodes with fewer than two tasks to judge by are left out.
 *
 * Source: Mantri §5.5, locationFactor (persistent speed relative to others). The statistic is ours.
 */
export function nodeSlowdowns(view: PolicyView): ReadonlyMap<string, number> {
  const { nodes, tasks, least } = judged(view);
  const slowdowns = new Map<string, number>();
  for (const [place, id] of nodes.entries())
    if ((tasks[place] ?? 0) >= leastTold) slowdowns.set(id, least[place] ?? 1);
  return slowdowns;
}

/** Nodes at least `factor` times as slow as the ordinary one, slowest first, ties by name. */
export function slowNodesBy(view: PolicyView, factor: number): readonly string[] {
  const { nodes, tasks, least } = judged(view);
  const slow: (readonly [string, number])[] = [];
  for (let place = 0; place < nodes.length; place++) {
    const slowdown = least[place] ?? 1;
    if (slowdown >= factor && (tasks[place] ?? 0) >= leastTold) slow.push([nodes[place] ?? '', slowdown]);
  }
  return slow.sort(([a, slowA], [b, slowB]) => slowB - slowA || (a < b ? -1 : 1)).map(([id]) => id);
}

/** Nodes that chance may make look slow, in the mean. */
const byChance = 0.5;

/** Of the tasks of each stage that have finished, the share that took `factor` times as long for a byte as the median. */
const slowShares = ({ state }: PolicyView, factor: number): readonly number[] =>
  state.stages.map(({ statistics: { msPerByte } }) => {
    const median = quantileOf(msPerByte, 0.5) ?? 0;
    return median <= 0 ? 0 : 1 - countBelow(msPerByte, factor * median) / msPerByte.size;
  });

/**
 * Slow nodes but those that chance explains: where many a task takes as long on any node, two in a row lie on some node by
 * themselves. All the tasks by which a node is remembered are enough, whatever chance says.
 */
export function slowBeyondChance(view: PolicyView, factor: number): readonly string[] {
  const slow = slowNodesBy(view, factor);
  if (slow.length === 0) return slow;
  const shares = slowShares(view, factor);
  const largest = Math.max(...shares);
  const { places, tasks } = judged(view);
  return slow.filter((id) => {
    const { recent = [] } = view.state.nodes.get(id) ?? {};
    const told = tasks[places.get(id) ?? -1] ?? 0;
    if (told >= nodeSampleLimit) return true;
    const others = largest ** Math.max(0, told - recent.length);
    const alike = recent.reduce((chance, { stage }) => chance * (shares[stage] ?? 0), others);
    return view.state.nodes.size * alike <= byChance;
  });
}

/** Nodes to be avoided: most ticks copy nothing, so that they are worked out once somebody asks. */
export type SlowNodes = () => readonly string[];

/** Works nodes out once, whoever asks how often. */
export function onceAsked(workOut: SlowNodes): SlowNodes {
  let known: readonly string[] | undefined;
  return () => (known ??= workOut());
}

/** Nodes on which at least two attempts run now: on Lambda there are none. */
function sharedNodes(runs: PolicyView['runs']): ReadonlySet<string> {
  const [once, twice] = [new Set<string>(), new Set<string>()];
  for (const { tasks } of runs)
    for (const { copies } of tasks)
      for (const { node } of copies) if (node !== undefined) (once.has(node) ? twice : once).add(node);
  return twice;
}

/**
 * Nodes on which at least two attempts run and all of them have been `factor` times too slow over their last reports:
 * one may have had bad luck, two point at the node. By name.
 *
 * Source: ours; contention comes in spells, which an average over a node's life does not show.
 */
export function nodesInSpell(view: PolicyView, factor: number, window: number): readonly string[] {
  const shared = sharedNodes(view.runs);
  if (shared.size === 0) return [];
  const rates = ordinaryRates(view);
  const seen = new Map<string, { attempts: number; slow: number }>();
  for (const { stage, tasks } of view.runs) {
    const limit = factor * (rates.get(stage.index) ?? Infinity);
    for (const { copies } of tasks) {
      for (const copy of copies) {
        if (copy.node === undefined || !shared.has(copy.node)) continue;
        const recent = recentMsPerByte(copy, window);
        // Whoever has read all reads no more, on any node.
        if (recent === undefined || (scoreOf(copy) ?? 0) >= 1) continue;
        const there = seen.get(copy.node) ?? { attempts: 0, slow: 0 };
        there.attempts += 1;
        there.slow += Number(recent >= limit);
        seen.set(copy.node, there);
      }
    }
  }
  return [...seen]
    .filter(([, { attempts, slow }]) => attempts >= 2 && slow === attempts)
    .map(([id]) => id)
    .sort();
}
