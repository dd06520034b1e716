import * as z from 'zod';
import { parseInput } from '../contracts/invalid.ts';
import { checkHosts, checkZones, type ClusterScenario, clusterSchema } from './cluster-scenario.ts';
import { distributionSchema } from './distribution.ts';
import { checkStages, type JobScenario, jobsSchema } from './job-scenario.ts';
import { atLeastZero, probability, type Refuse } from './scenario-parts.ts';

const faultsSchema = z.strictObject({
  /** Attempts that fail at a random point of their work. */
  attemptFailure: probability.default(0),
  /** Launches that are accepted and never delivered. */
  lostLaunch: probability.default(0),
  /** Launches that are delivered twice. */
  doubleLaunch: probability.default(0),
  /** Attempts that die silently at a random point of their work. */
  lostAttempt: probability.default(0),
  /** Tasks whose first output is gone when it is first read. */
  lostOutput: probability.default(0),
  /** Crashes of whole nodes and how long until they are back. */
  crashes: z.strictObject({ everyMs: distributionSchema, repairMs: distributionSchema }).optional(),
  /** No fault begins after this time, so that liveness can be told. */
  untilMs: atLeastZero.optional(),
});

const reportsSchema = z.strictObject({
  everyMs: z.int().min(1).default(10_000),
  /**
   * `worker`: as production's workers do, at growing intervals up to the longest, and at once where progress is not as
   * it was foretold. `interval`, where nothing is said: each `everyMs`.
   */
  cadence: z.enum(['worker', 'interval']).exactOptional(),
  /** With `interval`, at least ten times in a task's expected duration, as Mantri has it: no worker knows that. */
  tenths: z.boolean().default(true),
  loss: probability.default(0),
  delayMs: distributionSchema.default(0),
});

const schedulerSchema = z.strictObject({
  /** Slots that jobs share, where nodes have more: Lambda starts environments beyond them where those it has are taken. */
  totalSlots: z.int().min(1).exactOptional(),
  tickMs: z.int().min(1).default(1_000),
  /** Tick also whenever an attempt ends: a scheduler that is told at once. */
  wakeOnEnd: z.boolean().default(false),
  /** Look for ends between ticks, as production does where attempts are short. */
  looks: z.boolean().default(true),
  /** Short attempts of a stage ride together, as in production. Without effect where it ticks on ends. */
  packs: z.boolean().default(true),
  /** How long after an attempt's end: ends that come together cost one tick. A large cluster needs a little. */
  wakeAfterMs: z.int().min(0).default(0),
  leaseMs: z.int().min(1).default(30_000),
  claimLeaseMs: z.int().min(1).default(60_000),
  /** The same on Fargate, where tasks take longer to start; where nothing is said, as long. */
  fargateClaimLeaseMs: z.int().min(1).exactOptional(),
  /** A scheduler serves a job for so long, then hands it to the next, which knows what records tell. Absent: to the end. */
  handOverMs: z.int().min(1).exactOptional(),
  /** Whether a cancelled attempt learns it with its next report, or stops at once. */
  cancel: z.enum(['cooperative', 'immediate']).default('cooperative'),
  /** How jobs share slots that are short: max-min fairly (where nothing is said, as in production), or first come. */
  sharing: z.enum(['fair', 'first-come']).exactOptional(),
});

/** A cluster, what goes wrong in it, and the jobs that it runs. Times in milliseconds, sizes in bytes. */
export const scenarioSchema = z
  .strictObject({
    name: z.string().default('scenario'),
    cluster: clusterSchema,
    scheduler: schedulerSchema.prefault({}),
    reports: reportsSchema.prefault({}),
    faults: faultsSchema.prefault({}),
    jobs: z.array(jobsSchema).min(1).max(200_000),
    /** A run with more events than this has gone astray. */
    maxEvents: z.int().min(1).default(50_000_000),
  })
  .superRefine((scenario, context) => {
    const refuse = (path: (string | number)[], message: string): void => {
      context.addIssue({ code: 'custom', path, message });
    };
    checkZones(scenario.cluster, refuse);
    checkHosts(scenario.cluster, refuse);
    checkKeepers(scenario, refuse);
    for (const [job, { stages }] of scenario.jobs.entries()) {
      checkStages(stages, (path, message) => {
        refuse(['jobs', job, 'stages', ...path], message);
      });
    }
  });

type Jobs = readonly JobScenario[];

function checkKeepers(
  { cluster, jobs }: { readonly cluster: ClusterScenario; readonly jobs: Jobs },
  refuse: Refuse,
): void {
  const isElsewhere = ({ worker, stages }: Jobs[number]): boolean =>
    stages.some((stage) => (stage.worker ?? worker).kind !== 'fargate');
  if (cluster.keepsOutputs === true && jobs.some(isElsewhere))
    refuse(['cluster', 'keepsOutputs'], 'must be left out where not all stages of all jobs are on Fargate');
}

export type Scenario = z.output<typeof scenarioSchema>;
export type ScenarioInput = z.input<typeof scenarioSchema>;

/** Reads a scenario from data; throws `InvalidInputError` with the path of the first wrong field. */
export const parseScenario = (data: unknown): Scenario => parseInput(scenarioSchema, data);

/** JSON Schema (draft 2020-12) of a scenario as people write it. */
export const scenarioJsonSchema = (): object =>
  z.toJSONSchema(scenarioSchema, { io: 'input', unrepresentable: 'any' });
