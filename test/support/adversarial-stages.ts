import { createRng, type Rng } from '../../src/lib/rng.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';

type StageInput = ScenarioInput['jobs'][number]['stages'][number];
type ClusterInput = ScenarioInput['cluster'];

/** A small job that is hard to judge, and whether luck that no policy can know decides part of its time. */
export interface AdversarialStage {
  readonly scenario: ScenarioInput;
  /** Attempts that fail, nodes of unlike speed, lost reports: what a run takes hangs on its seed. */
  readonly isByLuck: boolean;
}

const megabyte = 1024 * 1024;

const oneOf = <T>(rng: Rng, first: T, ...others: readonly T[]): T =>
  [first, ...others][Math.floor(rng.next() * (others.length + 1))] ?? first;
const between = (rng: Rng, low: number, high: number): number => low + (high - low) * rng.next();
/** From `low` to `high`, each power of ten as likely. */
const magnitude = (rng: Rng, low: number, high: number): number =>
  Math.round(low * (high / low) ** rng.next());
const chance = (rng: Rng, share: number): boolean => rng.next() < share;
/** About normal, with a standard deviation of 1. */
const bell = (rng: Rng): number =>
  (Array.from({ length: 6 }, () => rng.next()).reduce((a, b) => a + b) - 3) * 1.41;

/** Partitions of a stage: alike, some empty, some of a few bytes, one that is huge, or unlike by powers of ten. */
function partitions(rng: Rng, tasks: number): number[] {
  const usual = magnitude(rng, 1_000, 512 * megabyte);
  const kind = oneOf(rng, 'even', 'some-empty', 'most-empty', 'some-tiny', 'one-huge', 'unlike');
  return Array.from({ length: tasks }, (_, task) => {
    switch (kind) {
      case 'even':
        return usual;
      case 'some-empty':
        return chance(rng, 0.15) ? 0 : usual;
      case 'most-empty':
        return chance(rng, 0.7) ? 0 : usual;
      case 'some-tiny':
        return chance(rng, 0.2) ? oneOf(rng, 1, 100, 1_000) : usual;
      case 'one-huge':
        return task === 0 ? usual * 50 : usual;
      case 'unlike':
        return magnitude(rng, 1, 1_000 * megabyte);
    }
  });
}

/** How much of its input a task says to have read, by the share of its work that it has done. */
function progressOf(rng: Rng): StageInput['progress'] {
  const share = between(rng, 0.02, 0.5);
  return oneOf<StageInput['progress']>(
    rng,
    [
      [0, 0],
      [1, 1],
    ],
    [
      [0, 1],
      [1, 1],
    ],
    [
      [0, 0],
      [share, 1],
      [1, 1],
    ],
    [
      [0, 0],
      [share, 0.01],
      [1, 1],
    ],
    [
      [0, 0],
      [0.999, 0],
      [1, 1],
    ],
    [
      [0, 0],
      [share / 2, 0.6],
      [1 - share / 2, 0.61],
      [1, 1],
    ],
  );
}

/**
 * What the attempts of each task take. Whoever is a straggler by its place takes its ordinary time elsewhere; whoever
 * has more to do takes as long wherever it runs.
 */
function attemptsOf(rng: Rng, bytes: readonly number[]): number[][] {
  const usualMs = magnitude(rng, 500, 120_000);
  const meanBytes = Math.max(1, bytes.reduce((sum, each) => sum + each, 0) / bytes.length);
  const byBytes = oneOf(rng, 0, 0.5, 1);
  const sigma = oneOf(rng, 0, 0.1, 0.5, 1);
  const stragglers = oneOf(rng, 0, 0.05, 0.2, 1);
  const isInData = chance(rng, 0.3);
  const factor = oneOf(rng, 1.3, 3, 10, 50);
  return bytes.map((each) => {
    const ownMs = usualMs * (1 - byBytes + byBytes * Math.min(20, each / meanBytes));
    const draw = (): number => Math.max(1, Math.round(ownMs * Math.exp(sigma * bell(rng))));
    const first = draw();
    const isStraggler = chance(rng, stragglers);
    if (!isStraggler) return isInData ? [first] : [first, draw(), draw(), draw()];
    const slow = Math.round(first * factor);
    return isInData ? [slow] : [slow, draw(), draw(), draw()];
  });
}

function stageOf(rng: Rng, name: string, tasks: number): StageInput {
  const inputBytes = partitions(rng, tasks);
  const attemptsMs = attemptsOf(rng, inputBytes);
  return {
    name,
    tasks,
    inputBytes,
    attemptsMs,
    // What the simulated worker knows of its work: how often it reports hangs on it.
    workMs: attemptsMs.map(([first = 0]) => first),
    progress: progressOf(rng),
    wrapUpMs: oneOf(rng, 0, 0, 200, 20_000),
  };
}

type Host = Pick<ScenarioInput, 'cluster' | 'scheduler'>;

/** Slots beside so many tasks: scarce, enough, or more than enough. */
const slotsFor = (rng: Rng, tasks: number): number =>
  oneOf(rng, 1, 2, Math.max(1, Math.round(tasks / 2)), tasks, tasks + 2, 2 * tasks + 4);

/** Fixed nodes that may be slow, unlike, shared by several attempts, or slow for a while; kills mostly stop at once. */
function hadoopOf(rng: Rng, tasks: number): Host {
  const count = slotsFor(rng, tasks);
  const scheduler = {
    tickMs: oneOf(rng, 1_000, 1_000, 5_000),
    wakeOnEnd: chance(rng, 0.7),
    cancel: oneOf(rng, 'immediate', 'immediate', 'cooperative'),
  } as const;
  const kind = oneOf(rng, 'even', 'even', 'even', 'all-slow', 'unlike', 'shared', 'spells');
  switch (kind) {
    case 'even':
      return { scheduler, cluster: { nodes: [{ count }], placement: 'in-order' } };
    case 'all-slow':
      return { scheduler, cluster: { nodes: [{ count, speed: 0.05 }], placement: 'in-order' } };
    case 'unlike':
      return { scheduler, cluster: { nodes: [{ count }, { count: 1, speed: oneOf(rng, 0.5, 0.1) }] } };
    case 'shared':
      return {
        scheduler,
        cluster: { nodes: [{ count: Math.ceil(count / 3), slots: 3, contention: oneOf(rng, 0.1, 0.5) }] },
      };
    case 'spells': {
      const spells = {
        everyMs: { kind: 'exponential', mean: 120_000 },
        lastsMs: { kind: 'exponential', mean: 40_000 },
        slowdown: oneOf(rng, 2, 8),
      } as const;
      return { scheduler, cluster: { nodes: [{ count, spells }] } };
    }
  }
}

/** Environments that start cold and are paced, often behind a queue; attempts learn with a report that they are to stop. */
function lambdaOf(rng: Rng, tasks: number): Host {
  const count = slotsFor(rng, tasks);
  const cold = {
    startMs: oneOf<NonNullable<ClusterInput['startMs']>>(rng, 3_000, {
      kind: 'uniform',
      min: 300,
      max: 1_500,
    }),
    environments: oneOf(rng, 4, 1_000),
    perMs: oneOf(rng, 2_000, 10_000),
    keepWarmMs: oneOf(rng, 20_000, 300_000),
  };
  const fewer = Math.max(1, Math.floor(count / 2));
  const queue = { environments: [{ fromMs: 0, count: oneOf(rng, count, fewer) }], eventAgeMs: 900_000 };
  return {
    scheduler: {
      tickMs: oneOf(rng, 1_000, 1_000, 5_000),
      wakeOnEnd: chance(rng, 0.3),
      cancel: 'cooperative',
      claimLeaseMs: 900_000,
    },
    cluster: {
      nodes: [{ count, elastic: true }],
      placement: 'warmest',
      startMs: 50,
      cold,
      ...(chance(rng, 0.5) ? { queue } : {}),
      ...(chance(rng, 0.25) ? { throttle: { launchesPerS: 2, burst: oneOf(rng, 1, 10) } } : {}),
    },
  };
}

/** Looks and reports in the life of the longest attempt, at most: finer ones cost time and find nothing more. */
const ticksOfLongest = 100;

/** What the longest first attempt takes on the slowest node. */
function longestMs(stages: readonly StageInput[], { nodes }: ClusterInput): number {
  const speeds = nodes.map(({ speed = 1 }) => (typeof speed === 'number' ? speed : 1));
  const firsts = stages.map(({ attemptsMs = [], wrapUpMs = 0 }) => {
    const lastMs = typeof wrapUpMs === 'number' ? wrapUpMs : 0;
    return lastMs + Math.max(...attemptsMs.map(([first = 0]) => first));
  });
  return Math.max(...firsts) / Math.min(...speeds);
}

/** What goes wrong in a run whatever the policy: in most runs nothing. */
const faultsOf = (
  rng: Rng,
): Readonly<Record<'attemptFailure' | 'lostAttempt' | 'lostLaunch' | 'doubleLaunch', number>> => {
  const lost = oneOf(rng, 0, 0, 0, 0.1);
  return {
    attemptFailure: oneOf(rng, 0, 0, 0, 0.1, 0.3),
    lostAttempt: lost,
    lostLaunch: lost,
    doubleLaunch: oneOf(rng, 0, 0, 0, 0.2),
  };
};

/** Whether two runs of the same differ by their seed. */
const isDrawn = ({ nodes, cold }: ClusterInput): boolean =>
  nodes.length > 1 ||
  cold !== undefined ||
  nodes.some(({ spells, slots = 1 }) => spells !== undefined || slots > 1);

/** The stage of a seed: the same for the same seed, on every machine. */
export function adversarialStage(seed: number): AdversarialStage {
  const rng = createRng(`adversarial/${seed}`);
  const tasks = oneOf(rng, 1, 2, 3, 5, 8, 12, 20, 24);
  const { cluster, scheduler } = chance(rng, 0.6) ? hadoopOf(rng, tasks) : lambdaOf(rng, tasks);
  const loss = oneOf(rng, 0, 0, 0, 0.5);
  const faults = faultsOf(rng);
  const first = stageOf(rng, 'map', tasks);
  const second = stageOf(rng, 'reduce', oneOf(rng, 1, 2, tasks));
  const stages = chance(rng, 0.25) ? [first, { ...second, upstream: ['map'] }] : [first];
  const coarseMs = Math.round(longestMs(stages, cluster) / ticksOfLongest);
  return {
    isByLuck: loss > 0 || Object.values(faults).some((share) => share > 0) || isDrawn(cluster),
    scenario: {
      name: `adversarial-${seed}`,
      cluster,
      scheduler: { ...scheduler, tickMs: Math.max(coarseMs, scheduler?.tickMs ?? 0) },
      reports: {
        everyMs: Math.max(coarseMs, oneOf(rng, 500, 2_000, 10_000)),
        tenths: chance(rng, 0.7),
        loss,
        delayMs: oneOf(rng, 0, 0, 3_000, 20_000),
      },
      // Behind a queue a launch is waited for for a quarter of an hour: runs would differ by launches that were lost alone.
      faults: scheduler?.claimLeaseMs === undefined ? faults : { ...faults, lostLaunch: 0 },
      maxEvents: 1_000_000,
      jobs: [{ stages }],
    },
  };
}
