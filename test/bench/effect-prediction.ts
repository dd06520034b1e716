import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { localHost } from '../../src/sim/host-profiles.ts';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { parseScenario } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';

/** A stage of the job as it ran where nothing was slow, in the order in which they ran. */
export interface MeasuredStage {
  readonly name: string;
  readonly tasks: number;
  readonly workerMs: number;
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
}

/** Runs of the simulator that a prediction is the mean of. */
const draws = 5;
/** Corrections of what tasks take; each leaves a small part of the error of the one before. */
const fits = 6;

/**
 * Foretells the job on the host profile of the embedded stack. What its tasks take is fitted to one thing alone: that
 * the simulated workers of each stage take, where nothing is slow and nothing is copied, what the real ones took then.
 */
export async function predictor(
  measured: readonly MeasuredStage[],
  machine: Machine,
): Promise<(what: Foretelling) => Promise<Foretold>> {
  let stages = measured.map(({ name, tasks, workerMs }): Stage => ({
    name,
    tasks,
    workMs: (workerMs / tasks) * Math.min(1, machine.cores / machine.slots),
  }));
  for (let fit = 0; fit < fits; fit++) {
    const jobs = await runsOf(stages, machine, { policy: 'none', factor: 1 });
    stages = stages.map((stage, place) => {
      const ranMs = jobs.reduce((sum, job) => sum + workerMsOf(job, place), 0) / jobs.length;
      return { ...stage, workMs: stage.workMs * ((measured[place]?.workerMs ?? 0) / ranMs) };
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

/** What workers took from their claims on, as a run's report has it; of one stage, or of all. */
function workerMsOf({ attempts }: JobOutcome, stage?: number): number {
  let sumMs = 0;
  for (const { stage: own, claimedAtMs, leftAtMs } of attempts)
    if (claimedAtMs !== undefined && (stage === undefined || stage === own)) sumMs += leftAtMs - claimedAtMs;
  return sumMs;
}

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
