import { invariant } from '../contracts/errors.ts';
import { isSource } from '../contracts/job-spec.ts';
import { parseUri } from '../contracts/keys.ts';
import { taskFilesOf } from '../contracts/task-files.ts';
import type { JobRecord } from '../contracts/records.ts';
import type { JobGrant } from '../ports/job-access.ts';

/** What the attempts of a job need rights for, by its spec. */
export function grantOf(job: Pick<JobRecord, 'jobId' | 'spec' | 'output'>): JobGrant {
  const output = parseUri(job.output);
  invariant(output !== undefined, 'a running job has no output', { jobId: job.jobId });
  const uris = job.spec.stages.flatMap(({ inputs, code, operator, options }) => [
    ...inputs.flatMap((input) => (isSource(input) ? input.s3 : [])),
    ...(code === undefined ? [] : [code.s3]),
    ...(operator === 'exec' ? taskFilesOf(options).map(({ s3 }) => s3) : []),
  ]);
  const buckets = uris.flatMap((uri) => parseUri(uri)?.bucket ?? []);
  const zonal = job.spec.storage === 'zonal' ? { isZonal: true } : {};
  return { jobId: job.jobId, output, sourceBuckets: [...new Set(buckets)].toSorted(), ...zonal };
}
