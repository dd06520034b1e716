import { fnv1a } from './fnv1a.ts';
import type { AttemptId, JobId } from './ids.ts';

/** An object in S3. */
export interface ObjectRef {
  readonly bucket: string;
  readonly key: string;
}

/** `s3://bucket/key` of a reference. */
export const uriOf = ({ bucket, key }: ObjectRef): string => `s3://${bucket}/${key}`;

/** The reference behind `s3://bucket/key` (key may be empty), or undefined where the text is none. */
export function parseUri(uri: string): ObjectRef | undefined {
  const match = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/s.exec(uri);
  return match?.[1] === undefined ? undefined : { bucket: match[1], key: match[2] ?? '' };
}

/** Everything of a job but its output: gone when the job has ended. */
export const jobPrefix = (jobId: JobId): string => `jobs/${jobId}/`;
/**
 * Which of a job's plans: Plan may run twice at once, or thaw when the job has long been running, so each run writes
 * under a nonce of its own, and only the plan that the job's record names is ever read.
 */
export interface PlanPlace {
  readonly jobId: JobId;
  readonly nonce: string;
}

const planPrefix = ({ jobId, nonce }: PlanPlace): string => `${jobPrefix(jobId)}plans/${nonce}/`;
/** The plan, JSON of `Plan`. */
export const planKey = (place: PlanPlace): string => `${planPrefix(place)}plan.json`;
/** Whether a key of a job is that of a plan, which goes last: while it is there, so may be other things. */
export const isPlanKey = (key: string): boolean => key.endsWith('/plan.json');
/**
 * What the tasks of a stage read through its input number `input`: one JSON line per task. Each time that outputs were
 * lost and made again it is written anew, as another `revision`.
 */
export const inputManifestKey = (place: PlanPlace, stage: string, input: number, revision = 0): string =>
  `${planPrefix(place)}inputs/${stage}/${input}${revision === 0 ? '' : `.${revision}`}.ndjson`;
/** What attempts of a job write for each other, and all that they may remove. */
export const jobDataPrefix = (jobId: JobId): string => `jobs/${jobId}/data/`;
/**
 * The output of one attempt of a stage that other stages read. S3 gives each partition of its index so many requests a
 * second, and parts keys wherever their leading characters differ: two digits of a hash let it spread the attempts of
 * a stage evenly, where task numbers would come in runs. They stand behind what rights and clean-up go by, the job.
 */
export const attemptDataKey = (jobId: JobId, attemptId: AttemptId): string =>
  `${jobDataPrefix(jobId)}${spread(attemptId)}/${attemptId}`;

/** The attempt whose output is under a key of `attemptDataKey`. */
export const attemptOfDataKey = (key: string): AttemptId => key.split('/').slice(4).join('/') as AttemptId;

/** Whether an object of the data bucket is what an attempt has written for others. */
export const isAttemptData = (key: string): boolean => /^jobs\/[^/]+\/data\//.test(key);

/** Two hex digits that are even over ids, the same in every run: FNV-1a, folded into a byte. */
function spread(id: AttemptId): string {
  const hash = fnv1a(id);
  const folded = hash ^ (hash >>> 16);
  return ((folded ^ (folded >>> 8)) & 0xff).toString(16).padStart(2, '0');
}

/** The list of a job's output parts from when all are there until its end, when `_SUCCESS` has it. */
export const partListKey = (place: PlanPlace): string => `${planPrefix(place)}parts.json`;
/** Where a job's output lies when its spec names no place. */
export const defaultOutputKey = (jobId: JobId): string => `output/${jobId}/`;
/** The object of output part `index`, under the output prefix. */
export const partName = (index: number): string => `part-${String(index).padStart(5, '0')}`;
/** Marks a complete output; holds its manifest. */
export const successName = '_SUCCESS';
/** Whether an object below an output prefix has the name of what a job makes visible there. */
export const isOutputName = (name: string): boolean => name === successName || /^part-\d{5,}$/.test(name);
/**
 * Whether a file, or a directory with all in it, of such a name is passed over where what is below a prefix or in a directory is
 * read: manifests, checksums and half-written files lie beside data under names that begin with "_" or ".", `_SUCCESS` of
 * a job's output among them. Directories of a partition by a column, as `_day=1`, hold data whatever the column is called.
 *
 * Source: Hadoop's `FileInputFormat.hiddenFileFilter`; Spark's `HadoopFSUtils.shouldFilterOutPathName`.
 */
export const isHiddenName = (name: string): boolean =>
  name.startsWith('.') || (name.startsWith('_') && !name.includes('='));
/** Whether an object below a prefix that is read is passed over, `path` being what its key has behind the prefix. */
export const isHiddenPath = (path: string): boolean => path.split('/').some(isHiddenName);
/** Object metadata name that tells which attempt wrote an output part: `<job>/<attempt>`. */
export const attemptMetadata = 'outrider-attempt';
/** What the tasks of a stage share, JSON of `StageDescription`. */
export const stageKey = (place: PlanPlace, stage: string): string =>
  `${planPrefix(place)}stages/${stage}.json`;
/**
 * Has the worker that keeps the output of an attempt of a stage (see `worker-places.ts`) put a copy of it into the data
 * bucket, under the key that this object holds.
 */
export const copyOrderKey = (ofStage: string, attemptId: AttemptId): string =>
  `${ofStage}.copies/${attemptId}`;
/** Where it is kept what was learned of recurring jobs: it outlives their runs. */
export const forecastPrefix = 'forecasts/';
/** What was learned of the jobs of a name, JSON of `StoredForecast`. */
export const forecastKey = (name: string): string => `${forecastPrefix}${name}.json`;
