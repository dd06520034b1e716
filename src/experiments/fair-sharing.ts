import { mean, median } from '../lib/quantiles.ts';
import { createRng } from '../lib/rng.ts';
import { completionMsOf, slotTimeOf } from '../sim/metrics.ts';
import { parseScenario, type ScenarioInput } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import { taskCount, type TraceJob } from '../traces/trace-job.ts';
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

/** Jobs of the trace, from its beginning, of no more tasks than this: a larger one is most of the work by itself. */
const jobCount = 100;
const mostTasks = 2_000;
const slots = 100;
const load = 0.7;
const sharings = ['first-come', 'fair'] as const;
type Sharing = (typeof sharings)[number];

/** What one way of sharing made of the jobs of one seed. */
interface Replay {
  /** Seconds from arrival to the last result, by job. */
  readonly jobS: readonly number[];
  /** Of all attempts together. */
  readonly slotS: number;
}

async function replay(scenario: ScenarioInput, sharing: Sharing, seed: string): Promise<Replay> {
  // Slots are handed over as in production: free ones are found by looking, and nobody is woken.
  const scheduler = { ...scenario.scheduler, wakeOnEnd: false, sharing };
  const { jobs } = await simulate(parseScenario({ ...scenario, scheduler }), { seed });
  return {
    jobS: jobs.map((job) => completionMsOf(job) / 1_000),
    slotS: jobs.reduce((sum, job) => sum + slotTimeOf(job).usedMs, 0) / 1_000,
  };
}

type Figure = 'meanS' | 'medianS' | 'slotS';
type Figures = Readonly<Record<Figure, number>>;

const figuresOf = ({ jobS, slotS }: Replay): Figures => ({
  meanS: mean(jobS) ?? 0,
  medianS: median(jobS) ?? 0,
  slotS,
});

function checksOf(found: ReadonlyMap<Sharing, readonly Figures[]>): Check[] {
  const of = (sharing: Sharing, figure: Figure) => intervalFor(found, sharing, figure);
  const text = (figure: Figure): string =>
    `${intervalText(of('first-come', figure))} s first come, first served, ${intervalText(of('fair', figure))} s fair`;
  const [firstS, fairS] = [of('first-come', 'slotS').mean, of('fair', 'slotS').mean];
  return [
    claim('mean time of a job', {
      paper: 'small jobs no longer wait for large ones',
      got: text('meanS'),
      rule: 'half as long or less where slots are shared fairly',
      ok: of('fair', 'meanS').mean <= of('first-come', 'meanS').mean / 2,
    }),
    claim('median time of a job', {
      paper: 'not in the paper',
      kind: 'side',
      got: text('medianS'),
      rule: 'shorter where slots are shared fairly',
      ok: of('fair', 'medianS').mean < of('first-come', 'medianS').mean,
    }),
    claim('slot-seconds', {
      paper: 'the same work',
      got: text('slotS'),
      rule: 'within 1 % of each other, and some',
      ok: firstS > 0 && Math.abs(fairS / firstS - 1) <= 0.01,
    }),
  ];
}

/** The jobs of the trace that are replayed. */
export const jobsToShare = (jobs: readonly TraceJob[]): readonly TraceJob[] =>
  jobs.filter((job) => taskCount(job) <= mostTasks).slice(0, jobCount);

async function run({ seeds, traces }: ExperimentInput): Promise<Findings> {
  const jobs = jobsToShare(traces.get('alibaba') ?? []);
  const found = new Map<Sharing, Figures[]>(sharings.map((sharing) => [sharing, []]));
  for (const seed of seeds) {
    const rng = createRng(`fair-sharing/${seed}`);
    const scenario = traceScenario(jobs, {
      format: 'alibaba',
      policy: 'none',
      host: 'hadoop',
      slots,
      load,
      rng,
    });
    for (const sharing of sharings)
      found.get(sharing)?.push(figuresOf(await replay(scenario, sharing, seed)));
  }
  const rows = sharings.map((sharing) => {
    const mean = (figure: Figure): number => intervalFor(found, sharing, figure).mean;
    const [meanS, medianS, slotS] = [mean('meanS'), mean('medianS'), mean('slotS')];
    return { sharing, jobs: jobs.length, slots, load, meanS, medianS, slotS };
  });
  const plot: Plot = {
    name: 'job-time',
    kind: 'bars',
    title: 'Time of a job by how slots are shared, Alibaba 2018',
    xLabel: '',
    yLabel: 'seconds',
    series: [
      { name: 'mean', points: rows.map(({ sharing, meanS }) => ({ x: sharing, y: meanS })) },
      { name: 'median', points: rows.map(({ sharing, medianS }) => ({ x: sharing, y: medianS })) },
    ],
  };
  return { rows, checks: checksOf(found), plots: [plot] };
}

/**
 * Jobs that compete for slots, which are shared max-min fairly or go to whoever came first: no policy makes copies, so
 * that sharing alone makes the difference.
 *
 * Source: the fair scheduler of Hadoop (Zaharia et al., Job Scheduling for Multi-User MapReduce Clusters,
 * UCB/EECS-2009-55), on a public trace.
 */
export const fairSharing: Experiment = {
  name: 'fair-sharing',
  title: 'slots shared fairly, and first come, first served',
  source: "as Hadoop's fair scheduler, on a public trace",
  defaultSeeds: 10,
  traces: ['alibaba'],
  host: 'hadoop',
  run,
};
