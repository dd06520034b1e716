import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import type { Node } from 'constructs';
import * as z from 'zod';
import { limits } from '../src/contracts/limits.ts';
import { ConfigError, contextProblem, refuseUnknown } from './context.ts';

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

/** A whole number comes as such from cdk.json, and as text from `-c`; anything else is one problem, told in words. */
const wholeNumber = z
  .union(
    [
      z.number(),
      z
        .string()
        .regex(/^\d{1,9}$/)
        .transform(Number),
    ],
    {
      error: 'must be a whole number',
    },
  )
  .pipe(z.int({ error: 'must be a whole number' }));

/** Lambda's quota of an account may be raised to tens of thousands. */
const concurrency = wholeNumber.pipe(
  z
    .number()
    .min(1, 'must be at least 1: a function that may run none at once never runs')
    .max(100_000, 'must be at most 100000'),
);

const listOf = (pattern: RegExp, problem: string) =>
  z
    .union([z.string().transform((text) => text.split(',').filter((id) => id !== '')), z.array(z.string())], {
      error: problem,
    })
    .pipe(z.array(z.string().regex(pattern, problem)).min(1, problem).max(16));

const retentions = Object.values(RetentionDays)
  .filter((days) => typeof days === 'number')
  .map(Number);

/** A switch comes as a boolean from cdk.json, and as text from `cdk synth -c tenantIsolation=true`. */
const flag = z.union([z.boolean(), z.literal(['true', 'false']).transform((text) => text === 'true')], {
  error: 'must be true or false',
});

/** As text, or as a switch, which is on or off. */
const fargate = z.union(
  [z.literal(['on', 'off', 'spot']), flag.transform((isOn): 'on' | 'off' => (isOn ? 'on' : 'off'))],
  {
    error: 'must be on, off or spot',
  },
);

const dayMs = 24 * 3_600_000;
/** Days after which storage may drop by itself what a job left: no job lives so long. */
export const leftoverDays = Math.ceil(limits.leftoversKeptMs / dayMs);
const tooFew = `must be at least ${leftoverDays}: a job may live up to ${limits.longestJobMs / dayMs} days, and needs it until then`;

const oneOfRetentions = `must be one of the lengths that CloudWatch has: ${retentions
  .filter((days) => days >= leftoverDays)
  .sort((a, b) => a - b)
  .join(', ')}`;

/** The id of a zone, such as use1-az4 or usw2-lax1-az1. */
const zoneId = String.raw`[a-z0-9]+(-[a-z0-9]+)*-az\d+`;

const configSchema = z.strictObject({
  inputBuckets: bucketNames,
  outputBuckets: bucketNames,
  kmsKeys: listOf(
    /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/[A-Za-z0-9-]{1,64}$/,
    'must be ARNs of keys such as arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab, with commas between them',
  ).exactOptional(),
  logRetentionDays: wholeNumber
    .pipe(z.number().min(leftoverDays, tooFew))
    .pipe(z.enum(RetentionDays, { error: oneOfRetentions }))
    .default(RetentionDays.ONE_MONTH),
  intermediateDays: wholeNumber
    .pipe(z.number().min(leftoverDays, tooFew).max(365, 'must be at most 365'))
    .default(leftoverDays),
  tenantIsolation: flag.default(false),
  name: z
    .string()
    .regex(
      /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/,
      'must be letters a-z, digits and single hyphens, and begin with a letter, such as "dev"',
    )
    .max(20, 'must be at most 20 characters')
    .exactOptional(),
  vpcId: z
    .string()
    .regex(/^vpc-[0-9a-f]{8,17}$/, 'must look like vpc-0123456789abcdef0')
    .exactOptional(),
  subnets: listOf(
    /^subnet-[0-9a-f]{8,17}$/,
    'must be ids such as subnet-0123456789abcdef0, with commas between them',
  ).exactOptional(),
  subnetZones: listOf(
    new RegExp(`^[a-z]{2}(-[a-z0-9]+)+(=${zoneId})?$`),
    'must be names of zones such as us-east-1a, or names with ids such as us-east-1a=use1-az4, with commas between them',
  )
    .transform((zones) =>
      zones.map((zone): SubnetZone => {
        const [name = '', id] = zone.split('=');
        return id === undefined ? { name } : { name, id };
      }),
    )
    .exactOptional(),
  taskZones: listOf(
    new RegExp(`^${zoneId}$`),
    'must be ids of zones such as use1-az4, with commas between them',
  )
    .refine((zones) => new Set(zones).size === zones.length, 'must name each zone once')
    .exactOptional(),
  securityGroups: listOf(
    /^sg-[0-9a-f]{8,17}$/,
    'must be ids such as sg-0123456789abcdef0, with commas between them',
  ).exactOptional(),
  publicIps: flag.exactOptional(),
  apiLogs: flag.default(false),
  duckdb: flag.default(false),
  fargate: fargate.default('on'),
  fargateImage: z
    .string()
    .regex(
      /^[a-zA-Z0-9][a-zA-Z0-9._:/@-]{0,254}$/,
      'must be the name of an image, such as public.ecr.aws/docker/library/python:3.13-slim',
    )
    .exactOptional(),
  python: flag.default(false),
  claimLeaseSeconds: wholeNumber
    .pipe(
      z
        .number()
        .min(60, 'must be at least 60: Lambda keeps asynchronous events no shorter')
        .max(21_600, 'must be at most 21600: Lambda keeps asynchronous events no longer'),
    )
    .default(900),
  // One execution of the scheduler's function enlists jobs while others of it are residents, which run for many minutes.
  coordinatorConcurrency: concurrency
    .refine((executions) => executions >= 2, {
      error: 'must be at least 2: while one scheduler serves jobs another enlists new ones',
    })
    .exactOptional(),
  workerConcurrency: concurrency.exactOptional(),
});

/** The zone of a subnet by its name and, where it is told, its id, which that name has in this account alone. */
interface SubnetZone {
  readonly name: string;
  readonly id?: string;
}

/** What a deployment may choose at synthesis. What it may choose later are CloudFormation parameters. */
export interface OutriderConfig {
  /** Buckets besides the system's own that jobs may read. */
  readonly inputBuckets: readonly string[];
  /** Buckets besides the system's own that jobs may write their output to. */
  readonly outputBuckets: readonly string[];
  /** ARNs of the KMS keys by which those buckets are encrypted. Absent: S3's own encrypt them. */
  readonly kmsKeys?: readonly string[];
  readonly logRetentionDays: RetentionDays;
  /** Days until what a job left under `jobs/` is removed; more than the longest job may live. */
  readonly intermediateDays: number;
  /**
   * Whether an environment of a worker function serves jobs of one name only. Lambda fixes it when a function is
   * created, so to change it the stacks that name the functions must be deployed anew.
   */
  readonly tenantIsolation: boolean;
  /** Tells this deployment's stacks, and all that is named, from those of others in the account; absent: the one without a name. */
  readonly name?: string;
  /** Where Fargate tasks run instead of in a network of the deployment's own: `subnets`, with either of the others. */
  readonly vpcId?: string;
  readonly subnets?: readonly string[];
  /**
   * The zones of these subnets, in their order, so that tasks can be sent to where their input lies, and with ids leave
   * theirs in zones of the tier `zonal`. Absent: they are not.
   */
  readonly subnetZones?: readonly SubnetZone[];
  /**
   * Ids of the zones in which a network of the deployment's own has its subnets, so that they are those that have S3 Express
   * One Zone. Absent: the first ones of the region, whichever those are in this account.
   */
  readonly taskZones?: readonly string[];
  readonly securityGroups?: readonly string[];
  /** Whether tasks get public addresses: needed in subnets that reach AWS by an internet gateway. */
  readonly publicIps?: boolean;
  /**
   * Whether API Gateway logs requests: it needs a role of its own in the account's settings, which is nobody's alone
   * and stays when stacks go, so that whoever wants it has to have set it.
   */
  readonly apiLogs: boolean;
  /**
   * Whether workers bring DuckDB: `sql` stages need it, and group-bys and joins of CSV are several times as fast with it. npm
   * fetches it for the workers' kind of machine at synthesis, 70 MB.
   */
  readonly duckdb: boolean;
  /**
   * Whether there is Fargate, for stages that ask for it and for tasks that outlast Lambda: `spot` for attempts whose
   * loss costs least, too. `off` needs no Docker, and makes no cluster and no network.
   */
  readonly fargate: 'on' | 'off' | 'spot';
  /**
   * Image, with glibc and for arm64, in which the workers on Fargate run, for programs that `exec` stages need; Node and
   * the worker are laid beside what is in it. Absent: one with Node alone.
   */
  readonly fargateImage?: string;
  /** Whether the workers on Lambda have Python beside Node, for programs of `exec`: without a container and Docker. */
  readonly python: boolean;
  /**
   * How long a launch may wait in Lambda's queue for an environment: the queue drops it then, and the scheduler launches
   * it anew. Longer than the longest pause between two tries of the queue, five minutes.
   */
  readonly claimLeaseSeconds: number;
  /**
   * Executions that Lambda reserves for each of the coordinator's functions, the steps of jobs, who is told of workers'
   * ends, and the API: so many are theirs whatever else the account runs, and no more. Absent: none, as in an account of
   * so few that Lambda, which keeps 100 of them unreserved, would refuse the deployment.
   */
  readonly coordinatorConcurrency?: number;
  /** Executions of each size of worker that may run at once, and are reserved for it. Absent: as many as the account has. */
  readonly workerConcurrency?: number;
}

const configKeys = Object.keys(configSchema.shape);

/**
 * The settings in the context of an app; defaults where it says nothing.
 *
 * @throws ConfigError naming the context key at fault and what would be right.
 */
export function readConfig(node: Node): OutriderConfig {
  refuseUnknown(Object.keys(z.record(z.string(), z.unknown()).parse(node.getAllContext())), configKeys);
  const values = configKeys.map((key): [string, unknown] => [key, node.tryGetContext(key)]);
  const given = Object.fromEntries(values.filter(([, value]) => value !== undefined));
  const parsed = configSchema.safeParse(given);
  if (!parsed.success) throw contextProblem(parsed.error, given);
  checkNetwork(parsed.data);
  return parsed.data;
}

/** A network is given by its subnets, and the VPC or security groups; without them it is the deployment's own. */
function checkNetwork(config: OutriderConfig): void {
  const { vpcId, subnets, subnetZones, taskZones, securityGroups, publicIps } = config;
  if (subnets !== undefined && taskZones !== undefined)
    throw new ConfigError(
      'context "taskZones": is for a network of the deployment’s own; the zones of "subnets" are told by "subnetZones"',
    );
  if (subnets !== undefined && vpcId === undefined && securityGroups === undefined) {
    throw new ConfigError(
      'context "subnets": needs "securityGroups", or "vpcId" for a security group to be made there',
    );
  }
  const [alone] = Object.entries({ vpcId, subnetZones, securityGroups, publicIps }).filter(
    ([, value]) => value !== undefined,
  );
  if (subnets === undefined && alone !== undefined)
    throw new ConfigError(`context "${alone[0]}": needs "subnets", in which the tasks are to run`);
  if (subnets !== undefined && subnetZones !== undefined && subnets.length !== subnetZones.length) {
    throw new ConfigError(
      `context "subnetZones": must name the zone of each of the ${String(subnets.length)} "subnets", in their order, not ${String(subnetZones.length)} zones`,
    );
  }
  checkZones(subnetZones ?? []);
}

/** Ids are told of all zones or of none, and one of each: else tasks of one zone would seem to run in two. */
function checkZones(zones: readonly SubnetZone[]): void {
  const first = new Map<string, SubnetZone>();
  for (const zone of zones) {
    const { name, id } = zone;
    if ((id === undefined) !== (zones[0]?.id === undefined))
      throw new ConfigError(
        `context "subnetZones": must tell the ids of all zones or of none, and that of ${zones.find((each) => each.id === undefined)?.name ?? ''} is missing`,
      );
    const known = first.get(name) ?? (id === undefined ? undefined : first.get(id)) ?? zone;
    if (known.name !== name || known.id !== id)
      throw new ConfigError(
        `context "subnetZones": must tell one id of each zone, not both ${textOf(known)} and ${textOf(zone)}`,
      );
    first.set(name, zone);
    if (id !== undefined) first.set(id, zone);
  }
}

const textOf = ({ name, id }: SubnetZone): string => (id === undefined ? name : `${name}=${id}`);
