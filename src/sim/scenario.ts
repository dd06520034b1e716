import * as z from 'zod';
import { parseInput } from '../contracts/invalid.ts';
import { onBudgetChoices, workerKinds } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import { defaultPolicy, policyNames } from '../contracts/policy-names.ts';
import { policyConfigSchema } from '../contracts/policy-config.ts';
import { aboveZeroSchema, distributionSchema, isAscending } from './distribution.ts';

const probability = z.number().min(0).max(1);
const atLeastZero = z.number().nonnegative();
const name = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be 1 to 32 of a-z, 0-9 and "-", and begin with a letter');

/** Spells of loss, each place its own: `share` of what lies there as one begins, or is written meanwhile, at even moments of it. */
const lossSchema = z.strictObject({
  everyMs: distributionSchema,
  lastsMs: distributionSchema,
  share: probability.default(1),
});
export type LossScenario = z.output<typeof lossSchema>;

const zoneSchema = z.strictObject({
  name,
  /** Of all outputs that were written in the zone. */
  losses: lossSchema.exactOptional(),
  /** Bytes per second that leave and enter the zone in all; without limit where nothing is said. */
  upBytesPerS: z.number().positive().optional(),
  downBytesPerS: z.number().positive().optional(),
});

const nodeGroupSchema = z.strictObject({
  count: z.int().min(1).max(200_000),
  slots: z.int().min(1).max(10_000).default(1),
  /** Work that a node does in a millisecond, in milliseconds of a node of speed 1; drawn once per node, and again where the draw is cut at 0. */
  speed: aboveZeroSchema.default(1),
  /** Nodes of the group that share one machine and so contend with each other; hosts are filled in order. */
  perHost: z.int().min(1).max(10_000).default(1),
  /** In place of the cluster's. */
  contention: atLeastZero.optional(),
  /** How long a node keeps the speed that it has drawn: after each such time it draws another. For good if not said. */
  speedLastsMs: distributionSchema.optional(),
  /** The disk of each of the group's hosts, which all reads and writes of its nodes share. Needs `cluster.hosts`. */
  disk: z
    .strictObject({
      /** What it carries for one stream; drawn once per host. */
      bytesPerS: distributionSchema,
      /** Of that, what two streams get in all, three, and so on; the last holds for more. */
      shares: z.array(z.number().positive()).max(64).default([]),
    })
    .optional(),
  /** Zone of all nodes of the group; without it they go round the zones. */
  zone: name.optional(),
  /** Execution environments that start cold when first used and again after they were idle for `keepWarmMs`. */
  elastic: z.boolean().default(false),
  /**
   * How much of the slowdowns of attempts is their node's, and the node's of the time: shares of what they have in common,
   * as the correlation of normal scores. Slowdowns by quantiles alone are shared so; others are drawn by attempt.
   */
  luck: z
    .strictObject({ node: probability, spell: probability, spellMs: z.int().min(1_000) })
    .refine(({ node, spell }) => node + spell <= 1, 'the shares of node and spell must be at most 1 together')
    .optional(),
  /** Spells in which a node is slower by a factor: contention from outside. */
  spells: z
    .strictObject({ everyMs: distributionSchema, lastsMs: distributionSchema, slowdown: distributionSchema })
    .optional(),
  /** Of outputs that were written on a machine of the group: losses cluster by machine. */
  losses: lossSchema.exactOptional(),
});

const clusterSchema = z.strictObject({
  nodes: z.array(nodeGroupSchema).min(1).max(1_000),
  /**
   * Which of the nodes with a free slot gets the next attempt; `warmest` is the one used last, `spread` one with the
   * fewest busy slots (any of them, as where nodes ask for work in turn, one task at a time).
   */
  placement: z.enum(['random', 'in-order', 'warmest', 'spread']).default('random'),
  /** Whether launches may name nodes that they must not run on (they may where nothing is said); Lambda offers no choice. */
  choosesNodes: z.boolean().exactOptional(),
  zones: z
    .array(zoneSchema)
    .min(1)
    .max(500)
    .default([{ name: 'zone-a' }]),
  /**
   * Outputs stay with their workers, all of them on Fargate, as on the tier `worker-local`: the scheduler knows in which
   * zones they lie, and launches may say in which of the zones they had best start.
   */
  keepsOutputs: z.boolean().exactOptional(),
  /** What each node sends and takes in all, in place of the zones' limits; without it the zones' links are shared. */
  nodeLinks: z
    .strictObject({
      upBytesPerS: z.number().positive().optional(),
      downBytesPerS: z.number().positive().optional(),
    })
    .optional(),
  /** Bytes go between hosts, each of which sends and takes so much in all: in place of the zones' limits and nodes'. */
  hosts: z
    .strictObject({
      upBytesPerS: z.number().positive().optional(),
      downBytesPerS: z.number().positive().optional(),
    })
    .optional(),
  /** The most that one flow between nodes gets. */
  flowBytesPerS: z.number().positive().optional(),
  /** Each other busy slot of its host makes a slot slower by so much: speed / (1 + contention × others). */
  contention: atLeastZero.default(0),
  /**
   * Cores that all busy slots share, each by its speed: a slot of speed 1 uses a core, a slower one as much less of it.
   * Where they would use more than there are, all are slower in the same proportion. Without limit if not said.
   */
  cores: z.number().positive().exactOptional(),
  startMs: distributionSchema.default(0),
  cold: z
    .strictObject({
      startMs: distributionSchema,
      /** New environments per `perMs`, as Lambda adds them to a function. */
      environments: z.int().min(1).default(1_000),
      perMs: z.int().min(1).default(10_000),
      keepWarmMs: z.int().min(0).default(300_000),
    })
    .optional(),
  /**
   * Launches are asynchronous invocations: all are taken in, and wait in Lambda's queue where there is no environment
   * for them. Without it a launch for which no slot is free is refused for the moment.
   */
  queue: z
    .strictObject({
      /** Environments that may be busy at once, from a time on; the nodes where nothing is said. */
      environments: z
        .array(z.strictObject({ fromMs: z.int().min(0), count: z.int().min(0) }))
        .min(1)
        .optional(),
      /** Pauses between the tries of an event that finds no environment, and the age at which it is dropped. */
      firstPauseMs: z.int().min(1).default(1_000),
      longestPauseMs: z.int().min(1).default(300_000),
      eventAgeMs: z.int().min(1).default(21_600_000),
    })
    .optional(),
  /** How long Fargate takes to start a worker: on a node as all are, of elastic ones on a new one that nobody uses after it. */
  fargateStartMs: distributionSchema.optional(),
  /** How long a task on Fargate still runs that is stopped, since it was given up; where nothing is said it works on, as on Lambda. */
  fargateStopMs: distributionSchema.exactOptional(),
  /** Launches beyond this rate are refused for the moment. */
  throttle: z.strictObject({ launchesPerS: z.number().positive(), burst: z.int().min(1) }).optional(),
});

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
  /** A scheduler serves a job for so long, then hands it to the next, which knows what records tell. Absent: to the end. */
  handOverMs: z.int().min(1).exactOptional(),
  /** Whether a cancelled attempt learns it with its next report, or stops at once. */
  cancel: z.enum(['cooperative', 'immediate']).default('cooperative'),
  /** How jobs share slots that are short: max-min fairly (where nothing is said, as in production), or first come. */
  sharing: z.enum(['fair', 'first-come']).exactOptional(),
});

const workerSchema = z.strictObject({
  kind: z.enum(workerKinds),
  size: z.enum(['small', 'medium', 'large', 'xlarge']),
});

const perTask = z.union([distributionSchema, z.array(atLeastZero).min(1)]);

const stageSchema = z.strictObject({
  name,
  tasks: z.int().min(1).max(200_000),
  /** Stages that must be complete before this one opens. */
  upstream: z.array(name).default([]),
  /**
   * Which of their tasks each task reads: all; the one of its own place; or one of as many groups, of about the same
   * size and in order, as this stage has tasks.
   */
  pattern: z.enum(['all-to-all', 'one-to-one', 'many-to-one']).default('all-to-all'),
  /** What its tasks run on, in place of the job's. */
  worker: workerSchema.optional(),
  /** Work of each task on a node of speed 1: drawn, or listed (the list is repeated where it is too short). */
  workMs: perTask,
  /** Work besides of a stage's first attempt on each node, or in each environment: code that is not compiled there still. */
  firstWorkMs: atLeastZero.default(0),
  /** Drawn per attempt; multiplies the work: what the attempt's own bad luck costs. */
  slowdown: distributionSchema.default(1),
  /**
   * What the work of an attempt of each task takes in the mean: what a perfect detector of stragglers expects of a new one,
   * besides its start and the writing of its output. Where nothing is said, it is worked out of the other figures.
   */
  expectedMs: z.array(atLeastZero).min(1).optional(),
  /** Instead of work and slowdown: what attempt k of task i takes at speed 1; the last entry holds for later ones. */
  attemptsMs: z.array(z.array(atLeastZero).min(1)).optional(),
  inputBytes: perTask.default(64 * 1024 * 1024),
  outputBytes: perTask.default(0),
  /** Work after all input is read. */
  wrapUpMs: distributionSchema.default(0),
  /** Read the input over the network, from where it lies: sources in a random place, else where it was made. */
  network: z.boolean().default(false),
  /**
   * Where the source of a task lies: in one place, anywhere; or in two, as in a file system with two replicas: where its
   * first attempt runs (a scheduler sends tasks to their data) and in another, which is drawn. Other attempts read what
   * lies where they run, else either.
   */
  source: z.enum(['anywhere', 'at-first-reader']).default('anywhere'),
  /**
   * Write the output to the own place and to another, which is drawn, as to a file system with two replicas: after the
   * work, and over disks and network. Else outputs are there at once.
   */
  replicatesOutput: z.boolean().default(false),
  /** Share of the input that counts as read when the network is done with it; the rest follows the work. */
  readShare: probability.default(1 / 3),
  /**
   * Points [share of the work done, share of the input reported as read], ascending, straight between them. What is left
   * at the last follows the output as it is written, where it is.
   */
  progress: z
    .array(z.tuple([probability, probability]))
    .min(2)
    .refine(isAscending, 'must have no share that is less than the one before')
    .default([
      [0, 0],
      [1, 1],
    ]),
});

const arrivalsSchema = z.union([
  z.strictObject({ kind: z.literal('list'), atMs: z.array(z.int().min(0)).min(1).max(200_000) }),
  z.strictObject({
    kind: z.literal('poisson'),
    jobs: z.int().min(1).max(200_000),
    meanMs: z.number().positive(),
    fromMs: z.int().min(0).default(0),
  }),
]);

const jobsSchema = z.strictObject({
  name: name.default('job'),
  arrivals: arrivalsSchema.default({ kind: 'list', atMs: [0] }),
  policy: z.enum(policyNames).default(defaultPolicy),
  /** Which task of a stage starts first; without it the policy's own order. */
  launchOrder: z.enum(['largest-first', 'by-index']).optional(),
  /** Parameters of the policy that differ from its defaults. */
  policyConfig: policyConfigSchema.prefault({}),
  deadlineMs: z.int().min(1).optional(),
  /** Dollars that it may cost, and what happens then: as in a job's spec. */
  budget: z.number().positive().optional(),
  onBudget: z.enum(onBudgetChoices).optional(),
  /** Other deadlines from a time on, both since the job's arrival. */
  deadlineChanges: z
    .array(z.strictObject({ atMs: z.int().min(1), deadlineMs: z.int().min(1) }))
    .max(100)
    .default([]),
  /** As in a job's spec. */
  deadlineKind: z.enum(['soft', 'hard']).optional(),
  admission: z.enum(['refuse', 'best-effort']).optional(),
  /** Slots of its own, and its weight where slots are shared: as in a job's spec. */
  guaranteedSlots: z.int().min(1).optional(),
  weight: z.number().positive().optional(),
  worker: workerSchema.default({ kind: 'lambda', size: 'medium' }),
  stages: z.array(stageSchema).min(1).max(limits.forecastStages),
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

type Refuse = (path: (string | number)[], message: string) => void;

function checkZones({ zones, nodes, nodeLinks }: z.output<typeof clusterSchema>, refuse: Refuse): void {
  const names = zones.map((zone) => zone.name);
  const twice = names.findIndex((each, index) => names.indexOf(each) < index);
  if (twice >= 0) refuse(['cluster', 'zones', twice, 'name'], 'must differ from earlier ones');
  for (const [index, group] of nodes.entries()) {
    if (group.zone === undefined || names.includes(group.zone)) continue;
    refuse(['cluster', 'nodes', index, 'zone'], `must be one of ${names.join(', ')}`);
  }
  if (nodeLinks === undefined) return;
  for (const [index, zone] of zones.entries()) {
    for (const limit of ['upBytesPerS', 'downBytesPerS'] as const) {
      if (zone[limit] === undefined) continue;
      refuse(['cluster', 'zones', index, limit], 'must be left out where nodes have links of their own');
    }
  }
}

function checkHosts({ hosts, nodeLinks, nodes }: z.output<typeof clusterSchema>, refuse: Refuse): void {
  if (hosts !== undefined && nodeLinks !== undefined)
    refuse(['cluster', 'nodeLinks'], 'must be left out where hosts have links of their own');
  const disk = nodes.findIndex((group) => group.disk !== undefined);
  if (hosts === undefined && disk >= 0)
    refuse(['cluster', 'nodes', disk, 'disk'], 'must be left out where the cluster has no "hosts"');
}

type Jobs = readonly z.output<typeof jobsSchema>[];

function checkKeepers(
  { cluster, jobs }: { readonly cluster: z.output<typeof clusterSchema>; readonly jobs: Jobs },
  refuse: Refuse,
): void {
  const isElsewhere = ({ worker, stages }: Jobs[number]): boolean =>
    stages.some((stage) => (stage.worker ?? worker).kind !== 'fargate');
  if (cluster.keepsOutputs === true && jobs.some(isElsewhere))
    refuse(['cluster', 'keepsOutputs'], 'must be left out where not all stages of all jobs are on Fargate');
}

function checkStages(stages: readonly z.output<typeof stageSchema>[], refuse: Refuse): void {
  const earlier = new Map<string, number>();
  for (const [index, { name: stageName, tasks, upstream, pattern }] of stages.entries()) {
    const unknown = upstream.find((other) => !earlier.has(other));
    if (unknown !== undefined) refuse([index, 'upstream'], `must name earlier stages, not "${unknown}"`);
    if (earlier.has(stageName)) refuse([index, 'name'], `must differ from earlier ones, "${stageName}"`);
    for (const other of upstream) {
      const theirs = earlier.get(other) ?? tasks;
      if (pattern === 'one-to-one' && theirs !== tasks)
        refuse([index, 'pattern'], `must not be one-to-one: "${other}" has ${theirs} tasks, not ${tasks}`);
      if (pattern === 'many-to-one' && theirs < tasks)
        refuse([index, 'pattern'], `must not be many-to-one: "${other}" has fewer tasks, ${theirs}`);
    }
    earlier.set(stageName, tasks);
  }
}

export type Scenario = z.output<typeof scenarioSchema>;
export type ScenarioInput = z.input<typeof scenarioSchema>;
export type ClusterScenario = Scenario['cluster'];
export type NodeGroup = ClusterScenario['nodes'][number];
export type JobScenario = Scenario['jobs'][number];
export type StageScenario = JobScenario['stages'][number];

/** Reads a scenario from data; throws `InvalidInputError` with the path of the first wrong field. */
export const parseScenario = (data: unknown): Scenario => parseInput(scenarioSchema, data);

/** JSON Schema (draft 2020-12) of a scenario as people write it. */
export const scenarioJsonSchema = (): object =>
  z.toJSONSchema(scenarioSchema, { io: 'input', unrepresentable: 'any' });
