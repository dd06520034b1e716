import { jobIdPattern, type JobId } from '../../contracts/ids.ts';
import { forecastPrefix, type ObjectRef } from '../../contracts/keys.ts';
import type { EpochMs } from '../../contracts/units.ts';

/** That a job's output lies under a prefix of a bucket, and nobody else's beside it. */
export interface OutputClaim {
  readonly jobId: JobId;
  /** "" for the whole bucket; else it ends in "/". */
  readonly prefix: string;
  readonly claimedAt: EpochMs;
  /** The job has been planned since, so its record was there. A claim is made before the record. */
  readonly isPlanned: boolean;
}

/**
 * Whether one prefix lies in the other. Both end in "/" or are empty, so that `a/b/` and `a/bc/` are apart although
 * their texts begin alike.
 */
export const prefixesOverlap = (one: string, other: string): boolean =>
  one.startsWith(other) || other.startsWith(one);

/** The claims of other jobs that a job's output would meet. */
export const rivalClaims = (
  claims: readonly OutputClaim[],
  { jobId, prefix }: Pick<OutputClaim, 'jobId' | 'prefix'>,
): readonly OutputClaim[] =>
  claims.filter((claim) => claim.jobId !== jobId && prefixesOverlap(claim.prefix, prefix));

/** Prefixes of the data bucket that are the system's: intermediate data and plans, staged inputs, and what it learned. */
const systemPrefixes = ['jobs/', 'input/', forecastPrefix];
const defaultOutputs = 'output/';

/**
 * The prefix of the system's own that an output would meet, or undefined: what the system keeps in its data bucket, and
 * the default outputs of other jobs, which need no claim since nobody can name them as theirs.
 */
export function systemPrefixAt(
  output: ObjectRef,
  { jobId, dataBucket }: { readonly jobId: JobId; readonly dataBucket: string },
): string | undefined {
  if (output.bucket !== dataBucket) return undefined;
  const met = systemPrefixes.find((prefix) => prefixesOverlap(prefix, output.key));
  if (met !== undefined) return met;
  if (defaultOutputs.startsWith(output.key)) return defaultOutputs;
  if (!output.key.startsWith(defaultOutputs)) return undefined;
  const [owner = ''] = output.key.slice(defaultOutputs.length).split('/');
  return jobIdPattern.test(owner) && owner !== jobId ? `${defaultOutputs}${owner}/` : undefined;
}
