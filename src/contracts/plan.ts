import * as z from 'zod';
import type { JobId } from './ids.ts';
import { operatorNames, workerKinds } from './job-spec.ts';
import { policyNames } from './policy-names.ts';
import { policyConfigSchema } from './policy-config.ts';

/** Which tasks of a stage the tasks of another read: all a part of each, one each, some each, or all of all. */
const edgePattern = z.enum(['all-to-all', 'one-to-one', 'many-to-one', 'broadcast']);
export type EdgePattern = z.output<typeof edgePattern>;

const objectRef = z.object({ bucket: z.string(), key: z.string() });

/** A source object. */
const sourceFileSchema = z.object({
  bucket: z.string(),
  key: z.string(),
  /** Size of the object when it was planned; `etag` makes a changed object fail rather than corrupt. */
  sizeBytes: z.number(),
  etag: z.string(),
  gzip: z.boolean(),
  /** How it is compressed, where that is not by gzip. */
  codec: z.enum(['zstd', 'bzip2']).optional(),
});

/**
 * A piece of a source object. Plain files: lines that begin in [start, end). Compressed ones: the whole file, or of gzip what
 * members hold that begin in [start, end).
 */
export const sourceSegmentSchema = z.object({
  ...sourceFileSchema.shape,
  start: z.number(),
  end: z.number(),
  /** Csv with a header, of a later part of a job's output: the first part, which has the header for all of them. */
  headerIn: sourceFileSchema.exactOptional(),
});

/** How a stage reads one of its inputs. */
export const plannedInputSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('source'),
    format: z.enum(['text', 'ndjson', 'csv', 'parquet']),
    header: z.boolean(),
    onBadRecord: z.enum(['fail', 'skip']),
    /** Csv: whether quoted fields may hold line ends; absent: they may, since no file was cut. */
    multiline: z.boolean().optional(),
    /** Csv with a header, NDJSON and Parquet: the begin of the first object of all, which says in which order columns of all are written. */
    first: sourceSegmentSchema.exactOptional(),
  }),
  z.object({
    kind: z.literal('stage'),
    stage: z.string(),
    pattern: edgePattern,
    /** Tasks and partitions of the stage that is read. */
    producerTasks: z.int(),
    producerPartitions: z.int(),
  }),
]);

/** What every task of a stage shares: all that a worker needs besides its own input ranges. */
export const stageDescriptionSchema = z.object({
  jobId: z.string().transform((id) => id as JobId),
  name: z.string(),
  operator: z.enum(operatorNames).optional(),
  code: z.object({ s3: z.string(), sha256: z.string() }).optional(),
  options: z.record(z.string(), z.json()),
  /** Whether user code and programs see credentials; absent means no. */
  credentials: z.boolean().optional(),
  worker: z.object({
    kind: z.enum(workerKinds),
    size: z.enum(['small', 'medium', 'large', 'xlarge']),
    /** Absent: a task that Lambda has no room or time for may go to Fargate. */
    fallback: z.enum(['fargate', 'none']).optional(),
  }),
  inputs: z.array(plannedInputSchema),
  tasks: z.int(),
  /** Of `code`: the inputs, by place, of which several tasks may read a partition, a part each. Absent: none. */
  cutInputs: z.array(z.int()).optional(),
  /** Partitions of the stage's own output; 1 unless a consumer reads it all-to-all. */
  partitions: z.int(),
  /** `final` parts are text under the job's output; `sorted` data is in key order within each partition. */
  output: z.enum(['final', 'sorted', 'unsorted']),
  /** Bucket of intermediate data. */
  dataBucket: z.string(),
  /** Of a job on the tier `zonal`: the directory buckets, one per zone, in which workers of those zones leave it. */
  zonalBuckets: z.array(z.string()).optional(),
  /** Of a job on the tier `worker-local`: tasks below this number leave it with their workers. Absent: none does. */
  keptTasks: z.int().optional(),
  /** Prefix of the job's output. */
  outputPrefix: objectRef,
});

/** A stage as the scheduler sees it. */
export const stagePlanSchema = z.object({
  description: stageDescriptionSchema,
  /** Bytes that each task reads from S3 sources; 0 where it reads only other stages. */
  sourceBytes: z.array(z.number()),
  /**
   * For each input, where the line of task i lies in the input's manifest: bytes [offsets[i], offsets[i + 1]).
   * Empty for inputs from stages: their manifests are written when the stage opens.
   */
  manifestOffsets: z.array(z.array(z.number())),
});

/** A planned job: what the scheduler loads once when it enters. Stages in topological order, final stage last. */
export const planSchema = z.object({
  version: z.literal(1),
  jobId: z.string().transform((id) => id as JobId),
  /** Names this plan among those of the job; all its objects lie under it. */
  nonce: z.string(),
  name: z.string(),
  policy: z.enum(policyNames),
  /** Every parameter of the policies: what the spec leaves open is decided here, for the job's whole life. */
  policyConfig: policyConfigSchema.prefault({}),
  /** Number of store partitions over which the job's tasks are spread. */
  shards: z.int(),
  stages: z.array(stagePlanSchema),
});

export type PlannedInput = z.output<typeof plannedInputSchema>;
export type StageDescription = z.output<typeof stageDescriptionSchema>;
export type StagePlan = z.output<typeof stagePlanSchema>;
export type Plan = z.output<typeof planSchema>;

/** Bytes [offset, offset + length) of the output of a committed attempt of a stage; their CRC-32. */
export const stageSegmentSchema = z.object({
  task: z.int(),
  attempt: z.int(),
  offset: z.number(),
  length: z.number(),
  crc: z.number(),
  /** Of an input that is cut: not the task's own; it reads its begin alone, for what that says of those that follow. */
  head: z.literal(true).exactOptional(),
  /** Where it is; without both: in the data bucket. See `OutputPlace`. */
  zone: z.string().exactOptional(),
  worker: z.string().exactOptional(),
});

/** One line of an input manifest: what one task reads through one input, in order. */
export const sourceManifestLineSchema = z.object({ segments: z.array(sourceSegmentSchema) });
export const stageManifestLineSchema = z.object({ segments: z.array(stageSegmentSchema) });

export type PlannedObject = z.output<typeof sourceFileSchema>;
export type SourceSegment = z.output<typeof sourceSegmentSchema>;

/** How the object of a segment is compressed; undefined where it is plain. */
export const codecOf = ({ gzip, codec }: PlannedObject): Codec | undefined => (gzip ? 'gzip' : codec);
export type Codec = 'gzip' | 'zstd' | 'bzip2';

export type StageSegment = z.output<typeof stageSegmentSchema>;
