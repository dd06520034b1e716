import { z } from 'zod';
import { parseUri } from './keys.ts';
import { limits } from './limits.ts';
import { policyConfigSchema } from './policy-config.ts';
import { policyNames } from './policy-names.ts';

/** Names of the operators that ship with the worker. */
export const operatorNames = [
  'tokenize',
  'sum-counts',
  'grep',
  'grep-count',
  'top-counts',
  'sample',
  'bounds',
  'range-partition',
  'merge-lines',
  'groupby-map',
  'groupby-reduce',
  'join-map',
  'join-reduce',
  'join-probe',
  'exec',
] as const;
export type OperatorName = (typeof operatorNames)[number];

/** Sizes of a worker and their memory; Lambda gives one vCPU per 1,769 MB. */
export const workerSizes = { small: 884, medium: 1769, large: 3538, xlarge: 7076 } as const;
export type WorkerSize = keyof typeof workerSizes;
export const workerKinds = ['lambda', 'fargate'] as const;

/** What an attempt runs on. */
export interface Worker {
  readonly kind: (typeof workerKinds)[number];
  readonly size: WorkerSize;
}

/** vCPU and MiB of a Fargate worker: the smallest pair that Fargate sells with at least the memory of the size. */
export const fargateSizes: Readonly<Record<WorkerSize, { vcpu: number; memoryMb: number }>> = {
  small: { vcpu: 0.5, memoryMb: 1024 },
  medium: { vcpu: 1, memoryMb: 2048 },
  large: { vcpu: 2, memoryMb: 4096 },
  xlarge: { vcpu: 4, memoryMb: 8192 },
};

const stageName = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be 1 to 32 of a-z, 0-9 and "-", and begin with a letter');

/** `90s`, `10m`, `2h`, `1d` or a number of seconds, as whole milliseconds. */
export function parseDurationText(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text.trim());
  if (match?.[1] === undefined) return undefined;
  const unit = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match[2] ?? 's'] ?? 1_000;
  return Math.round(Number(match[1]) * unit);
}

const deadline = z.string().refine((text) => {
  const ms = parseDurationText(text);
  return ms !== undefined && ms >= limits.minDeadlineMs && ms <= limits.maxDeadlineMs;
}, 'must be a length of time from 1s to 7d, such as "90s", "10m" or "2h"');

const keyBytes = (uri: string): number => new TextEncoder().encode(parseUri(uri)?.key).length;

const s3Uri = z
  .string()
  .max(1_100)
  .refine((uri) => parseUri(uri) !== undefined, 'must look like s3://bucket/key')
  .refine(
    (uri) => keyBytes(uri) <= limits.keyBytes,
    `must have a key of at most ${limits.keyBytes} bytes, as S3 takes them`,
  );

const sourceInput = z.strictObject({
  /** Exact keys, or prefixes that end in "/"; objects are read in byte order of their keys within each. */
  s3: z.array(s3Uri).min(1, 'must name at least one s3:// object or prefix').max(1_000),
  format: z.enum(['text', 'ndjson', 'csv']).default('text'),
  /** For csv: whether the first line of each file names the columns. Without it columns are c0, c1, … */
  header: z.boolean().default(true),
  /** What a record that cannot be read does. Text has no bad records. */
  onBadRecord: z.enum(['fail', 'skip']).default('fail'),
  /** Bytes per task; plain files are cut at line ends, gzip files are read whole. */
  splitBytes: z.int().min(limits.minSplitBytes).max(limits.maxSplitBytes).default(limits.defaultSplitBytes),
});

const stageInput = z.strictObject({
  stage: stageName,
  pattern: z.enum(['all-to-all', 'one-to-one', 'many-to-one', 'broadcast']),
});

const operatorOptions = z.record(z.string(), z.json());

const stage = z
  .strictObject({
    name: stageName,
    /** A built-in operator … */
    operator: z.enum(operatorNames).optional(),
    /** … or a bundle of the user's own: an ES module whose default export is an operator. */
    code: z
      .strictObject({ s3: s3Uri, sha256: z.string().regex(/^[0-9a-f]{64}$/, 'must be 64 hex digits') })
      .optional(),
    options: operatorOptions.default({}),
    /** Whether `code` or the program of `exec` sees the worker's AWS credentials; deployments may refuse it. */
    credentials: z.boolean().optional(),
    worker: z
      .strictObject({
        kind: z.enum(workerKinds).default('lambda'),
        size: z.enum(['small', 'medium', 'large', 'xlarge']).default('medium'),
        /**
         * Where a task goes that outlasts Lambda, or needs more memory than it has: to Fargate where the deployment
         * has it, as where nothing is said; with `none`, its job fails.
         */
        fallback: z.enum(['fargate', 'none']).optional(),
      })
      .default({ kind: 'lambda', size: 'medium' }),
    inputs: z
      .array(z.union([sourceInput, stageInput], 'must be { "s3": […] } or { "stage": …, "pattern": … }'))
      .min(1, 'must have at least one input')
      .max(limits.inputsPerStage),
    /** Number of partitions of the output that an all-to-all consumer reads: its number of tasks. */
    partitions: z.int().min(1).max(limits.partitions).optional(),
    /** Number of tasks where every input is many-to-one. */
    tasks: z.int().min(1).max(limits.tasksPerStage).optional(),
  })
  .refine((value) => (value.operator === undefined) !== (value.code === undefined), {
    message: 'must have exactly one of "operator" and "code"',
    path: ['operator'],
  })
  .refine(
    ({ credentials, operator, code }) => credentials !== true || operator === 'exec' || code !== undefined,
    {
      message: 'must be left out: only stages of "code" and "exec" can be given credentials',
      path: ['credentials'],
    },
  );

/** Shape of job spec v1. Rules across stages are in `core/model/job-graph.ts`. */
export const jobSpecSchema = z.strictObject({
  version: z.literal(1, 'must be 1').default(1),
  name: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,47}$/, 'must be 1 to 48 of a-z, 0-9 and "-", and begin with a letter'),
  stages: z.array(stage).min(1, 'must have at least one stage').max(limits.stages),
  /** From submission to published output. */
  deadline: deadline.optional(),
  /** Dollars that the job may cost. */
  budget: z.number().positive('must be more than 0').max(limits.maxBudgetDollars).optional(),
  policy: z.enum(policyNames).default('none'),
  /** Parameters of the policy set; those left out have the papers' values. */
  policyConfig: policyConfigSchema.optional(),
  /** Where the parts and `_SUCCESS` go; a prefix that ends in "/" and holds nothing yet. */
  output: s3Uri
    .refine((uri) => uri.endsWith('/'), 'must end in "/"')
    .refine(
      (uri) => keyBytes(uri) <= limits.outputKeyBytes,
      `must have a key of at most ${limits.outputKeyBytes} bytes, to which the names of parts are added`,
    )
    .optional(),
});

export type JobSpec = z.output<typeof jobSpecSchema>;
export type JobSpecInput = z.input<typeof jobSpecSchema>;
export type StageSpec = JobSpec['stages'][number];
export type StageInput = StageSpec['inputs'][number];
export type SourceInput = Extract<StageInput, { s3: string[] }>;
export type UpstreamInput = Extract<StageInput, { stage: string }>;
export type SourceFormat = SourceInput['format'];

/** Whether an input reads S3 objects and not another stage. */
export const isSource = (input: StageInput): input is SourceInput => 's3' in input;

/** JSON Schema (draft 2020-12) of a spec as users write it. */
export const jobSpecJsonSchema = (): object =>
  z.toJSONSchema(jobSpecSchema, { io: 'input', unrepresentable: 'any' });
