import { InvalidInputError, underField } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import type { JobSpec, OperatorName } from '../contracts/job-spec.ts';
import { defaultOutputKey, parseUri, uriOf } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import { policyNames } from '../contracts/policy-names.ts';
import { jobGraph } from '../core/model/job-graph.ts';
import { checkKeepers } from '../core/model/kept-outputs.ts';
import { checkOperatorInputs } from '../core/model/operator-inputs.ts';
import { noZonalTier } from '../core/model/plan-stages.ts';
import { checkTaskCounts } from '../core/model/task-counts.ts';
import { policySets } from '../core/policy/policy-sets.ts';
import type { JobGrant } from '../ports/job-access.ts';
import { checkInputsApart, checkOutput, type ClaimingJob } from './claim-output.ts';
import { grantOf, readUris } from './job-grant.ts';

/** What a deployment has to say of specs, besides what they say themselves. */
export interface SpecTerms {
  readonly dataBucket: string;
  /** Whether this deployment gives credentials to stages that ask for them; absent means no. */
  readonly givesCredentials?: boolean;
  /** Whether this deployment has Fargate; absent means yes. */
  readonly hasFargate?: boolean;
  /** Whether this deployment has zones for the tier `zonal`; absent means no. */
  readonly hasZonal?: boolean;
  /** Throws `InvalidInputError` where an operator's options are wrong. */
  readonly checkOperator: (operator: OperatorName, options: Readonly<Record<string, unknown>>) => void;
  /**
   * Throws `InvalidInputError` where no session of a job could name what it asks for; absent: sessions can name anything.
   */
  readonly checkGrant?: (grant: JobGrant) => void;
}

/** Checks everything of a spec that can be checked without reading its inputs. Throws `InvalidInputError`. */
export function checkSpec(
  spec: JobSpec,
  { checkOperator, givesCredentials, hasFargate, hasZonal }: Omit<SpecTerms, 'dataBucket' | 'checkGrant'>,
): void {
  const graph = jobGraph(spec);
  if (spec.storage === 'zonal' && hasZonal !== true) throw noZonalTier();
  checkKeepers(spec, hasFargate);
  if (!policySets.has(spec.policy)) {
    const known = policyNames.filter((name) => policySets.has(name)).join(', ');
    throw new InvalidInputError(`policy must be one of those built so far (${known}), not "${spec.policy}"`, {
      field: 'policy',
    });
  }
  for (const [index, stage] of spec.stages.entries()) {
    if (stage.credentials === true && givesCredentials !== true) {
      const field = `stages[${index}].credentials`;
      throw new InvalidInputError(
        `${field} must be left out: this deployment gives user code and programs no credentials`,
        { field },
      );
    }
    if (stage.worker.kind === 'fargate' && hasFargate === false) {
      const field = `stages[${index}].worker.kind`;
      throw new InvalidInputError(
        `${field} must be "lambda": this deployment has no Fargate (deploy it with -c fargate=on)`,
        { field },
      );
    }
    if (stage.operator === undefined) continue;
    try {
      checkOperator(stage.operator, stage.options);
    } catch (cause) {
      if (!(cause instanceof InvalidInputError)) throw cause;
      const inner = cause.details['field'];
      const field = `stages[${index}].${typeof inner === 'string' ? inner : 'options'}`;
      throw new InvalidInputError(`stages[${index}] (${stage.name}): ${cause.message}`, { field }, { cause });
    }
  }
  checkTaskCounts(graph);
  checkOperatorInputs(graph);
}

/**
 * `checkSpec` of the spec in a request, and whether it is small enough to be kept. Throws `InvalidInputError` with the field
 * from the request's root.
 */
export function checkRequestedSpec(spec: JobSpec, terms: SpecTerms): void {
  try {
    checkSpec(spec, terms);
  } catch (cause) {
    throw underField('spec', cause);
  }
  if (JSON.stringify(spec).length <= limits.specBytes) return;
  throw new InvalidInputError(`spec must be at most ${limits.specBytes} characters of JSON`, {
    field: 'spec',
  });
}

/** `s3://bucket/prefix/` where a job writes: where its spec says, else at a place of its own in the data bucket. */
export const outputOf = ({ output }: JobSpec, jobId: JobId, dataBucket: string): string =>
  output ?? uriOf({ bucket: dataBucket, key: defaultOutputKey(jobId) });

/**
 * Checks where a job reads and writes: apart from itself and from what is the system's own, and no more places than its
 * session can name. Throws `InvalidInputError` with the field from the spec's root.
 */
export function checkPlaces(
  job: ClaimingJob & { readonly spec: JobSpec },
  { dataBucket, checkGrant }: Pick<SpecTerms, 'dataBucket' | 'checkGrant'>,
): void {
  checkOutput(job, dataBucket);
  checkInputsApart(job);
  if (checkGrant !== undefined) checkRoom(job, checkGrant);
}

/** Throws what `checkGrant` throws of a job, with the place that the job could do without. */
function checkRoom(
  job: ClaimingJob & { readonly spec: JobSpec },
  checkGrant: NonNullable<SpecTerms['checkGrant']>,
): void {
  const grant = grantOf(job);
  try {
    checkGrant(grant);
  } catch (cause) {
    if (!(cause instanceof InvalidInputError)) throw cause;
    const { field, must } = firstTooMany(job.spec, (sourceBuckets) => {
      try {
        checkGrant({ ...grant, sourceBuckets });
        return true;
      } catch {
        return false;
      }
    });
    throw new InvalidInputError(
      `${field} must ${must}: ${cause.message}`,
      { ...cause.details, field },
      { cause },
    );
  }
}

/**
 * The first address in a bucket that is one too many for a session; the output where that leaves no room for any. Ends after
 * as many buckets as a session has room for, which are some dozens.
 */
function firstTooMany(
  spec: JobSpec,
  fits: (buckets: readonly string[]) => boolean,
): { readonly field: string; readonly must: string } {
  const named = new Set<string>();
  for (const { field, uri } of readUris(spec)) {
    named.add(parseUri(uri)?.bucket ?? '');
    if (fits([...named])) continue;
    if (named.size === 1) break;
    return { field, must: `be in one of the ${named.size - 1} buckets that are named before it` };
  }
  return { field: 'output', must: 'be shorter' };
}
