import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Node } from 'constructs';
import { z } from 'zod';
import { limits } from '../src/contracts/limits.ts';

const bucketName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
    'must be the name of a bucket, without "s3://" and without a key',
  );

/** Buckets come as an array from cdk.json, and as comma-separated text from `cdk synth -c inputBuckets=a,b`. */
const bucketNames = z
  .union([z.string().transform((text) => text.split(',').filter((name) => name !== '')), z.array(z.string())])
  .pipe(z.array(bucketName).max(50))
  .default([]);

const wholeNumber = z.coerce.number().int();

/** A switch comes as a boolean from cdk.json, and as text from `cdk synth -c tenantIsolation=true`. */
const flag = z.union([z.boolean(), z.literal(['true', 'false']).transform((text) => text === 'true')], {
  error: 'must be true or false',
});

const dayMs = 24 * 3_600_000;
/** Days after which storage may drop by itself what a job left: no job lives so long. */
export const leftoverDays = Math.ceil(limits.leftoversKeptMs / dayMs);
const tooFew = `must be at least ${leftoverDays}: a job may live up to ${limits.longestJobMs / dayMs} days, and needs it until then`;

const configSchema = z.strictObject({
  inputBuckets: bucketNames,
  outputBuckets: bucketNames,
  logRetentionDays: z.coerce
    .number()
    .min(leftoverDays, tooFew)
    .pipe(z.enum(RetentionDays))
    .default(RetentionDays.ONE_MONTH),
  intermediateDays: wholeNumber.min(leftoverDays, tooFew).max(365).default(leftoverDays),
  tenantIsolation: flag.default(false),
});

/** What a deployment may choose at synthesis. What it may choose later are CloudFormation parameters. */
export interface OutriderConfig {
  /** Buckets besides the system's own that jobs may read. */
  readonly inputBuckets: readonly string[];
  /** Buckets besides the system's own that jobs may write their output to. */
  readonly outputBuckets: readonly string[];
  readonly logRetentionDays: RetentionDays;
  /** Days until what a job left under `jobs/` is removed; more than the longest job may live. */
  readonly intermediateDays: number;
  /**
   * Whether an environment of a worker function serves jobs of one name only. Lambda fixes it when a function is
   * created, so to change it the stacks that name the functions must be deployed anew.
   */
  readonly tenantIsolation: boolean;
}

const configKeys = [
  'inputBuckets',
  'outputBuckets',
  'logRetentionDays',
  'intermediateDays',
  'tenantIsolation',
] as const;

/**
 * The settings in the context of an app; defaults where it says nothing.
 *
 * @throws Error naming the context key at fault and what would be right.
 */
export function readConfig(node: Node): OutriderConfig {
  const given = configKeys.map((key): [string, unknown] => [key, node.tryGetContext(key)]);
  const parsed = configSchema.safeParse(Object.fromEntries(given.filter(([, value]) => value !== undefined)));
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new Error(`context "${String(issue?.path[0])}": ${issue?.message ?? 'is wrong'}`);
}
