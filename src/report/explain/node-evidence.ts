import type { nodeEvidence } from '../../contracts/explanation.ts';
import type { Phase } from '../../contracts/progress.ts';
import { median } from '../../lib/quantiles.ts';
import type { AttemptRun } from './attempt-runs.ts';
import { expectedMs, mapPhases, slownessOf, type Usual } from './usual-run.ts';

export type NodeEvidence = (typeof nodeEvidence)[number];

/** Slower than this, an attempt is a straggler. Source: Mantri §2, outliers take more than 1.5 times the median. */
export const slowFactor = 1.5;
/** Up to this factor an attempt counts as ordinary, and tells that its node is. */
const ordinaryFactor = 1.2;

/** What attempts beside one tell of the place where it ran. */
export interface Witnesses {
  /** Median slowness of other tasks on its node; absent where there are none. */
  readonly others?: number;
  readonly othersCount: number;
  /** The least slowness of finished attempts of its task on other nodes; absent where there are none. */
  readonly elsewhere?: number;
  readonly elsewhereNode?: string;
  /**
   * What the phases of first attempts on other nodes took in the median, for usual input: all is begun there that later
   * ones find begun. Absent where the attempt was not the first on its own node, or there are none.
   */
  readonly firstMs?: Readonly<Record<Phase, number>>;
}

/** Attempts of a job by where they ran, and by their task (`stage/index`). */
export interface RunIndex {
  readonly byNode: ReadonlyMap<string, readonly AttemptRun[]>;
  readonly byTask: ReadonlyMap<string, readonly AttemptRun[]>;
  /** What is usual, by stage; absent where nobody can say. */
  readonly usual: ReadonlyMap<string, Usual>;
  /** By stage, finished attempts that were the first on their node. */
  readonly firsts: ReadonlyMap<string, readonly AttemptRun[]>;
}

/** First attempts on other nodes that one is held against: as many tell no less than all of a wide stage. */
const mostFirsts = 100;

/** The task of an attempt. */
export const taskIdOf = ({ stage, task }: Pick<AttemptRun, 'stage' | 'task'>): string => `${stage}/${task}`;

/** Collects what other attempts tell of where one ran, and of its task. */
export function witnessesOf(run: AttemptRun, index: RunIndex): Witnesses {
  const { byNode, byTask, usual } = index;
  const { node } = run.attempt;
  const judged = (runs: readonly AttemptRun[]): { other: AttemptRun; slowness: number }[] =>
    runs.flatMap((other) => {
      const slowness = other === run ? undefined : slownessOf(other, usual.get(other.stage));
      return slowness === undefined ? [] : [{ other, slowness }];
    });
  const taskId = taskIdOf(run);
  const there = node === undefined ? [] : (byNode.get(node) ?? []);
  const beside = judged(there.filter((other) => taskIdOf(other) !== taskId));
  const elsewhere = judged(byTask.get(taskId) ?? [])
    .filter(({ other }) => other.isFinished && other.attempt.node !== node)
    .toSorted((a, b) => a.slowness - b.slowness)[0];
  const firstMs = run.isWarm === false ? firstMsOf(run, index) : undefined;
  const others = median(beside.map(({ slowness }) => slowness));
  return {
    othersCount: beside.length,
    ...(others === undefined ? {} : { others }),
    ...(elsewhere === undefined
      ? {}
      : {
          elsewhere: elsewhere.slowness,
          ...(elsewhere.other.attempt.node === undefined
            ? {}
            : { elsewhereNode: elsewhere.other.attempt.node }),
        }),
    ...(firstMs === undefined ? {} : { firstMs }),
  };
}

function firstMsOf(run: AttemptRun, { firsts, usual }: RunIndex): Witnesses['firstMs'] {
  const ofStage = usual.get(run.stage);
  const phases = (firsts.get(run.stage) ?? [])
    .slice(0, mostFirsts)
    .flatMap(({ attempt, phaseMs, bytes, records }) => {
      if (attempt === run.attempt || phaseMs === undefined || ofStage === undefined) return [];
      const inputFactor = expectedMs(ofStage, { bytes, records }) / Math.max(1, ofStage.runMs);
      return [mapPhases((phase) => phaseMs[phase] / (phase === 'init' ? 1 : Math.max(1, inputFactor)))];
    });
  if (phases.length === 0) return undefined;
  return mapPhases((phase) => median(phases.map((each) => each[phase])) ?? 0);
}

/** How many times longer the start took, which reads none of the input, and the rest, than is usual. */
export interface PhaseRatios {
  readonly start: number;
  readonly rest: number;
  /** Of the rest, computing, which waits for no storage; absent where that usually takes too little time to tell. */
  readonly compute?: number;
}

/** A start so many times longer is no chance. */
const leastStartFactor = 2;
/** One that many times longer than the rest was slowed down is no slow processor: short starts vary as much. */
const mostStartToRest = 4;
/** Of first attempts on their nodes there are few, and what they take varies more: only so many times longer is no chance. */
const leastFirstFactor = 3;

/** Whether all of an attempt was slowed down by about as much. */
const isSlowThroughout = ({ start, rest, compute = rest }: PhaseRatios, least: number): boolean =>
  rest >= least &&
  start >= Math.max(leastStartFactor, least, rest / 2) &&
  start <= mostStartToRest * rest &&
  compute >= least;

/** An attempt's phases against the usual, and where it was the first on its node, against other nodes' first attempts. */
export interface PhasesBeside {
  readonly usual: PhaseRatios | undefined;
  readonly firsts?: PhaseRatios;
}

/** Whether all of an attempt took long beside its like: beside first attempts, where it was one itself. */
export const isSlowBesideItsLike = ({ usual, firsts }: PhasesBeside, isFirst: boolean): boolean =>
  isFirst
    ? firsts !== undefined && isSlowThroughout(firsts, leastFirstFactor)
    : usual !== undefined && isSlowThroughout(usual, slowFactor);

/**
 * What shows that an attempt's node is slow; empty where nothing does. Its start reads none of the input, so that where it
 * was slowed down about as much as the rest, the input is not at fault; nor the storage, which it fetches its description
 * from, where computing was slowed down, too. The first attempt on a node starts what later ones find started, so that
 * its start is held against that of other nodes' first ones as well.
 */
export function evidenceOf(beside: PhasesBeside, { others, elsewhere }: Witnesses): readonly NodeEvidence[] {
  const { usual: ratios } = beside;
  // Other tasks ran there as usual: then what was slow was not the node, or not for long.
  if (others !== undefined && others <= ordinaryFactor) return [];
  // It computed as usual itself, whatever it waited for.
  if (ratios !== undefined && (ratios.compute ?? ratios.rest) <= ordinaryFactor) return [];
  const isEveryPhase = isSlowBesideItsLike(beside, false) || isSlowBesideItsLike(beside, true);
  const told: readonly (readonly [NodeEvidence, boolean])[] = [
    ['every-phase', isEveryPhase],
    ['other-tasks', others !== undefined && others >= slowFactor],
    ['same-task', elsewhere !== undefined && elsewhere <= slowFactor],
  ];
  return told.flatMap(([evidence, holds]) => (holds ? [evidence] : []));
}

/** Whether the same task was about as slow on another node: then it is the task's own work that takes long. */
export const isOwnWork = ({ elsewhere }: Witnesses, slowness: number): boolean =>
  elsewhere !== undefined && elsewhere >= Math.max(slowFactor, 0.7 * slowness);
