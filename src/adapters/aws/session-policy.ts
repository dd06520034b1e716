import { InvalidInputError } from '../../contracts/errors.ts';
import { jobDataPrefix, jobPrefix } from '../../contracts/keys.ts';
import type { JobGrant } from '../../ports/job-access.ts';

/** What STS takes as the text of a session's policy. */
const POLICY_CHARS = 2_048;

/**
 * The policy of a job's session. The role bounds all jobs alike and keeps each to its own records and data; this
 * narrows it to the buckets that the job reads and the one prefix that it writes to, and to directory buckets those jobs
 * whose data is there. It denies what lies outside of them and so can never widen what the role allows.
 *
 * Throws `InvalidInputError` where the names do not fit: a session without them would reach further.
 */
export function sessionPolicy(
  { jobId, output, sourceBuckets, isZonal = false }: JobGrant,
  { dataBucket, partition }: { readonly dataBucket: string; readonly partition: string },
): string {
  const objects = (bucket: string, prefix: string): string =>
    `arn:${partition}:s3:::${bucket}/${literal(prefix)}*`;
  const own = objects(dataBucket, jobPrefix(jobId));
  const ownData = objects(dataBucket, jobDataPrefix(jobId));
  const policy = {
    Version: '2012-10-17',
    Statement: [
      { Effect: 'Allow', Action: '*', Resource: '*' },
      {
        Effect: 'Deny',
        Action: 's3:GetObject',
        NotResource: [own, ...sourceBuckets.map((bucket) => objects(bucket, ''))],
      },
      {
        Effect: 'Deny',
        Action: ['s3:PutObject', 's3:AbortMultipartUpload', 's3:DeleteObject'],
        NotResource: [ownData, objects(output.bucket, output.key)],
      },
      ...(isZonal ? [] : [{ Effect: 'Deny', Action: 's3express:*', Resource: '*' }]),
    ],
  };
  const text = inLatin1(JSON.stringify(policy));
  if (text.length <= POLICY_CHARS) return text;
  throw new InvalidInputError(
    `the job names too many source buckets or too long an output prefix: the policy of its session takes ` +
      `${String(text.length)} characters of at most ${String(POLICY_CHARS)}`,
    { jobId, sourceBuckets: sourceBuckets.length },
  );
}

/** The partition of AWS, such as `aws-cn`, that a resource with this ARN is in. */
export const partitionOf = (arn: string): string => arn.split(':')[1] ?? 'aws';

/** A key as a pattern that matches it alone: policies read `*`, `?` and `$` in ARNs as more than themselves. */
const literal = (key: string): string => key.replaceAll(/[*?$]/g, (char) => `\${${char}}`);

/** Policies may hold Latin-1 only; JSON can write every other character by its code. */
const inLatin1 = (json: string): string =>
  json.replaceAll(/[^\u0020-\u00ff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
