import { invariant } from '../contracts/errors.ts';
import { isSource, type JobSpec, type StageSpec } from '../contracts/job-spec.ts';
import { parseUri } from '../contracts/keys.ts';
import { taskFilesOf } from '../contracts/task-files.ts';
import type { JobRecord } from '../contracts/records.ts';
import { inputField } from '../core/model/job-graph.ts';
import type { JobGrant } from '../ports/job-access.ts';

/** The addresses of a job's inputs, each with the path of its field. */
export const inputUris = ({ stages }: JobSpec): readonly { readonly field: string; readonly uri: string }[] =>
  stages.flatMap((stage, index) => urisOfInputs(stage, index));

const urisOfInputs = ({ inputs }: StageSpec, index: number) =>
  inputs.flatMap((input, number) =>
    isSource(input)
      ? input.s3.map((uri, place) => ({ field: `${inputField(index, number)}.s3[${place}]`, uri }))
      : [],
  );

/** The addresses that the attempts of a job read, each with the path of its field. Throws `InvalidInputError` as `taskFilesOf`. */
export const readUris = ({ stages }: JobSpec): readonly { readonly field: string; readonly uri: string }[] =>
  stages.flatMap((stage, index) => {
    const { code, operator, options } = stage;
    const at = (place: string, uri: string) => ({ field: `stages[${index}].${place}`, uri });
    return [
      ...urisOfInputs(stage, index),
      ...(code === undefined ? [] : [at('code.s3', code.s3)]),
      ...(operator === 'exec'
        ? taskFilesOf(options).map(({ s3 }, place) => at(`options.files[${place}].s3`, s3))
        : []),
    ];
  });

/** What the attempts of a job need rights for, by its spec. */
export function grantOf(job: Pick<JobRecord, 'jobId' | 'spec' | 'output'>): JobGrant {
  const output = parseUri(job.output);
  invariant(output !== undefined, 'a running job has no output', { jobId: job.jobId });
  const buckets = readUris(job.spec).flatMap(({ uri }) => parseUri(uri)?.bucket ?? []);
  const zonal = job.spec.storage === 'zonal' ? { isZonal: true } : {};
  return { jobId: job.jobId, output, sourceBuckets: [...new Set(buckets)].toSorted(), ...zonal };
}
