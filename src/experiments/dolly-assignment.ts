import {
  type AssignmentSamples,
  bestWait,
  contendedReadMs,
  exclusiveReadMs,
} from '../core/policy/dolly/delay-assignment.ts';
import { ascending, mean } from '../lib/quantiles.ts';
import { createRng, type Rng } from '../lib/rng.ts';
import { claim } from './checks.ts';
import {
  type Check,
  type Experiment,
  type ExperimentInput,
  type Findings,
  intervalOf,
  type Plot,
  type Row,
  rounded,
} from './experiment.ts';

/** Who reads what of the upstream clones. `none`: nothing is cloned. */
const strategies = ['none', 'CAC', 'CC', 'delay'] as const;
type Strategy = (typeof strategies)[number];
const patterns = ['all-to-all', 'many-to-one', 'one-to-one'] as const;
type Pattern = (typeof patterns)[number];

/** Small jobs: ten tasks a phase with two copies each. */
const tasks = 10;
const copies = 2;
const mostPhases = 6;
const jobsPerSeed = 120;
const trainingJobs = 50;
/** Compute time of a copy, and of one that straggles: 8 times as long on average (§2.2), p as Fig. 5 suggests. */
const computeMs = 10_000;
const stragglerProbability = 0.08;
const stragglerFactor = 8;
/** Copies that do not straggle differ by up to so much. */
const spread = 0.2;
/** Reading alone takes all inputs of a task together this long; two readers of one copy get half of B each. */
const readAloneMs = 4_000;
const share = 0.5;

/** Upstream tasks that a task reads: all, three of them, or its own. */
function sourcesOf(pattern: Pattern, task: number): readonly number[] {
  switch (pattern) {
    case 'all-to-all':
      return Array.from({ length: tasks }, (_, index) => index);
    case 'many-to-one':
      return [0, 1, 2].map((next) => (task + next) % tasks);
    case 'one-to-one':
      return [task];
  }
}

const sizeOf = (pattern: Pattern): number => readAloneMs / sourcesOf(pattern, 0).length;

/** When the copies of a task are done, first to last. */
type Finishes = readonly number[];
/** When a clone may begin to read an output, and how long that takes then. */
interface Read {
  readonly fromMs: number;
  readonly lengthMs: number;
}

const computeTime = (rng: Rng): number => {
  const usual = computeMs * (1 + spread * rng.next());
  return rng.next() < stragglerProbability ? usual * stragglerFactor : usual;
};

/** How each of two clones reads one upstream output, by strategy. */
function readsOf(
  strategy: Strategy,
  [first = 0, second = Infinity]: Finishes,
  size: number,
  waitMs: number,
): readonly Read[] {
  const shared = { sizeBytes: size, bytesPerMs: 1, share };
  const [alone] = exclusiveReadMs(shared, 0);
  if (strategy === 'none') return [{ fromMs: first, lengthMs: alone }];
  if (strategy === 'CAC')
    return [
      { fromMs: first, lengthMs: alone },
      { fromMs: second, lengthMs: alone },
    ];
  const wait = strategy === 'CC' ? 0 : waitMs;
  if (second - first <= wait)
    return [
      { fromMs: first, lengthMs: alone },
      { fromMs: second, lengthMs: alone },
    ];
  const [one, other] = contendedReadMs(shared, wait);
  // Beyond the time that the first reader takes, the second has the copy to itself, and need not wait longer.
  const begins = Math.min(wait, alone);
  return [
    { fromMs: first, lengthMs: one },
    { fromMs: first + begins, lengthMs: other - begins },
  ];
}

/** When a clone has read all its sources, one after the other as they can be had. */
function readEnd(reads: readonly Read[]): number {
  let now = 0;
  for (const { fromMs, lengthMs } of reads.toSorted((a, b) => a.fromMs - b.fromMs))
    now = Math.max(now, fromMs) + lengthMs;
  return now;
}

interface JobModel {
  readonly pattern: Pattern;
  readonly phases: number;
  readonly strategy: Strategy;
  readonly waitMs: number;
}

/** Runs a job; answers when it ends and, for each phase but the last, when its copies were done. */
function runJob(
  { pattern, phases, strategy, waitMs }: JobModel,
  rng: Rng,
): { readonly endMs: number; readonly finishes: readonly Finishes[] } {
  const clones = strategy === 'none' ? 1 : copies;
  const seen: Finishes[] = [];
  let upstream: readonly Finishes[] = [];
  for (let phase = 0; phase < phases; phase++) {
    const before = upstream;
    seen.push(...before);
    upstream = Array.from({ length: tasks }, (_, task) => {
      const reads =
        phase === 0
          ? []
          : sourcesOf(pattern, task).map((source) =>
              readsOf(strategy, before[source] ?? [], sizeOf(pattern), waitMs),
            );
      // Every copy draws its own compute time, whatever the strategy: all strategies meet the same luck.
      const luck = Array.from({ length: copies }, () => computeTime(rng));
      return ascending(
        luck
          .slice(0, clones)
          .map((time, clone) => readEnd(reads.flatMap((each) => each[clone] ?? [])) + time),
      );
    });
  }
  return { endMs: Math.max(...upstream.map(([first = 0]) => first)), finishes: seen };
}

/** ω as it is learnt from jobs that ran before: the gaps between copies, and what computing took. */
function learnWait(pattern: Pattern, phases: number, rng: Rng): number {
  const gapsMs: number[] = [];
  const compute: number[] = [];
  for (let job = 0; job < trainingJobs; job++) {
    const { finishes } = runJob({ pattern, phases, strategy: 'CAC', waitMs: 0 }, rng);
    for (const [first = 0, second = Infinity] of finishes) gapsMs.push(second - first);
    for (let copy = 0; copy < copies; copy++) compute.push(computeTime(rng));
  }
  const samples: AssignmentSamples = {
    sizeBytes: sizeOf(pattern),
    reads: sourcesOf(pattern, 0).length,
    flows: [{ bytesPerMs: 1, share }],
    gapsMs: gapsMs.length === 0 ? [Infinity] : gapsMs,
    computeMs: compute,
  };
  return bestWait(samples).waitMs;
}

/** Mean times of jobs in seconds, one for each seed. */
interface Point {
  readonly pattern: Pattern;
  readonly phases: number;
  readonly waitS: number;
  readonly seconds: Readonly<Record<Strategy, readonly number[]>>;
}

function measure(pattern: Pattern, phases: number, seeds: readonly string[]): Point {
  const seconds: Record<Strategy, number[]> = { none: [], CAC: [], CC: [], delay: [] };
  const waits: number[] = [];
  for (const seed of seeds) {
    const name = `${seed}/${pattern}/${phases}`;
    const waitMs = learnWait(pattern, phases, createRng(`${name}/training`));
    waits.push(waitMs / 1_000);
    for (const strategy of strategies) {
      const rng = createRng(`${name}/jobs`);
      const ends = Array.from(
        { length: jobsPerSeed },
        () => runJob({ pattern, phases, strategy, waitMs }, rng).endMs / 1_000,
      );
      seconds[strategy].push(mean(ends) ?? 0);
    }
  }
  return { pattern, phases, waitS: mean(waits) ?? 0, seconds };
}

const meanOf = (point: Point, strategy: Strategy): number => mean(point.seconds[strategy]) ?? 0;
const gainOf = (point: Point, strategy: Strategy): number =>
  1 - meanOf(point, strategy) / Math.max(1e-9, meanOf(point, 'none'));
const percent = (value: number): string => `${(value * 100).toFixed(1)} %`;
const gains = (point: Point): string =>
  `CAC ${percent(gainOf(point, 'CAC'))}, CC ${percent(gainOf(point, 'CC'))}, delay ${percent(gainOf(point, 'delay'))}`;

const rowsOf = (point: Point): Row[] =>
  strategies.map((strategy) => {
    const { mean: meanS, low, high } = intervalOf(point.seconds[strategy]);
    return {
      pattern: point.pattern,
      phases: point.phases,
      strategy,
      waitS: strategy === 'delay' ? rounded(point.waitS) : null,
      meanS,
      lowS: low,
      highS: high,
      soonerThanNone: rounded(gainOf(point, strategy)),
    };
  });

/** How much more delay assignment gains than the better of the others. */
const lead = (point: Point): number =>
  gainOf(point, 'delay') - Math.max(gainOf(point, 'CC'), gainOf(point, 'CAC'));

/** The number of phases and the patterns of communication. */
function formChecks(points: readonly Point[]): Check[] {
  const six = points.find(({ pattern, phases }) => pattern === 'all-to-all' && phases === mostPhases);
  const leadIn = (pattern: Pattern): number =>
    mean(points.filter((point) => point.pattern === pattern && point.phases >= 2).map(lead)) ?? 0;
  return [
    claim('six phases, all-to-all: delay assignment', {
      paper: '31 %',
      got: six === undefined ? 'nothing' : gains(six),
      rule: 'at least 31 %',
      ok: six !== undefined && gainOf(six, 'delay') >= 0.31,
    }),
    claim('patterns: lead of delay assignment', {
      paper: 'all-to-all gains most',
      got: patterns.map((pattern) => `${pattern} ${percent(leadIn(pattern))}`).join(', '),
      rule: 'all-to-all first; here tasks read as long in every pattern, and the less from one source the less is shared',
      ok: patterns.every((pattern) => leadIn('all-to-all') >= leadIn(pattern)),
      kind: 'side',
    }),
  ];
}

function checksOf(points: readonly Point[]): Check[] {
  const find = (pattern: Pattern, phases: number): Point | undefined =>
    points.find((each) => each.pattern === pattern && each.phases === phases);
  const worst = Math.max(
    ...points.map(
      (point) => meanOf(point, 'delay') / Math.min(meanOf(point, 'CAC'), meanOf(point, 'CC')) - 1,
    ),
  );
  const several = points.filter(({ pattern, phases }) => pattern === 'all-to-all' && phases >= 2);
  const [two, six] = [find('all-to-all', 2), find('all-to-all', mostPhases)];
  const fall = (strategy: Strategy): number =>
    two === undefined || six === undefined ? 0 : gainOf(two, strategy) - gainOf(six, strategy);
  return [
    claim('delay assignment against the better of CC and CAC, everywhere', {
      paper: 'never worse',
      got: `${percent(worst)} slower at worst`,
      rule: 'at most 1 % slower',
      ok: worst <= 0.01,
    }),
    claim('all-to-all, two phases and more: lead of delay assignment over the better one', {
      paper: '37 % against 26 and 17 %',
      got: several.map((point) => `${point.phases}: ${percent(lead(point))}`).join(', '),
      rule: 'over 1 point each',
      ok: several.every((point) => lead(point) > 0.01),
    }),
    claim('all-to-all, two phases: sooner than without clones', {
      paper: 'CAC 17 %, CC 26 %, delay 37 %',
      got: two === undefined ? 'nothing' : gains(two),
      rule: 'CAC < CC < delay',
      ok:
        two !== undefined &&
        gainOf(two, 'CAC') < gainOf(two, 'CC') &&
        gainOf(two, 'CC') < gainOf(two, 'delay'),
    }),
    claim('all-to-all, from two phases to six: what is lost of the gain', {
      paper: 'CAC falls fastest',
      got: strategies
        .slice(1)
        .map((strategy) => `${strategy} ${percent(fall(strategy))}`)
        .join(', '),
      rule: 'CAC loses most',
      ok: fall('CAC') > fall('CC') && fall('CAC') > fall('delay'),
    }),
    ...formChecks(points),
  ];
}

function plotOf(pattern: Pattern, points: readonly Point[]): Plot {
  return {
    name: pattern,
    kind: 'lines',
    title: `Sooner than without clones: ${pattern}`,
    xLabel: 'phases',
    yLabel: 'share of completion time',
    series: strategies.slice(1).map((name) => ({
      name,
      points: points
        .filter((point) => point.pattern === pattern)
        .map((point) => ({ x: point.phases, y: gainOf(point, name) })),
    })),
  };
}

function run({ seeds }: ExperimentInput): Promise<Findings> {
  const points = patterns.flatMap((pattern) =>
    Array.from({ length: mostPhases }, (_, index) => measure(pattern, index + 1, seeds)),
  );
  return Promise.resolve({
    rows: points.flatMap(rowsOf),
    checks: checksOf(points),
    plots: patterns.map((pattern) => plotOf(pattern, points)),
  });
}

/**
 * Who reads what of cloned outputs: exclusive copies (CAC), the first one (CC), or delay assignment with the ω that
 * is learnt from jobs before. A model of tasks, copies and reads alone, without a scheduler: times are drawn, each
 * copy's luck is its own, and all strategies meet the same luck.
 *
 * Source: Dolly §4.2 to §4.4 and §5.3, Fig. 11 and 12. The paper's data sizes are not known: reads take alone two
 * fifths of what computing does.
 */
export const dollyAssignment: Experiment = {
  name: 'dolly-assignment',
  title: 'Dolly: contention, its avoidance, and delay assignment',
  source: 'Dolly §4, §5.3, Fig. 11, 12',
  defaultSeeds: 4,
  traces: [],
  run,
};
