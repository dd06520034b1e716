import type { nodeEvidence } from '../../contracts/explanation.ts';
import { median } from '../../lib/quantiles.ts';
import type { AttemptRun } from './attempt-runs.ts';
import { slownessOf, type Usual } from './usual-run.ts';

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
}

/** Attempts of a job by where they ran, and by their task (`stage/index`). */
export interface RunIndex {
  readonly byNode: ReadonlyMap<string, readonly AttemptRun[]>;
  readonly byTask: ReadonlyMap<string, readonly AttemptRun[]>;
  /** What is usual, by stage; absent where nobody can say. */
  readonly usual: ReadonlyMap<string, Usual>;
}

/** The task of an attempt. */
export const taskIdOf = ({ stage, task }: Pick<AttemptRun, 'stage' | 'task'>): string => `${stage}/${task}`;

/** Collects what other attempts tell of where one ran, and of its task. */
export function witnessesOf(run: AttemptRun, { byNode, byTask, usual }: RunIndex): Witnesses {
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
  };
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

/**
 * What shows that an attempt's node is slow; empty where nothing does. Its start reads none of the input, so that where it
 * was slowed down about as much as the rest, the input is not at fault; nor the storage, which it fetches its description
 * from, where computing was slowed down, too.
 */
export function evidenceOf(
  ratios: PhaseRatios | undefined,
  { others, elsewhere }: Witnesses,
): readonly NodeEvidence[] {
  // Other tasks ran there as usual: then what was slow was not the node, or not for long.
  if (others !== undefined && others <= ordinaryFactor) return [];
  // It computed as usual itself, whatever it waited for.
  if (ratios !== undefined && (ratios.compute ?? ratios.rest) <= ordinaryFactor) return [];
  const isEveryPhase =
    ratios !== undefined &&
    ratios.rest >= slowFactor &&
    ratios.start >= Math.max(leastStartFactor, ratios.rest / 2) &&
    ratios.start <= mostStartToRest * ratios.rest &&
    (ratios.compute ?? ratios.rest) >= slowFactor;
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
