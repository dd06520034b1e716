import type { StoredForecast } from '../contracts/forecast.ts';
import type { PolicyConfigInput } from '../contracts/policy-config.ts';
import type { AttemptRecord } from '../contracts/records.ts';
import { epochMs } from '../contracts/units.ts';
import { completionTable } from '../core/forecast/completion-table.ts';
import { allocationGrid, indicatorOf } from '../core/forecast/forecast-table.ts';
import { learnProfile } from '../core/forecast/learn-profile.ts';
import type { ProgressIndicatorName } from '../core/forecast/progress-indicators.ts';
import { RunSimulator } from '../core/forecast/run-simulator.ts';
import { oracleSlots, shareAboveOracle } from '../core/policy/jockey/oracle.ts';
import { createRng, type Rng } from '../lib/rng.ts';
import type { JobOutcome } from '../sim/outcome.ts';
import { parseScenario, type ScenarioInput } from '../sim/scenario.ts';
import { buildJobs, planOf } from '../sim/sim-job.ts';
import { simulate } from '../sim/simulate.ts';
import {
  drawTimes,
  jockeyJob,
  type JockeyJobName,
  type SyntheticStage,
} from '../traces/generators/jockey-jobs.ts';
import { spansOf } from './stage-spans.ts';

/** Slots of the cluster, and the most that a job asks to be its own: the paper's 100 tokens. */
export const clusterSlots = 100;
const minuteMs = 60_000;

type JobInput = ScenarioInput['jobs'][number];

/** How a run differs from others of its job. */
export interface Noise {
  /** All work is so many times as much. */
  readonly work: number;
  /** Median and 90th percentile of the time that an attempt takes to start, in ms. */
  readonly queue: { readonly medianMs: number; readonly p90Ms: number };
}

const z90 = 1.2815515655446004;
/** Job F's training run (Table 3). */
export const trainingNoise: Noise = { work: 1, queue: { medianMs: 5_800, p90Ms: 8_400 } };
/**
 * By how much runs of the paper's middle job vary (Table 1): those on inputs of one size, as its experiments run a job again
 * and again, and all of them, whose inputs grow and shrink. Standard deviation of the logarithm of their work.
 */
export const workSigmas = { alike: 0.2, any: 0.28 } as const;
export type InputNoise = keyof typeof workSigmas;
/** The runs of Table 3 had up to 1.85 times the work. */
const [leastWork, mostWork] = [0.5, 2];

/** Noise of a judged run: more work or less, up to twice as much, and the longer queueing of Table 3's later runs. */
export function drawNoise(rng: Rng, inputs: InputNoise = 'any'): Noise {
  const normal = Math.sqrt(-2 * Math.log(1 - rng.next())) * Math.cos(2 * Math.PI * rng.next());
  const work = Math.min(mostWork, Math.max(leastWork, Math.exp(workSigmas[inputs] * normal)));
  return { work, queue: { medianMs: 6_850, p90Ms: 11_500 } };
}

/** A job of the paper, its deadline, and what was learned of it. */
export interface JockeyJob {
  readonly name: JockeyJobName;
  readonly stages: readonly SyntheticStage[];
  readonly deadlineMs: number;
  readonly forecast: StoredForecast;
}

/**
 * Stages that each waits for. Production opens a stage when all that it reads have ended; of the paper's only a few wait so
 * (Table 2, "barrier stages"), and in the others a task begins when its own inputs have ended. So a stage waits here for
 * all that lies before its nearest barriers, itself included, and stages between barriers are open at once, earlier
 * ones first. A task behind a straggler may so begin before it.
 */
export function gatesOf(stages: readonly SyntheticStage[]): readonly (readonly number[])[] {
  const before: ReadonlySet<number>[] = [];
  const gates: ReadonlySet<number>[] = [];
  for (const { inputs } of stages) {
    const of = (sets: readonly ReadonlySet<number>[]): Set<number> =>
      new Set(inputs.flatMap(({ stage }) => [...(sets[stage] ?? [])]));
    const all = of(before);
    for (const { stage } of inputs) all.add(stage);
    before.push(all);
    const passed = of(gates);
    gates.push(inputs.some(({ isBarrier }) => isBarrier) ? all : passed);
  }
  return gates.map((gate) => [...gate].toSorted((a, b) => a - b));
}

/** The job's stages as a scenario has them, their times drawn anew. */
export function stagesOf(stages: readonly SyntheticStage[], work: number, rng: Rng): JobInput['stages'] {
  const gates = gatesOf(stages);
  return stages.map((stage, index) => ({
    name: `s${index}`,
    tasks: stage.tasks,
    upstream: (gates[index] ?? []).map((gate) => `s${gate}`),
    workMs: drawTimes(stage, rng).map((ms) => Math.max(1, Math.round(ms * work))),
  }));
}

/** A cluster on which slots are handed over at once, as the paper's tokens. */
export const clusterOf = (
  jobs: JobInput[],
  { queue }: Pick<Noise, 'queue'>,
  slots: number = clusterSlots,
): ScenarioInput => ({
  name: 'jockey',
  cluster: {
    nodes: [{ count: slots }],
    placement: 'in-order',
    startMs: {
      kind: 'lognormal',
      median: queue.medianMs,
      sigma: Math.log(queue.p90Ms / queue.medianMs) / z90,
    },
  },
  scheduler: { tickMs: 10_000, wakeOnEnd: true, wakeAfterMs: 200 },
  reports: { everyMs: 60_000, tenths: false },
  jobs,
});

/** What the records of a job's attempts would hold. */
const recordsOf = ({ attempts }: JobOutcome): readonly AttemptRecord[] =>
  attempts.map((each): AttemptRecord => ({
    attemptId: each.attemptId,
    state: 'done',
    order: 'continue',
    launchedAt: epochMs(each.takenAtMs),
    ...(each.claimedAtMs === undefined ? {} : { claimedAt: epochMs(each.claimedAtMs) }),
    endedAt: epochMs(each.leftAtMs),
    beat: 1,
  }));

/** Fewest slots that a training run has: the paper's had as many as it was guaranteed. */
const trainingSlots = 50;

/**
 * What is learned of a job from `runs` runs of its own, none of which is judged, by production's scheduler and its rules
 * for learning.
 */
export async function train(
  stages: readonly SyntheticStage[],
  { name, runs, rng, noisy }: { name: string; runs: number; rng: Rng; noisy: boolean },
): Promise<StoredForecast> {
  let learned: StoredForecast | undefined;
  for (let run = 0; run < runs; run++) {
    const own = rng.fork(`run ${run}`);
    const noise = noisy && run > 0 ? drawNoise(own.fork('noise')) : trainingNoise;
    const job: JobInput = { name, stages: stagesOf(stages, noise.work, own.fork('times')) };
    const scenario = parseScenario(clusterOf([job], noise, trainingSlots));
    const seed = String(own.next());
    const { jobs } = await simulate(scenario, { seed });
    const [built] = buildJobs(scenario, seed, createRng('plan'));
    const [outcome] = jobs;
    if (built === undefined || outcome === undefined) continue;
    const finished = { jobId: outcome.jobId, plan: planOf(built), attempts: recordsOf(outcome) };
    learned = learnProfile(finished, learned) ?? learned;
  }
  if (learned === undefined) throw new RangeError('a job is learned of from one run at least');
  return learned;
}

/** Simulated runs of each allocation of C(p, a). */
const tableRuns = 20;

/** The forecast with C(p, a) by an indicator. */
export function withTable(
  forecast: StoredForecast,
  indicator: ProgressIndicatorName,
  rng: Rng,
): StoredForecast {
  const { profile } = forecast;
  const tasks = profile.stages.reduce((sum, stage) => sum + stage.tasks, 0);
  const slots = [...allocationGrid(clusterSlots)];
  const basis = {
    indicator,
    basisSlots: trainingSlots,
    ...(indicator === 'minstage' ? { spans: spansOf(profile, trainingSlots, rng) } : {}),
    ...(indicator === 'minstage-inf' ? { unlimitedSpans: spansOf(profile, tasks, rng) } : {}),
  };
  const table = completionTable(profile, {
    indicator: indicatorOf(profile, basis),
    slots,
    runs: tableRuns,
    rng,
  });
  return { ...forecast, table: { ...basis, ofRuns: forecast.runs, ...table, slots } };
}

/** What one judged run came to. */
export interface JudgedRun {
  readonly job: JockeyJobName;
  readonly met: boolean;
  /** T / d − 1, in per cent; negative is early. */
  readonly latency: number;
  /**
   * Share of what it asked for above the oracle's, in per cent: of the time that its attempts hold slots, as they do here
   * while they start, and of their run time alone. The paper's T is run time (Table 3 tells queueing apart). Whether
   * tasks that wait to start hold tokens it does not say; did they, with waits as job F's, 35 % would be above the
   * oracle without a slot to spare, and the paper has 25 %.
   */
  readonly above: number;
  readonly aboveOfRunTime: number;
  readonly firstSlots: number;
  readonly medianSlots: number;
  readonly mostSlots: number;
  /** Mean slots asked for before and after its deadline was changed; the same where it was not. */
  readonly before: number;
  readonly after: number;
}

/** Slots asked for over time, as a mean or a quantile by time. */
function overTime(
  { asked }: Pick<JobOutcome, 'asked'>,
  fromMs: number,
  toMs: number,
): { readonly mean: number; readonly median: number } {
  const spans = asked.map(({ atMs, slots }, place) => ({
    slots,
    ms: Math.max(0, Math.min(toMs, asked[place + 1]?.atMs ?? toMs) - Math.max(fromMs, atMs)),
  }));
  const all = spans.reduce((sum, { ms }) => sum + ms, 0);
  const mean = spans.reduce((sum, { slots, ms }) => sum + slots * ms, 0) / Math.max(1, all);
  let passed = 0;
  const middle = spans
    .toSorted((a, b) => a.slots - b.slots)
    .find(({ ms }) => {
      passed += ms;
      return passed >= all / 2;
    });
  return { mean, median: middle?.slots ?? 0 };
}

/**
 * The paper's times are the same under each of its deadlines, of 20 to 140 minutes; production scales them for those below
 * an hour, which is taken back here.
 */
function paperTimes(setting: Setting, deadlineMs: number): Setting {
  if (setting.preset !== 'paper') return {};
  const scale = Math.max(1, (60 * minuteMs) / deadlineMs);
  const { periodMs = minuteMs, deadZoneMs = 3 * minuteMs } = setting;
  return { periodMs: Math.round(periodMs * scale), deadZoneMs: Math.round(deadZoneMs * scale) };
}

type Setting = NonNullable<PolicyConfigInput['jockey']>;

/** One run of a job under a setting of its control, by itself on slots of its own alone. */
export async function judge(
  job: JockeyJob,
  setting: Setting,
  options: { readonly rng: Rng; readonly noise: Noise; readonly change?: { atMs: number; factor: number } },
): Promise<JudgedRun> {
  const { rng, noise, change } = options;
  const input: JobInput = {
    name: job.forecast.name,
    deadlineMs: job.deadlineMs,
    ...(change === undefined
      ? {}
      : { deadlineChanges: [{ atMs: change.atMs, deadlineMs: Math.round(job.deadlineMs * change.factor) }] }),
    policyConfig: {
      jockey: {
        ...{ spareSlots: false, admits: false, mostSlots: clusterSlots },
        ...{ ...setting, ...paperTimes(setting, job.deadlineMs) },
      },
    },
    stages: stagesOf(job.stages, noise.work, rng.fork('times')),
  };
  const { jobs } = await simulate(parseScenario(clusterOf([input], noise)), {
    seed: String(rng.next()),
    forecasts: [job.forecast],
  });
  const [outcome] = jobs;
  if (outcome === undefined) throw new RangeError('a scenario of one job has one outcome');
  const { asked, completedAtMs, deadlineMs = job.deadlineMs, attempts } = outcome;
  const aboveOf = (workMs: number): number =>
    shareAboveOracle(asked, oracleSlots(workMs, deadlineMs), completedAtMs) * 100;
  const changedMs = change?.atMs ?? 0;
  return {
    job: job.name,
    met: completedAtMs <= deadlineMs,
    latency: (completedAtMs / deadlineMs - 1) * 100,
    above: aboveOf(attempts.reduce((sum, { takenAtMs, leftAtMs }) => sum + leftAtMs - takenAtMs, 0)),
    aboveOfRunTime: aboveOf(
      attempts.reduce((sum, { claimedAtMs, leftAtMs }) => sum + leftAtMs - (claimedAtMs ?? leftAtMs), 0),
    ),
    firstSlots: asked[0]?.slots ?? 0,
    medianSlots: overTime(outcome, 0, completedAtMs).median,
    mostSlots: Math.max(0, ...asked.map(({ slots }) => slots)),
    before: overTime(outcome, 0, change === undefined ? completedAtMs : changedMs).mean,
    after: overTime(outcome, changedMs, completedAtMs).mean,
  };
}

/** Deadlines of jobs, in minutes: an hour or twice as long in the paper. */
const deadlineMinutes = [30, 45, 60, 90, 120, 180, 240, 360];
/** With twice its work, on all slots, a job takes at most this share of its deadline: any other could not be met. */
const tightness = 0.8;

/** The shortest deadline that the job can meet with up to twice its work. */
export function deadlineFor({ profile }: StoredForecast, rng: Rng): number {
  const simulator = new RunSimulator(profile);
  const longest = Math.max(...Array.from({ length: 5 }, () => simulator.run(clusterSlots, rng)));
  const minutes = deadlineMinutes.find((each) => mostWork * longest <= tightness * each * minuteMs) ?? 480;
  return minutes * minuteMs;
}

/** A job of the paper of one seed: its stages, learned from one run, and its deadline. */
export async function prepare(name: JockeyJobName, rng: Rng, runs = 1): Promise<JockeyJob> {
  const stages = jockeyJob(name, rng.fork('job'));
  const jobName = `jockey-${name.toLowerCase()}`;
  const learned = await train(stages, { name: jobName, runs, rng: rng.fork('training'), noisy: true });
  const forecast = withTable(learned, 'totalworkWithQ', rng.fork('table'));
  return { name, stages, forecast, deadlineMs: deadlineFor(learned, rng.fork('deadline')) };
}
