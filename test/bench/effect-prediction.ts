import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { mean } from '../../src/lib/quantiles.ts';
import { localHost } from '../../src/sim/host-profiles.ts';
import type { AttemptOutcome, JobOutcome } from '../../src/sim/outcome.ts';
import { parseScenario } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';

/** A stage of the job as it ran where nothing was slow, in the order in which they ran. */
export interface MeasuredStage {
  readonly name: string;
  readonly tasks: number;
  /** What workers took: in the mean of the first tasks of each of them, whose code is not compiled still, and of later ones. */
  readonly firstMs: number;
  readonly laterMs: number;
}

/** The machine that the job ran on. */
export interface Machine {
  readonly slots: number;
  readonly cores: number;
}

/** What is foretold: the job under a policy, with one worker slower by a factor; 1: none is. */
export interface Foretelling {
  readonly policy: PolicyName;
  readonly factor: number;
}

/** What the simulator foretells, from the first stage's opening to the last one's end; in the mean of its runs. */
export interface Foretold {
  readonly seconds: number;
  readonly workerSeconds: number;
}

/** A stage of the simulated job: what each task takes that has a core to itself. */
interface Stage {
  readonly name: string;
  readonly tasks: number;
  readonly workMs: number;
  /** What a worker's first one takes besides. */
  readonly firstWorkMs: number;
}

/** Runs of the simulator that a prediction is the mean of. */
const draws = 5;
/** Corrections of what tasks take; each leaves a small part of the error of the one before. */
const fits = 6;

/**
 * Foretells the job on the host profile of the embedded stack. What its tasks take is fitted to two things alone: that
 * in each stage the first tasks of the simulated workers, and their later ones, take, where nothing is slow and nothing
 * is copied, what those of the real ones took then.
 */
export async function predictor(
  measured: readonly MeasuredStage[],
  machine: Machine,
): Promise<(what: Foretelling) => Promise<Foretold>> {
  const share = Math.min(1, machine.cores / machine.slots);
  let stages = measured.map(({ name, tasks, firstMs, laterMs }): Stage => ({
    ...{ name, tasks },
    workMs: laterMs * share,
    firstWorkMs: Math.max(0, firstMs - laterMs) * share,
  }));
  for (let fit = 0; fit < fits; fit++) {
    const jobs = await runsOf(stages, machine, { policy: 'none', factor: 1 });
    stages = stages.map((stage, place) => {
      const ran = meanTimes(jobs.map((job) => takenIn(job).filter((each) => each.stage === place)));
      const { firstMs = 0, laterMs = 0 } = measured[place] ?? {};
      const workMs = stage.workMs * (laterMs / ran.laterMs);
      const wholeMs = (stage.workMs + stage.firstWorkMs) * (firstMs / ran.firstMs);
      return { ...stage, workMs, firstWorkMs: Math.max(0, wholeMs - workMs) };
    });
  }
  return async (what) => {
    const jobs = await runsOf(stages, machine, what);
    const meanOf = (of: (job: JobOutcome) => number): number =>
      jobs.reduce((sum, job) => sum + of(job), 0) / jobs.length / 1_000;
    return {
      seconds: meanOf(({ completedAtMs, arrivedAtMs }) => completedAtMs - arrivedAtMs),
      workerSeconds: meanOf((job) => workerMsOf(job)),
    };
  };
}

/** An attempt of one stage as its worker took it. */
export interface Taken {
  readonly node: string;
  readonly claimedAt: number;
  readonly ms: number;
}

/** What workers' first tasks of a stage took, and their later ones, in the mean of runs; where none is a later one, as the first. */
export function meanTimes(runs: readonly (readonly Taken[])[]): Pick<MeasuredStage, 'firstMs' | 'laterMs'> {
  const first: number[] = [];
  const later: number[] = [];
  for (const attempts of runs) {
    const known = new Set<string>();
    for (const { node, ms } of attempts.toSorted((a, b) => a.claimedAt - b.claimedAt)) {
      (known.has(node) ? later : first).push(ms);
      known.add(node);
    }
  }
  const firstMs = mean(first) ?? NaN;
  return { firstMs, laterMs: mean(later) ?? firstMs };
}

/** What the workers of a simulated job took, each from its claim on, as a run's report has it. */
const takenIn = ({ attempts }: JobOutcome): readonly (Taken & Pick<AttemptOutcome, 'stage'>)[] =>
  attempts.flatMap(({ stage, node, claimedAtMs, leftAtMs }) =>
    claimedAtMs === undefined ? [] : [{ stage, node, claimedAt: claimedAtMs, ms: leftAtMs - claimedAtMs }],
  );

const workerMsOf = (job: JobOutcome): number => takenIn(job).reduce((sum, { ms }) => sum + ms, 0);

async function runsOf(
  stages: readonly Stage[],
  { slots, cores }: Machine,
  { policy, factor }: Foretelling,
): Promise<readonly JobOutcome[]> {
  // What is written is part of what a task took.
  const { cluster, scheduler, reports } = localHost(slots, cores);
  // The worker that takes work first is the slow one.
  const slow = factor === 1 ? [] : [{ count: 1, elastic: true, speed: 1 / factor }];
  const nodes = [...slow, ...cluster.nodes];
  const scenario = parseScenario({
    ...{ scheduler, reports, cluster: { ...cluster, nodes } },
    jobs: [
      {
        policy,
        stages: stages.map((stage, place) => ({
          ...stage,
          upstream: stages.slice(Math.max(0, place - 1), place).map(({ name }) => name),
        })),
      },
    ],
  });
  const jobs: JobOutcome[] = [];
  for (let draw = 1; draw <= draws; draw++)
    jobs.push(...(await simulate(scenario, { seed: String(draw) })).jobs);
  return jobs;
}
