import * as z from 'zod';
import { parseUri } from './keys.ts';
import { limits } from './limits.ts';
import { policyConfigSchema } from './policy-config.ts';
import { defaultPolicy, policyNames } from './policy-names.ts';
import { storageTiers } from './storage-tiers.ts';

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
  'sql',
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

/** MiB that V8's heap may take of a worker's memory: the share that Lambda's own runtime for Node gives it. */
export const heapMbOf = (memoryMb: number): number => Math.floor(memoryMb * 0.9);

/**
 * Options of Node for every worker. Records live for one batch: a small young generation collects them sooner, at the same
 * speed. The worker asks for a collection itself between attempts.
 */
export const workerNodeOptions = '--max-semi-space-size=4 --expose-gc';

/** What happens to a job that has used up its budget. */
export const onBudgetChoices = ['finish', 'stop'] as const;
export type OnBudget = (typeof onBudgetChoices)[number];

/** What a result is worth that comes late. */
export const deadlineKinds = ['soft', 'hard'] as const;
/** What is done with a job that cannot meet its deadline beside those accepted before. */
export const admissionChoices = ['refuse', 'best-effort'] as const;
/** What a job may say of its deadline. */
export interface DeadlineTerms {
  readonly deadlineKind?: (typeof deadlineKinds)[number];
  readonly admission?: (typeof admissionChoices)[number];
}

/** Where a job may have its intermediate data. */
export const storageChoices = storageTiers;

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

const sourceFields = z.strictObject({
  /**
   * Exact keys, or prefixes that end in "/", of which all objects are read but those with a name behind the prefix that begins
   * with "_" or "." (see `isHiddenName`); objects are read in byte order of their keys within each, and one that several
   * entries name once.
   */
  s3: z.array(s3Uri).min(1, 'must name at least one s3:// object or prefix').max(1_000),
  /** `parquet` is for stages whose operator is `sql`; files are cut at row groups. */
  format: z.enum(['text', 'ndjson', 'csv', 'parquet']).default('text'),
  /** For csv: whether the first line of each file names the columns. Without it columns are c0, c1, … */
  header: z.boolean().default(true),
  /**
   * For csv: whether quoted fields may hold line ends. Then files are read whole; else they are cut at line ends, and a
   * record that does not end with its line fails the job.
   */
  multiline: z.boolean().default(false),
  /**
   * What a record does that cannot be read, or whose values an operator cannot use; of a job file, for which a function throws
   * (of text that alone).
   */
  onBadRecord: z.enum(['fail', 'skip']).default('fail'),
  /** Bytes per task, unpacked; plain files are cut at line ends, gzip of several members at those, other compressed ones are read whole. */
  splitBytes: z.int().min(limits.minSplitBytes).max(limits.maxSplitBytes).default(limits.defaultSplitBytes),
});

const sourceInput = sourceFields.refine(({ format, multiline }) => format === 'csv' || !multiline, {
  path: ['multiline'],
  message: 'is for csv alone: a record of text or ndjson is one line',
});

const stageInput = z.strictObject({
  stage: stageName,
  pattern: z.enum(['all-to-all', 'one-to-one', 'many-to-one', 'broadcast']),
});

const isShuffle = (input: object): boolean => 'pattern' in input && input.pattern === 'all-to-all';

/** Operators for which all inputs together are as one. */
const merging: ReadonlySet<OperatorName> = new Set<OperatorName>([
  'sum-counts',
  'top-counts',
  'merge-lines',
  'groupby-reduce',
]);

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
    /**
     * For `code` whose inputs are all all-to-all: those (by place, from 0) of which a heavy partition may be read by
     * several tasks, a part of it each and the other inputs' partitions whole. That is right where what a record of such
     * an input gives depends on it and on the other inputs' records alone, in no order: a join.
     */
    cutInputs: z.array(z.int().min(0)).min(1).max(limits.inputsPerStage).optional(),
  })
  .refine((value) => (value.operator === undefined) !== (value.code === undefined), {
    message: 'must have exactly one of "operator" and "code"',
    path: ['operator'],
  })
  .superRefine(({ operator, inputs }, context) => {
    if (operator === 'sql') return;
    for (const [index, input] of inputs.entries())
      if ('s3' in input && input.format === 'parquet')
        context.addIssue({
          code: 'custom',
          path: ['inputs', index, 'format'],
          message: 'must be "text", "ndjson" or "csv": Parquet is read by stages of the operator "sql" alone',
        });
  })
  .superRefine(({ operator, inputs }, context) => {
    if (operator === undefined || !merging.has(operator) || inputs.length === 1) return;
    const why = `"${operator}" merges its inputs, which come in order of their keys so alone`;
    for (const [index, input] of inputs.entries()) {
      if (isShuffle(input)) continue;
      const isStage = 'pattern' in input;
      const right = isStage ? 'must be "all-to-all"' : 'must be another stage, read "all-to-all"';
      const path = ['inputs', index, ...(isStage ? ['pattern'] : [])];
      context.addIssue({ code: 'custom', path, message: `${right}: ${why}` });
    }
  })
  .refine(
    ({ code, inputs, cutInputs }) =>
      cutInputs === undefined || (code !== undefined && inputs.length > 1 && inputs.every(isShuffle)),
    {
      message:
        'must be left out: only stages of "code" whose inputs, two or more, are all all-to-all read parts of partitions',
      path: ['cutInputs'],
    },
  )
  .refine(({ inputs, cutInputs = [] }) => cutInputs.every((place) => place < inputs.length), {
    message: 'must be places of inputs of the stage, from 0',
    path: ['cutInputs'],
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
  /** `soft`: the later the worse; `hard`: what is late is lost, and others come first. Absent: soft. */
  deadlineKind: z.enum(deadlineKinds).optional(),
  /**
   * What is done with a job whose forecast says that it cannot meet its deadline beside those accepted before: it is
   * refused, as where nothing is said, or runs without slots of its own.
   */
  admission: z.enum(admissionChoices).optional(),
  /**
   * Dollars that the job may cost. As they are used up, first no task gets another copy, then none gets more than one
   * attempt; what happens then says `onBudget`.
   */
  budget: z.number().positive('must be more than 0').max(limits.maxBudgetDollars).optional(),
  /**
   * What happens at the budget: `finish` goes on with one attempt of each task and fails where one needs another; `stop`
   * launches nothing more, and ends the job. Where nothing is said, `finish`. Only beside `budget`.
   */
  onBudget: z.enum(onBudgetChoices).optional(),
  /**
   * Slots that are the job's own before any are shared, as far as it can use them. At most those of the deployment;
   * where others were guaranteed some before, those that are left, until they end.
   */
  guaranteedSlots: z.int().min(1, 'must be at least 1').max(limits.guaranteedSlots).optional(),
  /** Its share of the slots that are short, beside those of other jobs, which have 1 where nothing is said. */
  weight: z
    .number()
    .min(limits.leastWeight, `must be at least ${limits.leastWeight}`)
    .max(limits.weight)
    .optional(),
  /**
   * Where stages leave what other stages read: `standard`, as where nothing is said, or `zonal`, in S3 Express One Zone,
   * each in the zone of its worker: quick and cheap to ask, and made again where a zone is lost; or `worker-local`, where all
   * stages are on Fargate, with the workers that made it, which stay for its readers. The output is on `standard`.
   */
  storage: z.enum(storageChoices).optional(),
  policy: z.enum(policyNames).default(defaultPolicy),
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
