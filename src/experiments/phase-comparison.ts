import type { PolicyName } from '../contracts/policy-names.ts';
import { clairvoyantTimesOf, idealTimes } from '../sim/bounds.ts';
import { completionMsOf, copyCountsOf, slotTimeOf } from '../sim/metrics.ts';
import { parseScenario, type Scenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import type { ProgressPoints } from '../traces/generators/progress-shapes.ts';
import { intervalOf, rounded, type Row } from './experiment.ts';

/** A phase alone on its slots. */
export interface Phase {
  /** Unique among the phases of a run. */
  readonly name: string;
  readonly slots: number;
  /** For each task, what its first, second, … attempt takes; the last holds for later ones. At least one task. */
  readonly attemptsMs: readonly (readonly number[])[];
  readonly inputBytes: readonly number[];
  /** How it gets through its input; evenly unless told. */
  readonly progress?: ProgressPoints;
}

/** What a scheme made of a phase. */
export interface PhaseRun {
  readonly completionMs: number;
  /** Undefined for ideal schemes, which are no runs. */
  readonly slotMs: number | undefined;
  readonly tasks: number;
  readonly started: number;
  readonly won: number;
  readonly early: number;
  readonly clairvoyantMs: number;
}

/** A policy, or LATE without waiting for all tasks to start. Source: Mantri §6.1. */
export type Compared = PolicyName | 'early-late';

/** Ideal schemes beside the policies. Source: Mantri §6.1. */
export const idealSchemes = ['NoSkew', 'NoSkew + ChopTail'] as const;
export type Scheme = Compared | (typeof idealSchemes)[number];

/** The runs of one set of phases, by scheme, all in the same order. */
export type Comparison = ReadonlyMap<Scheme, readonly PhaseRun[]>;

/**
 * Kills free slots at once, the scheduler is told at once, reports come every 10 s or tenth of a task. All policies
 * start the largest tasks first, so that they differ in what they do about stragglers alone.
 */
function phaseScenario(phase: Phase, policy: Compared): Scenario {
  return parseScenario({
    name: phase.name,
    cluster: { nodes: [{ count: phase.slots }] },
    scheduler: { tickMs: 1_000, wakeOnEnd: true, cancel: 'immediate' },
    reports: { everyMs: 10_000, tenths: true },
    jobs: [
      {
        ...(policy === 'early-late'
          ? { policy: 'late', policyConfig: { late: { waitForStarts: false } } }
          : { policy }),
        launchOrder: 'largest-first',
        stages: [
          {
            name: 'phase',
            tasks: phase.attemptsMs.length,
            workMs: phase.attemptsMs.map(([first]) => first ?? 0),
            attemptsMs: phase.attemptsMs.map((attempts) => [...attempts]),
            inputBytes: [...phase.inputBytes],
            ...(phase.progress && { progress: phase.progress.map(([done, read]) => [done, read]) }),
          },
        ],
      },
    ],
  });
}

async function runPhase(
  phase: Phase,
  policy: Compared,
): Promise<{ readonly run: Omit<PhaseRun, 'clairvoyantMs'>; readonly ideal: ReturnType<typeof idealTimes> }> {
  const { jobs } = await simulate(phaseScenario(phase, policy), { seed: 'phase' });
  const [job] = jobs;
  if (job === undefined) throw new RangeError('a phase is one job');
  const run = {
    completionMs: completionMsOf(job),
    slotMs: slotTimeOf(job).usedMs,
    tasks: job.tasks,
    ...copyCountsOf(job),
  };
  return { run, ideal: idealTimes(job, phase.slots) };
}

/** Runs phases one by one without copies and under each policy; the ideal schemes follow from the run without copies. */
export async function comparePhases(
  phases: readonly Phase[],
  policies: readonly Compared[],
): Promise<Comparison> {
  const found = new Map<Scheme, PhaseRun[]>(
    ['none' as const, ...policies, ...idealSchemes].map((scheme) => [scheme, []]),
  );
  for (const phase of phases) {
    const clairvoyantMs = clairvoyantTimesOf(phaseScenario(phase, 'none'), 'phase')[0]?.scheduleMs ?? 0;
    for (const policy of new Set<Compared>(['none', ...policies])) {
      const { run, ideal } = await runPhase(phase, policy);
      found.get(policy)?.push({ ...run, clairvoyantMs });
      if (policy !== 'none') continue;
      const idealRun = { ...run, clairvoyantMs, slotMs: undefined, started: 0, won: 0, early: 0 };
      found.get('NoSkew')?.push({ ...idealRun, completionMs: ideal.noSkewMs });
      found.get('NoSkew + ChopTail')?.push({ ...idealRun, completionMs: ideal.noSkewChopTailMs });
    }
  }
  return found;
}

/** The least value that a share `p` of the weight lies at or below; 0 of nothing. */
export function weightedQuantile(
  values: readonly { readonly value: number; readonly weight: number }[],
  p: number,
): number {
  const sorted = values.toSorted((a, b) => a.value - b.value);
  const total = sorted.reduce((sum, { weight }) => sum + weight, 0);
  let sum = 0;
  for (const { value, weight } of sorted) {
    sum += weight;
    if (sum >= p * total) return value;
  }
  return sorted.at(-1)?.value ?? 0;
}

/** What a scheme gains over none, in one set of phases. Reductions as Mantri counts them: (none − scheme) / none. */
export interface Gain {
  /** Of completion time, at percentiles of phases weighted by their length without copies. */
  readonly p25: number;
  readonly p50: number;
  readonly p75: number;
  readonly p90: number;
  /** Of all phases' time together, and of all slot time together (negative: more); no slot time for ideals. */
  readonly time: number;
  readonly resources: number | undefined;
  /** Share of phases whose time changes by less than a hundredth. */
  readonly unchanged: number;
  readonly copiesPerTask: number;
  readonly wonShare: number | undefined;
  readonly earlyShare: number | undefined;
  /** Median over phases of completion over the clairvoyant schedule's, less 1. */
  readonly overClairvoyant: number;
}

const share = (part: number, whole: number): number | undefined => (whole === 0 ? undefined : part / whole);

/** The gain of a scheme. Zeros without phases. */
export function gainOf(comparison: Comparison, scheme: Scheme): Gain {
  const base = comparison.get('none') ?? [];
  const runs = comparison.get(scheme) ?? [];
  const sum = (of: (run: PhaseRun) => number, from = runs): number =>
    from.reduce((total, run) => total + of(run), 0);
  const reductions = runs.map((run, index) => {
    const weight = base[index]?.completionMs ?? 0;
    return { value: share(weight - run.completionMs, weight) ?? 0, weight };
  });
  const at = (p: number): number => weightedQuantile(reductions, p);
  const started = sum((run) => run.started);
  const hasSlots = runs.every(({ slotMs }) => slotMs !== undefined);
  const overheads = runs.map((run) => ({
    value: (share(run.completionMs, run.clairvoyantMs) ?? 1) - 1,
    weight: 1,
  }));
  return {
    p25: at(0.25),
    p50: at(0.5),
    p75: at(0.75),
    p90: at(0.9),
    time:
      1 -
      (share(
        sum((run) => run.completionMs),
        sum((run) => run.completionMs, base),
      ) ?? 1),
    resources: hasSlots
      ? 1 -
        (share(
          sum((run) => run.slotMs ?? 0),
          sum((run) => run.slotMs ?? 0, base),
        ) ?? 1)
      : undefined,
    unchanged: share(reductions.filter(({ value }) => Math.abs(value) < 0.01).length, reductions.length) ?? 0,
    copiesPerTask:
      share(
        started,
        sum((run) => run.tasks),
      ) ?? 0,
    wonShare: share(
      sum((run) => run.won),
      started,
    ),
    earlyShare: share(
      sum((run) => run.early),
      started,
    ),
    overClairvoyant: weightedQuantile(overheads, 0.5),
  };
}

/** Means of gains over seeds. An absent share is left out of its mean. */
export function meanGain(gains: readonly Gain[]): Gain {
  const mean = (of: (gain: Gain) => number | undefined): number | undefined => {
    const known = gains.flatMap((gain) => of(gain) ?? []);
    return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0) / known.length;
  };
  return {
    p25: mean(({ p25 }) => p25) ?? 0,
    p50: mean(({ p50 }) => p50) ?? 0,
    p75: mean(({ p75 }) => p75) ?? 0,
    p90: mean(({ p90 }) => p90) ?? 0,
    time: mean(({ time }) => time) ?? 0,
    resources: mean(({ resources }) => resources),
    unchanged: mean(({ unchanged }) => unchanged) ?? 0,
    copiesPerTask: mean(({ copiesPerTask }) => copiesPerTask) ?? 0,
    wonShare: mean(({ wonShare }) => wonShare),
    earlyShare: mean(({ earlyShare }) => earlyShare),
    overClairvoyant: mean(({ overClairvoyant }) => overClairvoyant) ?? 0,
  };
}

/** The columns of a table of gains; shares in percent, with the interval of the median over seeds. */
export function gainCells(gains: readonly Gain[]): Row {
  const gain = meanGain(gains);
  const percent = (value: number | undefined): number | null =>
    value === undefined ? null : Math.round(value * 1_000) / 10;
  const { low, high } = intervalOf(gains.map(({ p50 }) => p50 * 100));
  return {
    p25: percent(gain.p25),
    p50: percent(gain.p50),
    p75: percent(gain.p75),
    p90: percent(gain.p90),
    p50Low: low,
    p50High: high,
    timePct: percent(gain.time),
    resourcesPct: percent(gain.resources),
    unchangedPct: percent(gain.unchanged),
    copiesPerTask: rounded(gain.copiesPerTask),
    wonPct: percent(gain.wonShare),
    earlyPct: percent(gain.earlyShare),
    overClairvoyantPct: percent(gain.overClairvoyant),
  };
}
