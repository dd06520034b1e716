import { mkdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OutputName, ParameterName } from '../contracts/settings.ts';
import { startApiServer } from './api/server.ts';
import { startDynamoDb } from './dynamodb/process.ts';
import { type EcsServer, startEcsServer } from './ecs/server.ts';
import type { FaultHook } from './http/fault-hook.ts';
import type { Credentials } from './http/sigv4.ts';
import { type LambdaServer, startLambdaServer } from './lambda/server.ts';
import { startLogsServer } from './logs/server.ts';
import { readAssembly } from './provision/assembly.ts';
import { createTables } from './provision/create-tables.ts';
import { type LocalDeployment, planDeployment } from './provision/deployment.ts';
import { invokeOn } from './provision/invoke.ts';
import { ProvisionError } from './provision/provision-error.ts';
import { synthesize } from './provision/synthesize.ts';
import { startS3Server } from './s3/server.ts';
import { startStepFunctionsServer } from './sfn/server.ts';

export interface LocalStackOptions {
  /** Holds all data and logs; made if absent. What an earlier stack left in it is there again. */
  readonly stateDir: string;
  /** Loopback ports; absent ones are free ones. */
  readonly ports?: { readonly api?: number };
  /** Attempts that may run at once; by default a core each, at least 2. */
  readonly slots?: number;
  /** CloudFormation parameters, over the defaults for one machine. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Availability zones over which workers are spread, 1 to 6; 3 by default. */
  readonly zones?: number;
  /** Makes requests to the services fail at will. */
  readonly onRequest?: FaultHook;
  /** The cloud assembly to provision from; by default `cdk.out`, synthesized anew if the sources have changed. */
  readonly assemblyDir?: string;
  /** Told what is being done, for a person who waits. */
  readonly log?: (message: string) => void;
}

/** A process that runs user work. */
export interface WorkerProcess {
  readonly kind: 'lambda' | 'fargate';
  /** Of the function or the task family. */
  readonly name: string;
  readonly pid: number;
}

/** A running embedded stack. */
export interface LocalStack {
  /** Of the REST API, without a trailing slash. */
  readonly apiUrl: string;
  readonly region: string;
  readonly credentials: Credentials;
  /** CloudFormation outputs of all stacks, by the names in `OutputName`. */
  readonly outputs: Readonly<Record<string, string>>;
  /** What an AWS SDK needs in its environment: endpoints, region, keys. */
  readonly environment: Readonly<Record<string, string>>;
  /** Living processes of functions and tasks, for those who watch or harm them. */
  processes(): WorkerProcess[];
  /** Ends all processes and servers; may be called again. */
  stop(): Promise<void>;
}

const REGION = 'us-east-1';
/** Not secret: the servers listen on the loopback interface, and tools want keys. */
const CREDENTIALS: Credentials = { accessKeyId: 'outrider', secretAccessKey: 'outrider-local-secret' };
const MAX_ZONES = 6;
const DEFAULT_ZONES = 3;
/** Besides the slots: resident schedulers, one for each running job, and the short steps of others. */
const COORDINATOR_CONCURRENCY = 64;

/** Faster than on AWS: one machine has no networks to wait for, and people watch. */
const LOCAL_TUNING: Readonly<Record<string, string>> = {
  [ParameterName.tickMs]: '250',
  [ParameterName.heartbeatMs]: '2000',
  [ParameterName.leaseMs]: '5000',
  [ParameterName.claimLeaseMs]: '15000',
};

const defaultAssemblyDir = fileURLToPath(new URL('../../cdk.out', import.meta.url));

/**
 * Starts the whole system on this machine, provisioned from the synthesized CDK app.
 *
 * @throws PortTakenError; SynthesisError; ProvisionError where a template is wrong, with resource and property;
 * DynamoDbUnavailableError. Nothing is left running then.
 */
export async function startLocalStack(options: LocalStackOptions): Promise<LocalStack> {
  const closers: (() => Promise<void>)[] = [];
  try {
    const deployment = await loadDeployment(options);
    options.log?.('starting the embedded services');
    return await startServers(options, deployment, closers);
  } catch (cause) {
    await closeAll(closers);
    throw cause;
  }
}

async function loadDeployment(options: LocalStackOptions): Promise<LocalDeployment> {
  const assemblyDir = options.assemblyDir ?? defaultAssemblyDir;
  if (options.assemblyDir === undefined) {
    options.log?.('synthesizing the CDK app if it has changed');
    await synthesize({ outDir: assemblyDir });
  }
  const letters = 'abcdef'.slice(0, zonesOf(options));
  return planDeployment(await readAssembly(assemblyDir), {
    region: REGION,
    availabilityZones: [...letters].map((letter) => `${REGION}${letter}`),
    parameters: {
      ...LOCAL_TUNING,
      [ParameterName.totalSlots]: String(slotsOf(options)),
      ...options.parameters,
    },
  });
}

const slotsOf = ({ slots }: LocalStackOptions): number => slots ?? Math.max(2, availableParallelism());

function zonesOf({ zones = DEFAULT_ZONES }: LocalStackOptions): number {
  // Templates name two zones at least, since AWS has no region with fewer.
  return Math.min(MAX_ZONES, Math.max(2, zones));
}

/** Last started, first closed. */
async function closeAll(closers: readonly (() => Promise<void>)[]): Promise<void> {
  for (const close of closers.toReversed()) await close().catch(() => undefined);
}

interface Common {
  readonly credentials: Credentials;
  readonly region: string;
  readonly onRequest?: FaultHook;
}

async function startServers(
  options: LocalStackOptions,
  deployment: LocalDeployment,
  closers: (() => Promise<void>)[],
): Promise<LocalStack> {
  const stateDir = resolve(options.stateDir);
  await mkdir(stateDir, { recursive: true });
  const common: Common = {
    credentials: CREDENTIALS,
    region: REGION,
    ...(options.onRequest === undefined ? {} : { onRequest: options.onRequest }),
  };
  const opened = async <T extends { close(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    const server = await starting;
    closers.push(() => server.close());
    return server;
  };
  // Filled below: processes are started later, when every endpoint is known.
  const environment: Record<string, string> = sdkIdentity();

  const starting = [
    opened(startDynamoDb({ dir: join(stateDir, 'dynamodb') })),
    opened(startS3Server({ ...common, rootDir: join(stateDir, 's3') })),
    opened(startLambda(options, deployment, { common, stateDir, environment })),
    opened(startEcs(options, deployment, { common, stateDir, environment })),
    opened(startLogsServer({ ...common, logGroups: logDirectories(deployment, stateDir) })),
  ] as const;
  // Waits for all even if one fails, so that each can be closed.
  await Promise.allSettled(starting);
  const [dynamodb, s3, lambda, ecs, logs] = await Promise.all(starting);
  await Promise.all([
    createTables(dynamodb.endpoint, REGION, deployment.tables),
    ...deployment.buckets.map((name) => s3.createBucket(name)),
  ]);
  const invoke = invokeOn(lambda);
  const states = await opened(
    startStepFunctionsServer({
      ...common,
      stateMachines: deployment.stateMachines,
      invokeLambda: invoke,
      runDir: join(stateDir, 'executions'),
    }),
  );
  Object.assign(environment, {
    AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: logs.endpoint,
    AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
    AWS_ENDPOINT_URL_ECS: ecs.endpoint,
    AWS_ENDPOINT_URL_LAMBDA: lambda.endpoint,
    AWS_ENDPOINT_URL_S3: s3.endpoint,
    AWS_ENDPOINT_URL_SFN: states.endpoint,
  });
  const [api] = deployment.apis;
  if (api === undefined) throw new ProvisionError('the templates describe no stage of a REST API');
  const { stageName, routes } = api;
  const front = await opened(
    startApiServer({ ...common, port: options.ports?.api ?? 0, stageName, routes, invoke }),
  );
  const outputs = localOutputs(deployment, api.awsUrl, front.endpoint);
  return {
    apiUrl: (outputs[OutputName.apiUrl] ?? front.endpoint).replace(/\/$/, ''),
    region: REGION,
    credentials: CREDENTIALS,
    outputs,
    environment,
    processes: () => workerProcesses(lambda, ecs),
    stop: stopOnce(closers),
  };
}

interface Surroundings {
  readonly common: Common;
  readonly stateDir: string;
  readonly environment: Readonly<Record<string, string>>;
}

function startLambda(
  options: LocalStackOptions,
  deployment: LocalDeployment,
  { common, stateDir, environment }: Surroundings,
): Promise<LambdaServer> {
  const zones = zonesOf(options);
  return startLambdaServer({
    ...common,
    functions: deployment.functions,
    maxConcurrency: slotsOf(options) + COORDINATOR_CONCURRENCY,
    logDir: lambdaLogs(stateDir),
    scratchDir: join(stateDir, 'scratch'),
    nodePath: process.execPath,
    extraEnvironment: environment,
    zoneOf: (index) => `use1-az${String(1 + (index % zones))}`,
  });
}

function startEcs(
  options: LocalStackOptions,
  deployment: LocalDeployment,
  { common, stateDir, environment }: Surroundings,
): Promise<EcsServer> {
  return startEcsServer({
    ...common,
    clusters: deployment.clusters,
    taskDefinitions: deployment.taskDefinitions,
    maxTasks: slotsOf(options),
    logDir: ecsLogs(stateDir),
    scratchDir: join(stateDir, 'scratch'),
    nodePath: process.execPath,
    extraEnvironment: environment,
    zoneOf: ({ subnetId }) => deployment.subnetZones.get(subnetId) ?? `${REGION}a`,
  });
}

const lambdaLogs = (stateDir: string): string => join(stateDir, 'logs', 'lambda');
const ecsLogs = (stateDir: string): string => join(stateDir, 'logs', 'ecs');

function logDirectories({ logGroups }: LocalDeployment, stateDir: string) {
  return logGroups.map(({ name, functions, taskFamilies }) => ({
    name,
    directories: [
      ...functions.map((fn) => join(lambdaLogs(stateDir), fn)),
      ...taskFamilies.map((family) => join(ecsLogs(stateDir), family)),
    ],
  }));
}

function sdkIdentity(): Record<string, string> {
  return {
    AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
    AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    AWS_REGION: REGION,
    AWS_DEFAULT_REGION: REGION,
    // Else an SDK that lacks something asks the metadata service of EC2, and waits.
    AWS_EC2_METADATA_DISABLED: 'true',
  };
}

/** Outputs hold the address that API Gateway would have; here it is the front's. */
function localOutputs(
  { outputs }: LocalDeployment,
  awsUrl: string,
  endpoint: string,
): Record<string, string> {
  const local = Object.entries(outputs).map(
    ([name, value]) => [name, value.replace(awsUrl, endpoint)] as const,
  );
  const found = Object.fromEntries(local);
  const missing = Object.values(OutputName).find((name) => found[name] === undefined);
  if (missing !== undefined) throw new ProvisionError(`no stack has an output "${missing}"`);
  return found;
}

function workerProcesses(lambda: LambdaServer, ecs: EcsServer): WorkerProcess[] {
  const environments = lambda
    .environments()
    .flatMap(({ functionName, pid }): WorkerProcess[] =>
      pid === undefined ? [] : [{ kind: 'lambda', name: functionName, pid }],
    );
  const tasks = ecs
    .tasks()
    .flatMap(({ family, pid, lastStatus }): WorkerProcess[] =>
      pid === undefined || lastStatus === 'STOPPED' ? [] : [{ kind: 'fargate', name: family, pid }],
    );
  return [...environments, ...tasks];
}

function stopOnce(closers: readonly (() => Promise<void>)[]): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  return () => (stopping ??= closeAll(closers));
}
