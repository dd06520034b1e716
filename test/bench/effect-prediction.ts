import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { parseScenario, type ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';

/** A stage of the job as it ran where nothing was slow. */
export interface MeasuredStage {
  readonly name: string;
  readonly tasks: number;
  readonly workerMs: number;
}

/** What is foretold: the job on so many slots, of which one may be slower by a factor. */
interface Foretelling {
  readonly policy: PolicyName;
  readonly slots: number;
  /** 1: no worker is slow. */
  readonly factor: number;
}

/** Runs of the simulator that a prediction is the mean of. */
const draws = 5;

/**
 * Seconds that the simulator foretells a job, on a host like the embedded stack of `outrider run`: its tick and reports,
 * warm workers, cancels that are read with the orders. Tasks take what they took in the mean where nothing was slow,
 * with all slots busy on few cores; that others are faster while one worker stands still is not modelled.
 */
export async function predictedSeconds(
  stages: readonly MeasuredStage[],
  { policy, slots, factor }: Foretelling,
): Promise<number> {
  const nodes: ScenarioInput['cluster']['nodes'] = [
    ...(factor === 1 ? [] : [{ count: 1, elastic: true, speed: 1 / factor }]),
    { count: factor === 1 ? slots : slots - 1, elastic: true },
  ];
  const scenario = parseScenario({
    cluster: {
      nodes,
      placement: 'in-order',
      choosesNodes: false,
      startMs: 20,
      queue: { eventAgeMs: 900_000 },
    },
    scheduler: { tickMs: 500, cancel: 'cooperative', claimLeaseMs: 900_000 },
    reports: { everyMs: 2_000, cadence: 'worker' },
    jobs: [
      {
        policy,
        stages: stages.map(({ name, tasks, workerMs }, place) => ({
          name,
          tasks,
          upstream: stages.slice(Math.max(0, place - 1), place).map((each) => each.name),
          workMs: workerMs / tasks,
        })),
      },
    ],
  });
  let sumMs = 0;
  for (let draw = 1; draw <= draws; draw++) {
    const { jobs } = await simulate(scenario, { seed: String(draw) });
    for (const { completedAtMs, arrivedAtMs } of jobs) sumMs += completedAtMs - arrivedAtMs;
  }
  return sumMs / draws / 1_000;
}
