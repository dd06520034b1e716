import { ascending, quantile } from '../lib/quantiles.ts';
import { claim, derived, within } from './checks.ts';
import { type Check, type Findings, intervalOf, intervalText, type Row, rounded } from './experiment.ts';
import type { LossRateName } from './loss-workload.ts';

export const protectionNames = [
  'none',
  'none, other places',
  'replication',
  'pre-computation',
  'both',
  'both, two losses',
  'ideal recompute',
] as const;
export type ProtectionName = (typeof protectionNames)[number];

/** Copies of outputs, and those of them that were read because the first was gone. */
interface Copies {
  readonly count: number;
  readonly bytes: number;
  readonly read: number;
}

/** A job under one kind of protection. */
export interface Protected {
  readonly completionMs: number;
  readonly slotMs: number;
  /** Tasks that were done again, but for those done again before anybody missed their outputs. */
  readonly recomputed: number;
  readonly phases: number;
  /** Phases of them with a task that was done again. */
  readonly phasesRedone: number;
  /** The machine of each output that was made again. */
  readonly lostOn: readonly string[];
  /** Bytes that its tasks read. */
  readonly bytes: number;
  /** Copied for their worth, and in spells. */
  readonly replicas: Copies;
  readonly ahead: Copies;
}

/** The same jobs under each kind of protection. */
export type Runs = Readonly<Record<ProtectionName, readonly Protected[]>>;

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const share = (part: number, whole: number): number => (whole === 0 ? 0 : (100 * part) / whole);
const total = (jobs: readonly Protected[], of: (job: Protected) => number): number => sum(jobs.map(of));

/** Reductions of the completion of jobs that do something again where nothing is protected, in per cent; not rounded. */
const reductionsOf = (runs: Runs, name: ProtectionName): readonly number[] =>
  runs.none.flatMap(({ recomputed, completionMs }, place) => {
    const other = runs[name][place];
    return recomputed === 0 || other === undefined ? [] : [100 * (1 - other.completionMs / completionMs)];
  });

/** Figures of one run: shares in per cent. */
const figures = {
  recomputed: (runs: Runs, name: ProtectionName) => total(runs[name], (job) => job.recomputed),
  avoided: (runs: Runs, name: ProtectionName) => {
    const before = total(runs.none, (job) => job.recomputed);
    return share(before - total(runs[name], (job) => job.recomputed), before);
  },
  /** Phases that see no recomputes. */
  unhurt: (runs: Runs, name: ProtectionName) =>
    100 -
    share(
      total(runs[name], ({ phasesRedone }) => phasesRedone),
      total(runs[name], ({ phases }) => phases),
    ),
  traffic: (runs: Runs, name: ProtectionName) =>
    share(
      total(runs[name], ({ replicas, ahead }) => replicas.bytes + ahead.bytes),
      total(runs[name], ({ bytes }) => bytes),
    ),
  mostReplicated: (runs: Runs, name: ProtectionName) =>
    Math.max(...runs[name].map(({ replicas, bytes }) => share(replicas.bytes, bytes))),
  replicasRead: (runs: Runs, name: ProtectionName) =>
    share(
      total(runs[name], ({ replicas }) => replicas.read),
      total(runs[name], ({ replicas }) => replicas.count),
    ),
  aheadRead: (runs: Runs, name: ProtectionName) =>
    share(
      total(runs[name], ({ ahead }) => ahead.read),
      total(runs[name], ({ ahead }) => ahead.count),
    ),
  slotTime: (runs: Runs, name: ProtectionName) =>
    share(
      total(runs[name], ({ slotMs }) => slotMs),
      total(runs.none, ({ slotMs }) => slotMs),
    ) - 100,
  aboveIdeal: (runs: Runs, name: ProtectionName) =>
    share(
      total(runs[name], ({ completionMs }) => completionMs),
      total(runs['ideal recompute'], ({ completionMs }) => completionMs),
    ) - 100,
  affected: (runs: Runs, name: ProtectionName) => reductionsOf(runs, name).length,
  p50: (runs: Runs, name: ProtectionName) => quantile(ascending(reductionsOf(runs, name)), 0.5) ?? 0,
  p75: (runs: Runs, name: ProtectionName) => quantile(ascending(reductionsOf(runs, name)), 0.75) ?? 0,
} as const;
type Figure = keyof typeof figures;

/** Share of what was made again where nothing is protected that lay on the twentieth of machines with the most of it. */
function onWorstMachines({ none }: Runs, machines: number): number {
  const byMachine = Map.groupBy(
    none.flatMap(({ lostOn }) => lostOn),
    (machine) => machine,
  );
  const counts = ascending([...byMachine.values()].map(({ length }) => length)).reverse();
  return share(sum(counts.slice(0, Math.round(machines / 20))), sum(counts));
}

/** That outputs are lost as the paper tells it: where most are, and how seldom. */
function lossChecksOf(bySeed: Readonly<Record<LossRateName, readonly Runs[]>>, machines: number): Check[] {
  return [
    within(
      'recomputations on the twentieth of machines with the most, nothing protected, far more often, %',
      50,
      intervalOf(bySeed['far more often'].map((runs) => onWorstMachines(runs, machines))),
      { tolerance: 15, why: 'half of the spells are put on a twentieth of the machines', kind: 'side' },
    ),
    within(
      'phases that see no recomputes, nothing protected, %',
      99,
      intervalOf(bySeed['as in the paper'].map((runs) => figures.unhurt(runs, 'none'))),
      { tolerance: 0.5, why: 'the spells are as frequent as makes it so', kind: 'side' },
    ),
  ];
}

/** All seeds' jobs as those of one run: what befalls few of them is rare in one seed. */
const pooled = (bySeed: readonly Runs[]): Runs => ({
  none: bySeed.flatMap((runs) => runs.none),
  'none, other places': bySeed.flatMap((runs) => runs['none, other places']),
  replication: bySeed.flatMap((runs) => runs.replication),
  'pre-computation': bySeed.flatMap((runs) => runs['pre-computation']),
  both: bySeed.flatMap((runs) => runs.both),
  'both, two losses': bySeed.flatMap((runs) => runs['both, two losses']),
  'ideal recompute': bySeed.flatMap((runs) => runs['ideal recompute']),
});

function checksOf(bySeed: readonly Runs[]): Check[] {
  const of = (figure: Figure, name: ProtectionName) =>
    intervalOf(bySeed.map((runs) => figures[figure](runs, name)));
  const text = (figure: Figure, name: ProtectionName): string => `${intervalText(of(figure, name))} %`;
  const all = pooled(bySeed);
  const avoided = (name: ProtectionName): number => figures.avoided(all, name);
  const useful = (name: ProtectionName): number => figures.aheadRead(all, name);
  const most = figures.mostReplicated(all, 'both');
  return [
    within('reduction of the completion of jobs that recompute, at the median, %', 20, of('p50', 'both'), {
      tolerance: 5,
      why: 'at least 20 in the paper, beside Dryad',
    }),
    within('extra network traffic of replication and pre-computation, %', 1, of('traffic', 'both'), {
      tolerance: 1,
      why: 'about 1 in the paper',
    }),
    claim('replicated in any job, of the bytes that it processes', {
      paper: 'at most 10 %',
      got: `${most.toFixed(1)} % at most`,
      rule: 'at most 10 %',
      kind: 'value',
      ok: most <= 10,
    }),
    claim('completion beside IdealRecompute, over all jobs', {
      paper: 'at parity',
      got: `${text('aboveIdeal', 'both')} more time; ${text('aboveIdeal', 'none')} with nothing protected`,
      rule: 'within 5 %, and less than with nothing protected',
      ok: of('aboveIdeal', 'both').mean <= 5 && of('aboveIdeal', 'both').mean < of('aboveIdeal', 'none').mean,
    }),
    claim('recomputations avoided by replication and by pre-computation, of all seeds', {
      paper: 'each contributes, and they complement each other',
      got: `${avoided('replication').toFixed(1)} % and ${avoided('pre-computation').toFixed(1)} %; ${avoided('both').toFixed(1)} % by both`,
      rule: 'each above 0, both together above either',
      ok:
        avoided('replication') > 0 &&
        avoided('pre-computation') > 0 &&
        avoided('both') > Math.max(avoided('replication'), avoided('pre-computation')),
    }),
    claim(
      'pre-computations that become useful, after one loss and after two in quick succession, of all seeds',
      {
        paper: 'more after two',
        got: `${useful('both').toFixed(1)} % and ${useful('both, two losses').toFixed(1)} %`,
        rule: 'more after two',
        ok: useful('both, two losses') > useful('both'),
      },
    ),
    claim('extra slot time of both', {
      paper: 'a few per cent',
      got: text('slotTime', 'both'),
      rule: 'at most 5 % more than with nothing protected',
      ok: of('slotTime', 'both').mean <= 5,
    }),
  ];
}

/** The table and the verdict over runs by seed, on so many machines; where far more is lost than in the paper, aside. */
export function recomputeFindings(
  bySeed: Readonly<Record<LossRateName, readonly Runs[]>>,
  machines: number,
): Findings {
  const often = checksOf(bySeed['far more often']).map((check) =>
    derived({ ...check, what: `far more often: ${check.what}` }),
  );
  return {
    rows: Object.entries(bySeed).flatMap(([losses, runs]) => rowsOf(losses, runs)),
    checks: [...lossChecksOf(bySeed, machines), ...checksOf(bySeed['as in the paper']), ...often],
  };
}

function rowsOf(losses: string, bySeed: readonly Runs[]): Row[] {
  const cell = (figure: Figure, name: ProtectionName): string =>
    intervalText(intervalOf(bySeed.map((runs) => figures[figure](runs, name))));
  return protectionNames.map((name) => ({
    losses,
    protection: name,
    recomputed: cell('recomputed', name),
    avoidedPct: cell('avoided', name),
    jobsAffected: rounded(intervalOf(bySeed.map((runs) => figures.affected(runs, name))).mean),
    p50: cell('p50', name),
    p75: cell('p75', name),
    aboveIdealPct: cell('aboveIdeal', name),
    trafficPct: cell('traffic', name),
    slotTimePct: cell('slotTime', name),
    replicasReadPct: cell('replicasRead', name),
    aheadReadPct: cell('aheadRead', name),
  }));
}
