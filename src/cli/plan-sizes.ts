import { isSource, type JobSpec, jobSpecSchema } from '../contracts/job-spec.ts';
import type { JobId } from '../contracts/ids.ts';
import { parseInput } from '../contracts/invalid.ts';
import { resolveSources } from '../app/plan-job.ts';
import { inputField, planStages, type ResolvedSources } from '../core/model/plan-stages.ts';
import type { SourceObject } from '../core/model/splits.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import type { PreparedJob } from './prepare-inputs.ts';

/** A job that is not to run, and into how many tasks of how many bytes its stages fall. */
export interface SizedJob {
  readonly spec: JobSpec;
  readonly stages: Readonly<Record<string, { readonly tasks: number; readonly bytes?: number }>>;
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
): Promise<ResolvedSources | undefined> {
  const sources = new Map<string, readonly SourceObject[]>();
  for (const [place, stage] of spec.stages.entries()) {
    for (const [number, input] of stage.inputs.entries()) {
      if (!isSource(input)) continue;
      const here = input.s3.flatMap((uri) => local.get(uri) ?? []);
      const far = input.s3.filter((uri) => !local.has(uri));
      if (far.length > 0 && objects === undefined) return undefined;
      const listed = { ...input, s3: far };
      const found =
        far.length === 0 || objects === undefined
          ? new Map<string, readonly SourceObject[]>()
          : await resolveSources(objects, { spec: { ...spec, stages: [{ ...stage, inputs: [listed] }] } });
      sources.set(inputField(place, number), [...here, ...(found.get(inputField(0, 0)) ?? [])]);
    }
  }
  return sources;
}

/**
 * Cuts a job's inputs as its submission would, without uploading any: files by their size, objects as `objects` lists them.
 * Where there is nobody to list objects the stages' sizes are left out. Throws `InvalidInputError` for what is wrong.
 */
export async function sizeJob(prepared: PreparedJob, objects: ObjectStore | undefined): Promise<SizedJob> {
  const local = objectsOf(prepared);
  const spec = parseInput(jobSpecSchema, prepared.specWith([...local.keys()], bucket), 'spec');
  const sources = await sourcesOf(spec, local, objects);
  if (sources === undefined) return { spec, stages: {} };
  const place = {
    jobId: 'plan' as JobId,
    nonce: 'plan',
    dataBucket: bucket,
    output: { bucket, key: 'output/' },
  };
  const { plan } = planStages(spec, sources, place);
  const stages = plan.stages.map(({ description, sourceBytes }) => {
    const bytes = sourceBytes.reduce((sum, each) => sum + each, 0);
    return [description.name, { tasks: description.tasks, ...(bytes === 0 ? {} : { bytes }) }] as const;
  });
  return { spec, stages: Object.fromEntries(stages) };
}
