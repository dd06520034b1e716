import { isSource, type JobSpec, jobSpecSchema } from '../contracts/job-spec.ts';
import type { JobId } from '../contracts/ids.ts';
import { parseInput } from '../contracts/invalid.ts';
import { sourceObjects } from '../app/plan-job.ts';
import { AccessDeniedError, StoreRefusedError } from '../contracts/errors.ts';
import { inputField } from '../core/model/job-graph.ts';
import { planStages, type ResolvedSources } from '../core/model/plan-stages.ts';
import type { SourceObject } from '../core/model/splits.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { PreparedJob } from './prepare-inputs.ts';

/** A job that is not to run, and into how many tasks of how many bytes its stages fall. */
export interface SizedJob {
  readonly spec: JobSpec;
  readonly stages: Readonly<Record<string, { readonly tasks: number; readonly bytes?: number }>>;
  /** Why nothing is known of that, in words; then `stages` is empty. */
  readonly unsized?: string;
}

/** Thrown where nobody is there who could list objects. */
class NobodyToAskError extends Error {
  override readonly name = 'NobodyToAsk';
}

const bucket = 'outrider-plan';
const prefixOf = (set: number): string => `s3://${bucket}/${String(set)}/`;

/** Local files as if they had been uploaded: nothing is. */
const objectsOf = (prepared: PreparedJob): ReadonlyMap<string, readonly SourceObject[]> =>
  new Map(
    prepared.sets.map((files, set) => [
      prefixOf(set),
      files.map(({ path, sizeBytes }) => ({ bucket, key: `${String(set)}${path}`, sizeBytes, etag: '' })),
    ]),
  );

async function sourcesOf(
  spec: JobSpec,
  local: ReadonlyMap<string, readonly SourceObject[]>,
  objects: ObjectStore | undefined,
): Promise<ResolvedSources> {
  const sources = new Map<string, readonly SourceObject[]>();
  for (const [place, stage] of spec.stages.entries()) {
    for (const [number, input] of stage.inputs.entries()) {
      if (!isSource(input)) continue;
      const field = inputField(place, number);
      const here = input.s3.flatMap((uri) => local.get(uri) ?? []);
      const far = input.s3.filter((uri) => !local.has(uri));
      if (far[0] !== undefined && objects === undefined)
        throw new NobodyToAskError(`${far[0]} was not listed, as no service is asked`);
      const found =
        objects === undefined || far.length === 0
          ? []
          : await sourceObjects(objects, { ...input, s3: far }, field);
      sources.set(field, [...here, ...found]);
    }
  }
  return sources;
}

/** Whoever may submit a job may have no right to see what it reads; S3 that is away for now says nothing of that. */
const isUnknowable = (error: unknown): error is Error =>
  error instanceof NobodyToAskError ||
  error instanceof AccessDeniedError ||
  error instanceof StoreRefusedError;

/**
 * Cuts a job's inputs as its submission would, without uploading any: files by their size, objects as `objects` lists them.
 * Where there is nobody to list objects, or they may not be listed, the stages' sizes are left out, and `unsized` says why.
 * Throws `InvalidInputError` for what is wrong, and what the store throws.
 */
export async function sizeJob(prepared: PreparedJob, objects: ObjectStore | undefined): Promise<SizedJob> {
  const local = objectsOf(prepared);
  const spec = parseInput(jobSpecSchema, prepared.specWith([...local.keys()], bucket), 'spec');
  let sources: ResolvedSources;
  try {
    sources = await sourcesOf(spec, local, objects);
  } catch (error) {
    if (!isUnknowable(error)) throw error;
    return { spec, stages: {}, unsized: error.message };
  }
  const place = {
    jobId: 'plan' as JobId,
    nonce: 'plan',
    dataBucket: bucket,
    output: { bucket, key: 'output/' },
  };
  const { plan } = planStages(spec, sources, place);
  const stages = plan.stages.map(({ description, sourceBytes }) => {
    const isRead = description.inputs.some(({ kind }) => kind === 'source');
    const bytes = sourceBytes.reduce((sum, each) => sum + each, 0);
    return [description.name, { tasks: description.tasks, ...(isRead ? { bytes } : {}) }] as const;
  });
  return { spec, stages: Object.fromEntries(stages) };
}
