import * as z from 'zod';
import { onBudgetChoices, workerKinds } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import { defaultPolicy, policyNames } from '../contracts/policy-names.ts';
import { policyConfigSchema } from '../contracts/policy-config.ts';
import { distributionSchema, isAscending } from './distribution.ts';
import { atLeastZero, name, probability, type Refuse } from './scenario-parts.ts';

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

/** Jobs of one kind, and when they arrive. */
export const jobsSchema = z.strictObject({
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

export type JobScenario = z.output<typeof jobsSchema>;
export type StageScenario = z.output<typeof stageSchema>;

/** Refuses stages that do not fit those that they read. */
export function checkStages(stages: readonly StageScenario[], refuse: Refuse): void {
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
