import * as z from 'zod';
import { remainingStatistics } from './forecast.ts';

const fraction = z.number().min(0).max(1);
const factor = z.number().positive().max(1_000);
const ms = z
  .number()
  .min(0)
  .max(7 * 24 * 3_600_000);

/** LATE §4 and §5.4. Thresholds are percentiles as fractions; "below" is strict. */
const late = z.strictObject({
  /** Most copies running at once, as a fraction of the cluster's slots; at least one is always allowed. */
  speculativeCap: fraction.default(0.1),
  slowNodeThreshold: fraction.default(0.25),
  slowTaskThreshold: fraction.default(0.25),
  minAgeMs: ms.default(60_000),
  /** Whether nothing is copied while tasks wait for slots; `false` as in Mantri §6.1, a copy then goes before them. */
  waitForStarts: z.boolean().default(true),
  estimator: z.enum(['progress-rate', 'phase-aware']).default('progress-rate'),
  /** Where phases of the score end, for the phase-aware estimator: thirds, as of a Hadoop reduce. */
  phaseEnds: z
    .array(fraction)
    .min(1)
    .max(16)
    .default([1 / 3, 2 / 3, 1]),
});

/** Mantri §5.1 and §5.5. */
const mantri = z.strictObject({
  /** Δ is the least of this and a tenth of a task's lifetime, but never below the report interval. */
  deltaMs: ms.default(10_000),
  lifetimeShare: fraction.default(0.1),
  /** α: copies kept when pruning. */
  keptCopies: z.int().min(1).max(3).default(2),
  /** γ: restarts of one task. */
  restartsPerTask: z.int().min(0).max(100).default(3),
  /** δ: least probability that a duplicate saves slot time, while tasks wait. */
  duplicateProbability: fraction.default(0.25),
  /** ρ: least gain of a duplicate in Δ, when no task waits. */
  gainFactor: z.number().min(0).max(1_000).default(3),
  /** Which rule is asked first where both apply: as printed, or duplicates where queueing is long. */
  prefer: z.enum(['restart', 'duplicate']).default('restart'),
  /** Reports over which t_rem is averaged. */
  reportWindow: z.int().min(1).max(16).default(3),
  /** Nodes this much slower than the stage are declined. */
  slowNodeFactor: factor.default(2),
  /** §5.5: whether copies go to the zone where they end first, and t_new is of that, where zones can be chosen. */
  locationFactor: z.boolean().default(true),
  /** §5.3: whether outputs that are dear to make again are copied, and whether those beside lost ones are. */
  replicates: z.boolean().default(true),
  precomputes: z.boolean().default(true),
  /** t_rep: what a copy takes whatever its size, and bytes that are copied in a second. */
  copyLatencyMs: ms.default(100),
  copyBytesPerSecond: z.number().positive().default(100_000_000),
  /**
   * How likely an output is lost before anything was seen, and after how many outputs what was seen counts as much; in
   * place of what is known of the tier of storage, where more is known of the bucket.
   */
  lossPrior: z
    .strictObject({
      probability: z.number().gt(0).lt(1),
      outputs: z.number().positive().max(1e15),
    })
    .exactOptional(),
  /** Losses that begin a spell at a location, and how close they follow each other, and how long it goes on. */
  spellLosses: z.int().min(1).max(2).default(1),
  spellMs: ms.default(60_000),
  /** Time that copies in spells may take, as a share of the time that the job's tasks have taken. */
  precomputeShare: fraction.default(0.05),
});

const hadoop = z.strictObject({ scoreLag: fraction.default(0.2), minAgeMs: ms.default(60_000) });

/** Mantri §6 describes Dryad's rule without its digits: both numbers are ours to choose. */
const dryad = z.strictObject({
  doneFraction: fraction.default(0.75),
  durationPercentile: fraction.default(0.75),
});

/** The share of finished tasks is not given in the papers. */
const mapreduce = z.strictObject({ doneFraction: fraction.default(0.9) });

/** Spark 4: `spark.speculation.*`. */
const spark = z.strictObject({
  quantile: fraction.default(0.9),
  multiplier: factor.default(3),
  minTaskRuntimeMs: ms.default(100),
  processRateMultiplier: fraction.default(0.75),
  longRunTaskFactor: factor.default(2),
});

/** Hadoop 2: `mapreduce.job.speculative.*` and the simple exponential estimator. */
const hadoop2 = z.strictObject({
  minDoneFraction: fraction.default(0.05),
  minCopies: z.int().min(0).max(100_000).default(10),
  copiesOfAllTasks: fraction.default(0.01),
  copiesOfRunning: fraction.default(0.1),
  retryAfterSpeculateMs: ms.default(15_000),
  smoothingMs: z.number().positive().default(120_000),
  skippedReports: z.int().min(0).max(24).default(2),
});

/** Flink: `slow-task-detector.execution-time.*`. */
const flink = z.strictObject({
  baselineRatio: fraction.default(0.75),
  baselineMultiplier: factor.default(1.5),
  baselineLowerBoundMs: ms.default(60_000),
});

const cubed = z.strictObject({
  minTasks: z.int().min(1).max(10_000).default(10),
  doneFraction: fraction.default(0.5),
  slowdown: factor.default(3),
});

/** The combination: LATE's ranking by time left among what Mantri's rules find worth a copy. */
const outrider = z.strictObject({
  /** Slowness up to this factor over the stage's median rate is explained by the input: never copied. */
  explainedFactor: factor.default(1.2),
  /** Samples of the stage's rate, finished or running, before anything is copied. */
  minSamples: z.int().min(1).max(1_000).default(3),
  /** Least time that a copy saves, as a share of what it takes. */
  leastGain: fraction.default(0.1),
  /** Least time that a copy saves for each unit of slot time that it takes in addition, with slots to spare. */
  costShare: factor.default(0.2),
  /** Nodes this much slower than the stage, now or on the whole, are declined. */
  slowNodeFactor: factor.default(2),
  /** Most copies running at once, as a fraction of the cluster's slots, while tasks wait. */
  contendedCap: fraction.default(0.2),
  /** Most copies running at once otherwise. */
  spareCap: fraction.default(1),
});

/** Dolly §3 and §5: β, τ, ε and p. `outrider` clones phases of fewer tasks than its `minSamples` by them. */
const dolly = z.strictObject({
  /** ε: accepted risk that a phase straggles. */
  straggleRisk: z.number().gt(0).lt(1).default(0.05),
  /** β: share of all slots that clones may take. */
  budgetShare: fraction.default(0.05),
  /** τ: share of all slots in use beyond which nothing is cloned. */
  utilizationCeiling: fraction.default(0.8),
  /** Whether originals are charged too, as printed, or the additional copies alone. */
  charge: z.enum(['all-copies', 'extra-copies']).default('all-copies'),
  /**
   * What is done where the budget does not suffice: no clones for the phase, fewer clones of each task, clones for as
   * many tasks as it lasts, or clones for the whole phase once those of jobs with more tasks are stopped (of such jobs
   * alone that have this admission, too). The paper's is the first; the others are for comparison.
   */
  admission: z.enum(['all-or-nothing', 'partial', 'first-come', 'preemption']).default('all-or-nothing'),
  /**
   * Which upstream copies the clones of a task read: delay assignment, where they wait for copies of their own up to
   * ω; those that are there, at once (contention cloning); or only copies of their own (contention avoidance).
   */
  assignment: z.enum(['delay', 'cc', 'cac']).default('delay'),
  /** ω of delay assignment; without it, it is learnt from earlier jobs of the same size. */
  assignmentWaitMs: ms.optional(),
  /** ω until enough has been seen: the least of small jobs in the paper. Without a wait no clone would read alone. */
  priorWaitMs: ms.default(2_500),
  /** Most copies of a task. */
  mostClones: z.int().min(1).max(10).default(5),
  /** p until `minAttempts` attempts have been seen; a choice: the paper names none, and its Fig. 5 fits 8 %. */
  priorStragglerProbability: fraction.default(0.1),
  minAttempts: z.int().min(1).max(1_000_000).default(100),
  /** What treats the stragglers of phases that are not cloned. */
  otherwise: z.enum(['none', 'late', 'mantri']).default('late'),
});

/**
 * Jockey's control of slots by a job's deadline. What is left out is that of the preset: `paper` has the paper's values
 * (§4.3, §5.1), `outrider` ours.
 */
const jockey = z.strictObject({
  preset: z.enum(['paper', 'outrider']).default('outrider'),
  /** `adaptive`: by a control loop; `once`: chosen at the start and kept; `most`: as many as it may have throughout. */
  control: z.enum(['adaptive', 'once', 'most']).default('adaptive'),
  /** C(p, a) of the job simulator, or Amdahl's law. */
  predictor: z.enum(['simulator', 'amdahl']).default('simulator'),
  /** Of the simulated runs. */
  statistic: z.enum(remainingStatistics).exactOptional(),
  /** Predictions are taken so many times as long. */
  slack: z.number().min(1).max(10).exactOptional(),
  /** α: share of the way to what is wanted that is gone in a period. */
  hysteresis: z.number().gt(0).max(1).exactOptional(),
  /** D, and the period of the loop, for a deadline of an hour and longer; shorter ones have as large a share of theirs. */
  deadZoneMs: ms.exactOptional(),
  periodMs: ms.exactOptional(),
  /** Whether slots are added only to a job that is foretold to end a dead zone later than it is steered to. */
  holdsInDeadZone: z.boolean().exactOptional(),
  /** Whether predictions are corrected by how long attempts of the run have taken so far. */
  correct: z.boolean().exactOptional(),
  /** Most slots that a job asks to be its own; those of the deployment where nothing is said. */
  mostSlots: z.int().min(1).max(1_000_000).exactOptional(),
  /** Whether a job is taken on only where its forecast says that it fits beside those accepted before. */
  admits: z.boolean().default(true),
  /** Whether slots of all jobs with deadlines are divided by what they bring; else whoever comes first has them. */
  arbiter: z.boolean().default(true),
  /** Whether the job takes its fair share of spare slots beside its own. */
  spareSlots: z.boolean().default(true),
});

/**
 * Partitions that are read by several tasks each, where their operator allows it: the same under every policy, since no
 * work is done twice but the reading of the side that is not cut.
 */
const split = z.strictObject({
  isOn: z.boolean().default(true),
  /** How many times as large as a usual partition of its stage one is that is split. */
  factor: z.number().min(1).max(1_000).default(2),
  /** Parts of one partition. */
  mostParts: z.int().min(2).max(1_000).default(16),
  /** Least time that is expected to be saved; absent: as long as a task takes to start, and 2 s. */
  leastGainMs: ms.exactOptional(),
});

/** Parameters of every policy set, with the papers' or the systems' defaults. */
export const policyConfigSchema = z.strictObject({
  /** Copies of one task alive at once, the original included, whatever the policy; clones have a limit of their own. */
  copiesPerTask: z.int().min(1).max(3).default(3),
  /** Backups of one task over its whole life, whatever became of them: no rule that errs may go on for ever. */
  backupsPerTask: z.int().min(0).max(100).default(6),
  /**
   * Most slot time that a stage may lose to copies that bring nothing and to attempts that are killed, while tasks wait
   * for slots, as a share of what its tasks take anyway.
   */
  lossShare: fraction.default(0.25),
  /** Which task of a stage starts first; without it the policy's own order. */
  launchOrder: z.enum(['largest-first', 'by-index']).exactOptional(),
  split: split.prefault({}),
  late: late.prefault({}),
  mantri: mantri.prefault({}),
  hadoop: hadoop.prefault({}),
  dryad: dryad.prefault({}),
  mapreduce: mapreduce.prefault({}),
  spark: spark.prefault({}),
  hadoop2: hadoop2.prefault({}),
  flink: flink.prefault({}),
  cubed: cubed.prefault({}),
  dolly: dolly.prefault({}),
  outrider: outrider.prefault({}),
  jockey: jockey.prefault({}),
});

export type PolicyConfig = z.output<typeof policyConfigSchema>;
export type PolicyConfigInput = z.input<typeof policyConfigSchema>;

/** The defaults. */
export const defaultPolicyConfig: PolicyConfig = policyConfigSchema.parse({});
