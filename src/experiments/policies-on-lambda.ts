import { type PolicyName, policyNames } from '../contracts/policy-names.ts';
import { mean } from '../lib/quantiles.ts';
import { createRng, type Rng } from '../lib/rng.ts';
import { metricsOf, type SimulationMetrics } from '../sim/metrics.ts';
import { parseScenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import { taskCount, type TraceJob } from '../traces/trace-job.ts';
import { claim } from './checks.ts';
import {
  type Check,
  type Experiment,
  type ExperimentInput,
  type Findings,
  intervalOf,
  intervalText,
  type Plot,
  type Row,
} from './experiment.ts';
import { type TraceName, traceFormatOf, traceNames } from './trace-names.ts';
import { shareBeyondLambda, traceScenario } from './trace-scenario.ts';

/** Environments, and the share of them that the jobs' work keeps busy: some tasks wait, and there is room for copies. */
const slots = 100;
const load = 0.7;
/**
 * Whole jobs are drawn until they have so many tasks or more. A job of more than three quarters of that would be all there is.
 */
const leastTasks = 1_000;
const largestJob = 0.75;

/** What knows more than reports tell, and what has nothing to mend. No bounds: luck and another order bring others before them. */
const references = ['perfect detector', 'no stragglers'] as const;
type Scheme = PolicyName | (typeof references)[number];
const schemes: readonly Scheme[] = [...policyNames, ...references];

/** `outrider` is to come so close to the perfect detector, at so much more slot time than without copies. */
const nearPerfect = 0.1;
const extraSlotTime = 0.05;

interface Sample {
  readonly jobs: readonly TraceJob[];
  readonly tasks: number;
  /** Jobs of the trace that were left out for their size. */
  readonly tooLarge: number;
  readonly all: number;
}

/**
 * Whole jobs of a trace, in its order: drawn one after the other, each as likely, up to the one with which they have `leastTasks`
 * tasks, which is kept: were what no longer fits passed over, or the last left out, samples would be of smaller jobs than the trace.
 *
 * Source: Wald's identity (where a draw's end depends on nothing that is still to be drawn, the mean number of tasks is the
 * mean number of jobs times that of a job's tasks).
 */
export function sampleJobs(jobs: readonly TraceJob[], leastTasks: number, rng: Rng): Sample {
  const fitting = jobs.filter((job) => taskCount(job) <= largestJob * leastTasks);
  const ranked = fitting.map((job) => ({ job, key: rng.next() })).sort((a, b) => a.key - b.key);
  const taken = new Set<TraceJob>();
  let tasks = 0;
  for (const { job } of ranked) {
    if (tasks >= leastTasks) break;
    taken.add(job);
    tasks += taskCount(job);
  }
  const tooLarge = jobs.length - fitting.length;
  return { jobs: fitting.filter((job) => taken.has(job)), tasks, tooLarge, all: jobs.length };
}

/** A scheme's run of one sample. */
async function runOf(
  name: TraceName,
  { jobs }: Sample,
  scheme: Scheme,
  seed: string,
): Promise<SimulationMetrics> {
  const isReference = scheme === 'perfect detector' || scheme === 'no stragglers';
  const scenario = traceScenario(jobs, {
    format: traceFormatOf(name),
    policy: isReference ? 'none' : scheme,
    slots,
    load,
    host: 'lambda',
    stragglers: scheme !== 'no stragglers',
    rng: createRng(`${name}/${seed}`),
  });
  return metricsOf(await simulate(parseScenario(scenario), { seed, perfect: scheme === 'perfect detector' }));
}

interface TraceRuns {
  readonly name: TraceName;
  readonly samples: readonly Sample[];
  /** Share of the samples' work in tasks that Lambda does not let end, which goes to Fargate, in percent. */
  readonly beyondLambdaPct: number;
  /** By scheme, a run of each seed. */
  readonly runs: ReadonlyMap<Scheme, readonly SimulationMetrics[]>;
}

async function replayTrace(name: TraceName, { seeds, traces }: ExperimentInput): Promise<TraceRuns> {
  const runs = new Map<Scheme, SimulationMetrics[]>(schemes.map((scheme) => [scheme, []]));
  const samples: Sample[] = [];
  for (const seed of seeds) {
    const sample = sampleJobs(traces.get(name) ?? [], leastTasks, createRng(`sample/${name}/${seed}`));
    samples.push(sample);
    for (const scheme of schemes) runs.get(scheme)?.push(await runOf(name, sample, scheme, seed));
  }
  const sampled = samples.flatMap(({ jobs }) => jobs);
  const beyondLambdaPct = Math.round(100 * shareBeyondLambda(sampled, traceFormatOf(name)));
  return { name, samples, beyondLambdaPct, runs };
}

type Figure = (metrics: SimulationMetrics) => number;
const meanS: Figure = ({ completionS }) => completionS.mean;
const p95S: Figure = ({ completionS }) => completionS.p95;
const slotS: Figure = ({ slotSeconds }) => slotSeconds;

/** By how much a figure of a scheme is above another's, in percent, seed by seed: all have met the same luck. */
const abovePct = ({ runs }: TraceRuns, scheme: Scheme, base: Scheme, figure: Figure): number[] =>
  (runs.get(scheme) ?? []).map((each, seed) => {
    const other = runs.get(base)?.[seed];
    return other === undefined ? 0 : (figure(each) / figure(other) - 1) * 100;
  });

function rowOf(trace: TraceRuns, scheme: Scheme): Row {
  const runs = trace.runs.get(scheme) ?? [];
  const text = (figure: Figure): string => intervalText(intervalOf(runs.map(figure)));
  const whole = (values: readonly number[]): number => Math.round(mean(values) ?? 0);
  return {
    trace: trace.name,
    runs: runs.length,
    jobs: whole(trace.samples.map(({ jobs }) => jobs.length)),
    ofJobs: trace.samples[0]?.all ?? 0,
    tooLarge: trace.samples[0]?.tooLarge ?? 0,
    tasks: whole(trace.samples.map(({ tasks }) => tasks)),
    beyondLambdaPct: trace.beyondLambdaPct,
    policy: scheme,
    meanS: text(meanS),
    p95S: text(p95S),
    slotS: whole(runs.map(slotS)),
    copies: whole(runs.map(({ copies }) => copies.started)),
    won: whole(runs.map(({ copies }) => copies.won)),
    dollars: Math.round((mean(runs.map(({ dollars }) => dollars)) ?? 0) * 1e4) / 1e4,
    timeOverPerfectPct: intervalText(intervalOf(abovePct(trace, scheme, 'perfect detector', meanS))),
    slotsOverNonePct: intervalText(intervalOf(abovePct(trace, scheme, 'none', slotS))),
  };
}

/** Why `outrider` may leave more than that to a perfect detector. */
const whyNot =
  'the perfect detector starts anew whatever will take longer than the mean, from its first moment, and so draws the luck of fast attempts besides, and begins on Fargate at once what will outlast Lambda, of which the progress of an attempt tells after minutes: it comes near to the same jobs without stragglers, or before them, where no detector of stragglers could; in jobs of one or two tasks there is nothing to compare with; and samples of whole jobs differ widely, by which the intervals are wide';

function checkOf(trace: TraceRuns): Check {
  const time = intervalOf(abovePct(trace, 'outrider', 'perfect detector', meanS));
  const slotTime = intervalOf(abovePct(trace, 'outrider', 'none', slotS));
  const gain = intervalOf(abovePct(trace, 'outrider', 'none', meanS));
  // Even at the worse end of what the seeds leave open, so that no other seed turns it.
  const ok = time.high <= nearPerfect * 100 && slotTime.high <= extraSlotTime * 100;
  const ideal = intervalOf(abovePct(trace, 'no stragglers', 'perfect detector', meanS));
  return claim(`${trace.name}: outrider beside the perfect detector`, {
    paper: 'not in the papers',
    got: `time ${intervalText(time)} % above (without stragglers ${intervalText(ideal)} %), slot time ${intervalText(slotTime)} % above none; time ${intervalText(gain)} % beside none`,
    rule: `time within ${nearPerfect * 100} %, slot time within ${extraSlotTime * 100} %, intervals and all${ok ? '' : `; ${whyNot}`}`,
    ok,
  });
}

/** `outrider` is to be no further behind the best single policy, in time and in its 95th percentile. */
const nearBest = 0.02;
/** Policies whose mean time is within so much of the best one's: their leanest says what slot time is enough. */
const goodEnough = 0.05;

const meanOf = ({ runs }: TraceRuns, policy: PolicyName, figure: Figure): number =>
  mean((runs.get(policy) ?? []).map(figure)) ?? Infinity;

/** Beside the verdict: policies that are close to each other change places with the seeds. */
function besideBest(trace: TraceRuns): Check {
  const single = policyNames.filter((name) => name !== 'outrider');
  // How far `outrider` is above the least of some policies, and whose that is.
  const beside = (policies: readonly PolicyName[], figure: Figure): { above: number; text: string } => {
    const means = policies.map((policy) => meanOf(trace, policy, figure));
    const least = Math.min(...means);
    const above = meanOf(trace, 'outrider', figure) / least - 1;
    const whose = policies[means.indexOf(least)] ?? '';
    return { above, text: `${above < 0 ? '' : '+'}${(above * 100).toFixed(1)} % (${whose})` };
  };
  const leastS = Math.min(...single.map((policy) => meanOf(trace, policy, meanS)));
  const good = single.filter((policy) => meanOf(trace, policy, meanS) <= (1 + goodEnough) * leastS);
  const time = beside(single, meanS);
  const tail = beside(single, p95S);
  const slotTime = beside(good, slotS);
  return claim(`${trace.name}: outrider beside the best single policy`, {
    paper: 'not in the papers',
    got: `mean time ${time.text}, 95th percentile ${tail.text}, slot time ${slotTime.text}`,
    rule: `time and 95th percentile at most ${nearBest * 100} % above the least of all, slot time at most the leanest's of those within ${goodEnough * 100} % of the least mean time`,
    ok: time.above <= nearBest && tail.above <= nearBest && slotTime.above <= 0,
    kind: 'side',
  });
}

async function run(input: ExperimentInput): Promise<Findings> {
  const rows: Row[] = [];
  const checks: Check[] = [];
  const series = schemes.map((name) => ({ name, points: [] as { x: string; y: number }[] }));
  for (const name of traceNames) {
    const trace = await replayTrace(name, input);
    for (const scheme of schemes) rows.push(rowOf(trace, scheme));
    checks.push(checkOf(trace), besideBest(trace));
    for (const each of series)
      each.points.push({ x: name, y: intervalOf(abovePct(trace, each.name, 'none', meanS)).mean });
  }
  const plot: Plot = {
    name: 'time',
    kind: 'bars',
    title: 'Mean time of a job beside no copies, on Lambda',
    xLabel: '',
    yLabel: '% of none, above 0 is longer',
    series,
  };
  return { rows, checks, plots: [plot] };
}

/**
 * Jobs of every public trace on a simulated Lambda, under every policy, beside two references: a perfect detector of
 * stragglers, and the same jobs without any. Whole jobs are sampled, another sample for each seed; slots are shared
 * fairly; each stage gets through its input by a shape of its own; dollars are those of the one table of prices, for
 * workers, records, storage and invocations. Lambda ends what takes longer than 15 minutes, and Fargate is beside it, under every
 * scheme: each row says how much of the work lies in tasks that are longer. They go to Fargate as in production, once they have
 * run out of time or their stage foretells it, and begin anew there: of the operators of traces nobody knows whether what they have
 * done can be handed on.
 *
 * Source: none; the traces are public.
 */
export const policiesOnLambda: Experiment = {
  name: 'policies-on-lambda',
  title: 'every policy, a perfect detector and a world without stragglers on every public trace, on Lambda',
  source: 'a check of its own, on public traces',
  defaultSeeds: 10,
  traces: traceNames,
  host: 'lambda',
  run,
};
