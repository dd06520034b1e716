import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { handedFilesSetting } from '../contracts/handed-files.ts';
import { OutputName, ParameterName, Setting, zonalZoneParameters } from '../contracts/settings.ts';
import { startApiServer } from './api/server.ts';
import { whyNoRoom } from './full-disk.ts';
import type { FaultHook } from './http/fault-hook.ts';
import { type Credentials, ownerOf, PrincipalRegistry } from './http/principals.ts';
import { hooksOf } from './inject/hooks.ts';
import type { InjectedCounts, Injection } from './inject/injection.ts';
import { Injector } from './inject/injector.ts';
import { keepPorts, keptPorts, type ServerName } from './kept-ports.ts';
import { readAssembly } from './provision/assembly.ts';
import { type LocalDeployment, planDeployment } from './provision/deployment.ts';
import { ProvisionError } from './provision/provision-error.ts';
import { localRegion, zoneIdOf, zoneNames } from './provision/zone-ids.ts';
import {
  type Closable,
  type Services,
  type ServiceSettings,
  startServices,
} from './provision/start-services.ts';
import { synthesize } from './provision/synthesize.ts';
import { keepNewFilesPrivate, makePrivateDirectory } from './private-files.ts';
import type { ObjectFiles } from './s3/object-files.ts';
import { stackCredentials } from './stack-credentials.ts';
import { WarmUp } from './warm-up.ts';

export interface LocalStackOptions {
  /** Holds all data and logs; made if absent. What an earlier stack left in it is there again. */
  readonly stateDir: string;
  /** Loopback ports; absent ones are free ones. */
  readonly ports?: { readonly api?: number };
  /** Attempts that may run at once; by default a core each, at least 2. */
  readonly slots?: number;
  /**
   * Concurrent executions of the account: then Lambda's queue makes its pauses, and launches that find no room wait for
   * their turn. Absent: as many as the slots and the coordinator need.
   */
  readonly concurrency?: number;
  /** Whether stages may ask for credentials for their user code and programs; they may not by default. */
  readonly userCredentials?: boolean;
  /** CloudFormation parameters, over the defaults for one machine. */
  readonly parameters?: Readonly<Record<string, string>>;
  /** Availability zones over which workers are spread, 2 to 6; 3 by default. */
  readonly zones?: number;
  /** Whether workers may move bytes of objects by files, and not through S3's socket; they may not by default. */
  readonly handsFiles?: boolean;
  /** Whether finished jobs are learned from, as they are by default: in vain where the stack goes with its job. */
  readonly learns?: boolean;
  /** Makes requests to the services fail at will. */
  readonly onRequest?: FaultHook;
  /** `host:port` of proxies before the services that pass requests on as they were signed; may be added to while it runs. */
  readonly hosts?: ReadonlySet<string>;
  /** Stragglers, losses and refused launches, drawn from a seed; comes after `onRequest`. */
  readonly injection?: Injection;
  /** A job is about to be submitted: the processes that it needs first are started at once, side by side. */
  readonly expectsJob?: boolean;
  /** The cloud assembly to provision from; by default `cdk.out`, synthesized anew if the sources have changed. */
  readonly assemblyDir?: string;
  /** Told what is being done, for a person who waits: `synthesizing` only where the sources have changed. */
  readonly onPhase?: (phase: 'synthesizing' | 'starting') => void;
}

/** A process that runs user work. */
export interface WorkerProcess {
  readonly kind: 'lambda' | 'fargate';
  /** Of the function or the task family. */
  readonly name: string;
  readonly pid: number;
  /** ARN of a Fargate task. */
  readonly task?: string;
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
  /** Its objects as files: the kernel moves them, where requests would send their bytes. */
  readonly objectFiles: ObjectFiles;
  /** What its user should know of the data that it found. */
  readonly warnings: readonly string[];
  /** Resolves, with why, where it cannot go on by itself, as on a full disk: it is to be stopped then. */
  readonly failed: Promise<Error>;
  /** Resolves when an execution of a state machine ends, or the signal fires. */
  executionEnded(signal: AbortSignal): Promise<void>;
  /** Living processes of functions and tasks, for those who watch or harm them. */
  processes(): WorkerProcess[];
  /** What has been injected so far; undefined without an injection. */
  injected(): InjectedCounts | undefined;
  /** Ends all processes and servers; may be called again. */
  stop(): Promise<void>;
}

const DEFAULT_ZONES = 3;
/** Faster than on AWS: one machine has no networks to wait for, and people watch. */
const LOCAL_TUNING: Readonly<Record<string, string>> = {
  [ParameterName.tickMs]: '250',
  [ParameterName.heartbeatMs]: '2000',
  [ParameterName.leaseMs]: '5000',
  [ParameterName.claimLeaseMs]: '15000',
  [ParameterName.fargateClaimLeaseMs]: '15000',
};

/** Where Lambda's queue makes its pauses, a launch may lie there for as long as on AWS before it counts as lost. */
const QUEUE_TUNING: Readonly<Record<string, string>> = { [ParameterName.claimLeaseMs]: '900000' };

/** Of a stack for one job: ends of attempts are looked for by how long they take, and nobody else's job has to be found. */
const ONE_JOB_TUNING: Readonly<Record<string, string>> = { [ParameterName.tickMs]: '500' };

const defaultAssemblyDir = fileURLToPath(new URL('../../cdk.out', import.meta.url));
/** A package brings the assembly that was synthesized from its own sources, and has none to synthesize another from. */
const isPackaged = !import.meta.url.endsWith('.ts');

/**
 * Starts the whole system on this machine, provisioned from the synthesized CDK app.
 *
 * @throws PortTakenError; SynthesisError; ProvisionError where a template is wrong, with resource and property;
 * DynamoDbUnavailableError; NotPrivateError where the state directory is a link or another user's. Nothing is left running then.
 */
export async function startLocalStack(options: LocalStackOptions): Promise<LocalStack> {
  const closers: (() => Promise<void>)[] = [];
  try {
    const deployment = await loadDeployment(options);
    options.onPhase?.('starting');
    return await startServers(options, deployment, closers);
  } catch (cause) {
    await closeAll(closers);
    throw cause;
  }
}

async function loadDeployment(options: LocalStackOptions): Promise<LocalDeployment> {
  const assemblyDir = options.assemblyDir ?? defaultAssemblyDir;
  if (options.assemblyDir === undefined && !isPackaged) {
    await synthesize({
      outDir: assemblyDir,
      onWork: () => {
        options.onPhase?.('synthesizing');
      },
    });
  }
  return planDeployment(await readAssembly(assemblyDir), {
    region: localRegion,
    availabilityZones: zoneNames.slice(0, zonesOf(options)),
    parameters: {
      ...LOCAL_TUNING,
      ...(options.concurrency === undefined ? {} : QUEUE_TUNING),
      ...(options.expectsJob === true ? ONE_JOB_TUNING : {}),
      [ParameterName.totalSlots]: String(slotsOf(options)),
      [ParameterName.userCredentials]: String(options.userCredentials ?? false),
      ...zonalZones(options),
      ...options.parameters,
    },
  });
}

const slotsOf = ({ slots }: LocalStackOptions): number => slots ?? Math.max(2, availableParallelism());

function zonesOf({ zones = DEFAULT_ZONES }: LocalStackOptions): number {
  // Templates name two zones at least, since AWS has no region with fewer.
  return Math.min(zoneNames.length, Math.max(2, zones));
}

/** The zones that have a directory bucket: as many of the stack's as there are parameters. */
const zonalZones = (options: LocalStackOptions): Record<string, string> =>
  Object.fromEntries(
    zonalZoneParameters.map((name, place) => [name, place < zonesOf(options) ? zoneIdOf(place) : '']),
  );

/** Last started, first closed. */
async function closeAll(closers: readonly (() => Promise<void>)[]): Promise<void> {
  for (const close of closers.toReversed()) await close().catch(() => undefined);
}

async function startServers(
  options: LocalStackOptions,
  deployment: LocalDeployment,
  closers: (() => Promise<void>)[],
): Promise<LocalStack> {
  const stateDir = resolve(options.stateDir);
  await makePrivateDirectory(stateDir);
  keepNewFilesPrivate();
  const credentials = await stackCredentials(stateDir);
  const principals = new PrincipalRegistry();
  principals.add({ credentials, principal: ownerOf(credentials) });
  const onOpen = (service: Closable): void => void closers.push(() => service.close());
  const running: { services?: Services } = {};
  const injector = injectorFor(options, deployment, { running, onOpen });
  const settings: ServiceSettings = {
    credentials,
    principals,
    region: localRegion,
    ...(options.hosts === undefined ? {} : { hosts: options.hosts }),
    ...hooksOf(options.onRequest, injector),
  };
  const environment: Record<string, string> = { ...sdkIdentity(credentials), ...choicesOf(options) };
  const ready = Promise.withResolvers<undefined>();
  const failed = Promise.withResolvers<Error>();
  const warmUp = options.expectsJob === true ? new WarmUp(deployment, slotsOf(options)) : undefined;
  const kept = await keptPorts(stateDir);
  const services = await startServices({
    settings,
    ports: kept,
    deployment,
    stateDir,
    slots: slotsOf(options),
    ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
    ...{ zones: zonesOf(options), handsFiles: handsFilesOf(options), environment },
    ...{ ready: ready.promise, onOpen, onFailure: failed.resolve },
    onStep: () => warmUp?.beginsToRun(),
  });
  Object.assign(running, { services });
  Object.assign(environment, endpointsOf(services));
  warmUp?.isExpected(services);

  const api = apiOf(deployment);
  const port = options.ports?.api ?? kept.api ?? 0;
  const front = await startApiServer({ ...settings, ...api, port, ...behindFront(services, stateDir) });
  onOpen(front);
  // Once more, to be closed first: what is slowed would be slow to end, too.
  if (injector !== undefined) onOpen(injector);
  ready.resolve(undefined);
  await keepPorts(stateDir, endpointsByName(services, front.endpoint));
  return {
    ...{ apiUrl: front.endpoint, region: localRegion, ...sdkSettings(credentials, services) },
    outputs: localOutputs(deployment, api.awsUrl, front.endpoint),
    objectFiles: services.s3.files,
    ...{ failed: failed.promise, warnings: services.s3.setAside.map(ofTorn) },
    executionEnded: (signal) => services.ends.wait(signal),
    processes: () => workerProcesses(services),
    injected: () => injector?.counts(),
    stop: stopOnce(closers),
  };
}

/** What the front of the API asks. */
const behindFront = ({ invoke }: Services, stateDir: string) => ({
  invoke,
  whyNot: () => whyNoRoom(stateDir),
});

const ofTorn = (path: string): string =>
  `a stored object was not whole, and is lost; what there is of it was moved to ${path}`;

function apiOf({ apis }: LocalDeployment): LocalDeployment['apis'][number] {
  const [api] = apis;
  if (api === undefined) throw new ProvisionError('the templates describe no stage of a REST API');
  return api;
}

/** Throws `InvalidInputError` where the stack has no storage, or no tasks, in a zone that is to be harmed. */
function injectorFor(
  { injection }: LocalStackOptions,
  { buckets, subnetZones }: LocalDeployment,
  {
    running,
    onOpen,
  }: { readonly running: { readonly services?: Services }; readonly onOpen: (service: Closable) => void },
): Injector | undefined {
  if (injection === undefined) return undefined;
  const injector = new Injector(injection);
  onOpen(injector);
  const empty = async (bucket: string): Promise<void> => running.services?.s3.emptyBucket(bucket);
  injector.harmsZones({ buckets, empty, taskZones: [...new Set(subnetZones.values())].toSorted() });
  return injector;
}

const endpointsByName = (
  { dynamodb, ecs, lambda, logs, s3, states, sts }: Services,
  api: string,
): Readonly<Record<ServerName, string>> => ({
  api,
  dynamodb: dynamodb.endpoint,
  ecs: ecs.endpoint,
  lambda: lambda.endpoint,
  logs: logs.endpoint,
  s3: s3.endpoint,
  states: states.endpoint,
  sts: sts.endpoint,
});

function endpointsOf({ dynamodb, s3, lambda, ecs, logs, sts, states }: Services): Record<string, string> {
  return {
    AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: logs.endpoint,
    AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
    AWS_ENDPOINT_URL_ECS: ecs.endpoint,
    AWS_ENDPOINT_URL_LAMBDA: lambda.endpoint,
    AWS_ENDPOINT_URL_S3: s3.endpoint,
    AWS_ENDPOINT_URL_SFN: states.endpoint,
    AWS_ENDPOINT_URL_STS: sts.endpoint,
  };
}

/** What whoever uses an AWS SDK with this stack needs, and nothing of what its functions are told. */
const sdkSettings = (
  credentials: Credentials,
  services: Services,
): Pick<LocalStack, 'credentials' | 'environment'> => ({
  credentials,
  environment: { ...sdkIdentity(credentials), ...endpointsOf(services) },
});

/** Variables of functions that this stack has, whatever the templates say. */
const choicesOf = (options: LocalStackOptions): Record<string, string> => ({
  ...(handsFilesOf(options) ? { [handedFilesSetting]: 'true' } : {}),
  ...(options.learns === false ? { [Setting.forecastFunction]: '' } : {}),
  // What worked for an earlier stack has ended with it.
  [Setting.workersSince]: String(Date.now()),
  // Fargate's tasks have one address here, so that each needs a port of its own.
  [Setting.keeperPort]: '0',
});

/** Reads that are to be slow go through S3's socket, as on AWS: what is handed over is asked for once. */
const handsFilesOf = ({ handsFiles = false, injection }: LocalStackOptions): boolean =>
  handsFiles && injection?.slowReads === undefined;

function sdkIdentity({ accessKeyId, secretAccessKey }: Credentials): Record<string, string> {
  return {
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_REGION: localRegion,
    AWS_DEFAULT_REGION: localRegion,
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

function workerProcesses({ lambda, ecs }: Services): WorkerProcess[] {
  const environments = lambda
    .environments()
    .flatMap(({ functionName, pid }): WorkerProcess[] =>
      pid === undefined ? [] : [{ kind: 'lambda', name: functionName, pid }],
    );
  const tasks = ecs
    .tasks()
    .flatMap(({ taskArn, family, pid, lastStatus }): WorkerProcess[] =>
      pid === undefined || lastStatus === 'STOPPED'
        ? []
        : [{ kind: 'fargate', name: family, pid, task: taskArn }],
    );
  return [...environments, ...tasks];
}

function stopOnce(closers: readonly (() => Promise<void>)[]): () => Promise<void> {
  let stopping: Promise<void> | undefined;
  return () => (stopping ??= closeAll(closers));
}
