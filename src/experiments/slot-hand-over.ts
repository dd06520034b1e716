import { mean, median } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import { completionMsOf } from '../sim/metrics.ts';
import { parseScenario, type ScenarioInput } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import { claim } from './checks.ts';
import {
  type Check,
  type Experiment,
  type ExperimentInput,
  type Findings,
  intervalFor,
  intervalText,
  type Plot,
} from './experiment.ts';
import { traceScenario } from './trace-scenario.ts';

const slots = 50;
const load = 0.4;
/** Environments of Lambda: a launch takes 50 ms where one is warm, and up to 1.5 s where it is not. */
const cluster: ScenarioInput['cluster'] = {
  nodes: [{ count: slots, elastic: true }],
  placement: 'warmest',
  startMs: 50,
  cold: { startMs: { kind: 'uniform', min: 300, max: 1_500 } },
};

/** How a slot whose attempt has ended comes to the next: at once, as production looks for it, or by its ticks alone. */
const ways = {
  'at once': { wakeOnEnd: true },
  looks: {},
  ticks: { looks: false },
} as const satisfies Record<string, ScenarioInput['scheduler']>;
type Way = keyof typeof ways;
const wayNames: readonly Way[] = ['at once', 'looks', 'ticks'];
/** Most by which jobs may take longer than where slots are handed over at once. */
const reach = 1.3;

type Figure = 'meanS' | 'medianS' | 'tasks' | 'launches' | 'coldStarts';
type Figures = Readonly<Record<Figure, number>>;

async function replay(jobs: ScenarioInput['jobs'], way: Way, seed: string): Promise<Figures> {
  const scenario = parseScenario({ name: 'slot-hand-over', cluster, scheduler: ways[way], jobs });
  const { jobs: outcomes, coldStarts } = await simulate(scenario, { seed });
  const jobS = outcomes.map((job) => completionMsOf(job) / 1_000);
  const [tasks, launches] = outcomes.reduce<readonly [number, number]>(
    ([tasks, launches], job) => [tasks + job.tasks, launches + job.launches.made],
    [0, 0],
  );
  return { meanS: mean(jobS) ?? 0, medianS: median(jobS) ?? 0, tasks, launches, coldStarts };
}

function checksOf(found: ReadonlyMap<Way, readonly Figures[]>): Check[] {
  const [atOnce, looks, ticks] = wayNames.map((way) => ({
    jobs: intervalFor(found, way, 'meanS'),
    launches: intervalFor(found, way, 'launches').mean,
    coldStarts: intervalFor(found, way, 'coldStarts').mean,
  }));
  if (atOnce === undefined || looks === undefined || ticks === undefined) return [];
  const told = `${intervalText(looks.jobs)} s by looks, ${intervalText(atOnce.jobs)} s at once`;
  return [
    claim('mean time of a job, as production hands slots over', {
      paper: 'no slot waits for a tick',
      got: told,
      rule: `within ${reach} times of handing over at once`,
      ok: looks.jobs.mean > 0 && looks.jobs.mean <= reach * atOnce.jobs.mean,
    }),
    claim('launches and cold starts', {
      paper: 'no more than at once',
      got: `${looks.launches} and ${looks.coldStarts} by looks, ${atOnce.launches} and ${atOnce.coldStarts} at once`,
      rule: 'as many launches, and no more than a tenth more cold starts',
      ok: looks.launches <= atOnce.launches && looks.coldStarts <= 1.1 * atOnce.coldStarts,
    }),
    claim('mean time of a job by ticks alone', {
      paper: 'what looking between ticks is for',
      got: `${intervalText(ticks.jobs)} s`,
      rule: 'longer than by looks',
      kind: 'side',
      ok: ticks.jobs.mean > looks.jobs.mean,
    }),
  ];
}

async function run({ seeds, traces }: ExperimentInput): Promise<Findings> {
  const found = new Map<Way, Figures[]>(wayNames.map((way) => [way, []]));
  for (const seed of seeds) {
    const rng = createRng(`slot-hand-over/${seed}`);
    const { jobs } = traceScenario(traces.get('tpch') ?? [], {
      format: 'tpch',
      policy: 'none',
      host: 'hadoop',
      slots,
      load,
      rng,
    });
    for (const way of wayNames) found.get(way)?.push(await replay(jobs, way, seed));
  }
  const rows = wayNames.map((way) => {
    const mean = (figure: Figure): number => intervalFor(found, way, figure).mean;
    return {
      handOver: way,
      slots,
      load,
      tasks: mean('tasks'),
      meanS: mean('meanS'),
      medianS: mean('medianS'),
      launches: mean('launches'),
      coldStarts: mean('coldStarts'),
    };
  });
  const plot: Plot = {
    name: 'job-time',
    kind: 'bars',
    title: 'Mean time of a query of TPC-H by how slots are handed over',
    xLabel: '',
    yLabel: 'seconds',
    series: [{ name: 'mean', points: rows.map(({ handOver, meanS }) => ({ x: handOver, y: meanS })) }],
  };
  return { rows, checks: checksOf(found), plots: [plot] };
}

/**
 * What it costs that a scheduler has to look whether attempts have ended, where they take a tenth of a second: the
 * history of TPC-H's queries, with slots handed over at once, as production does it, and with each tick alone.
 *
 * Source: none; the history is public.
 */
export const slotHandOver: Experiment = {
  name: 'slot-hand-over',
  title: 'short tasks: slots handed over at once, by looks, and by ticks',
  source: 'a check of its own, on a public trace',
  defaultSeeds: 10,
  traces: ['tpch'],
  run,
};
