import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { rounded } from '../../src/experiments/experiment.ts';
import { mean as meanOf, median, standardDeviation } from '../../src/lib/quantiles.ts';
import {
  type Foretold,
  type Machine,
  type MeasuredStage,
  meanTimes,
  predictor,
  type Taken,
} from './effect-prediction.ts';

/** One run of the job. */
export interface Run {
  readonly seed: number;
  readonly policy: PolicyName;
  readonly isInjected: boolean;
  /** From submission to published output. */
  readonly seconds: number;
  readonly workerSeconds: number;
  /** User and system time of all processes, the stack's among them. */
  readonly cpuSeconds: number;
  /** Of that time, what other processes of the machine had of its cores, as a share. */
  readonly othersShare: number;
  /** Attempts beyond one of each task. */
  readonly copies: number;
  readonly declined: number;
  readonly stages: readonly {
    readonly name: string;
    readonly tasks: number;
    readonly startedAt: number;
    readonly endedAt: number;
    /** Of runs of `none` that were left alone; else none. */
    readonly attempts: readonly Taken[];
  }[];
}

/** Of nothing there is none. */
const mean = (values: readonly number[]): number => meanOf(values) ?? NaN;
/** Standard error of a mean; 0 of one value. */
const errorOf = (values: readonly number[]): number =>
  (standardDeviation(values) ?? NaN) / Math.sqrt(values.length);

/** Runs of one kind beside the runs of `none` of the same seeds that were left alone. */
interface Comparison {
  readonly name: string;
  readonly policy: PolicyName;
  readonly isInjected: boolean;
  readonly runs: readonly Run[];
  /** Means of the runs, each over the mean of the runs left alone with its seed. */
  readonly times: readonly number[];
  readonly workerTimes: readonly number[];
  readonly cpuTimes: readonly number[];
  readonly foretold: Foretold;
}

/** Of those that all others are beside, and are foretold from. */
export const isAlone = ({ policy, isInjected }: Pick<Run, 'policy' | 'isInjected'>): boolean =>
  policy === 'none' && !isInjected;

/** The job's stages in the mean of runs. */
const meanStages = (some: readonly Run[]): readonly MeasuredStage[] =>
  (some[0]?.stages ?? []).map(({ name, tasks }, place) => ({
    ...{ name, tasks },
    ...meanTimes(some.map(({ stages }) => stages[place]?.attempts ?? [])),
  }));

/** What a run takes beside its stages: to take the job up, to plan it, and to publish its output. */
const besideStages = ({ seconds, stages }: Run): number =>
  seconds -
  (Math.max(...stages.map(({ endedAt }) => endedAt)) -
    Math.min(...stages.map(({ startedAt }) => startedAt))) /
    1_000;

/** Every kind of runs, in the order in which they first ran. `factor`: how slow the injected worker is. */
export async function compare(
  runs: readonly Run[],
  machine: Machine,
  factor: number,
): Promise<readonly Comparison[]> {
  const alone = runs.filter(isAlone);
  const besideS = mean(alone.map(besideStages));
  const foretell = await predictor(meanStages(alone), machine);
  const kinds = Map.groupBy(runs, (run) => `${run.policy}${run.isInjected ? ', one slow worker' : ''}`);
  const comparisons: Comparison[] = [];
  for (const [name, some] of kinds) {
    const [{ policy, isInjected } = { policy: 'none' as const, isInjected: false }] = some;
    const over = (of: (run: Run) => number): number[] =>
      some.map((each) => of(each) / mean(alone.filter(({ seed }) => seed === each.seed).map(of)));
    const { seconds, workerSeconds } = await foretell({ policy, factor: isInjected ? factor : 1 });
    comparisons.push({
      ...{ name, policy, isInjected, runs: some },
      times: over((run) => run.seconds),
      workerTimes: over((run) => run.workerSeconds),
      cpuTimes: over((run) => run.cpuSeconds),
      foretold: { seconds: seconds + besideS, workerSeconds },
    });
  }
  return comparisons;
}

const secondsOf = ({ runs }: Comparison): number => mean(runs.map(({ seconds }) => seconds));
/** How far the foretold time is off, as a share of the measured one. */
const errorInTime = (each: Comparison): number => each.foretold.seconds / secondsOf(each) - 1;

/** A row of the table for each kind of runs. */
export const rowsOf = (comparisons: readonly Comparison[]): readonly object[] =>
  comparisons.map((each) => ({
    run: each.name,
    runs: each.runs.length,
    s: rounded(secondsOf(each)),
    'of alone': rounded(mean(each.times)),
    'median ': rounded(median(each.times) ?? NaN),
    '± ': rounded(errorOf(each.times)),
    'foretold s': rounded(each.foretold.seconds),
    'off by': rounded(errorInTime(each)),
    'worker s': rounded(mean(each.runs.map(({ workerSeconds }) => workerSeconds))),
    'of alone ': rounded(mean(each.workerTimes)),
    median: rounded(median(each.workerTimes) ?? NaN),
    '±': rounded(errorOf(each.workerTimes)),
    'foretold worker s': rounded(each.foretold.workerSeconds),
    'CPU s': rounded(mean(each.runs.map(({ cpuSeconds }) => cpuSeconds))),
    'CPU of alone': rounded(mean(each.cpuTimes)),
    'copies and kills': rounded(mean(each.runs.map(({ copies }) => copies))),
    declined: rounded(mean(each.runs.map(({ declined }) => declined))),
  }));

/** Times are foretold in an order where they are at least so far apart. */
const apart = 1.1;

/** Of the pairs of kinds whose times are foretold to differ clearly, how many do so in that order, and how many there are. */
function orderOf(comparisons: readonly Comparison[]): readonly [number, number] {
  const pairs = comparisons.flatMap((slow) =>
    comparisons
      .filter((fast) => slow.foretold.seconds > apart * fast.foretold.seconds)
      .map((fast) => secondsOf(slow) > secondsOf(fast)),
  );
  return [pairs.filter(Boolean).length, pairs.length];
}

/** What is asked of the default policy and of the simulator, with the figures of these runs, a line each. */
export function verdictsOf(comparisons: readonly Comparison[]): readonly string[] {
  const verdict = (what: string, value: number, most: number): string =>
    `${what}: ${String(rounded(value))}, at most ${String(most)} is asked for: ${value <= most ? 'holds' : 'DOES NOT HOLD'}`;
  const lines: string[] = [];
  for (const each of comparisons.filter(({ policy }) => policy === 'outrider')) {
    if (each.isInjected) {
      lines.push(verdict('outrider beside a slow worker, time of alone', mean(each.times), 1.25));
      lines.push(
        verdict('outrider beside a slow worker, worker seconds of alone', mean(each.workerTimes), 1.1),
      );
    } else lines.push(verdict('outrider left alone, worker seconds of none', mean(each.workerTimes), 1.03));
  }
  const worst = Math.max(...comparisons.map((each) => Math.abs(errorInTime(each))));
  lines.push(verdict('foretold times are off by', worst, 0.2));
  const [right, all] = orderOf(comparisons);
  lines.push(
    `of ${String(all)} pairs that are foretold to differ by a tenth, ${String(right)} are in that order`,
  );
  return lines;
}
