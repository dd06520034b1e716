import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DynamoDbUnavailableError, type DynamoDbProcess, startDynamoDb } from '../dynamodb/process.ts';
import { type EcsServer, startEcsServer } from '../ecs/server.ts';
import { type EventBus, executionEvent, startEventBus, taskEvent } from '../events/event-bus.ts';
import type { FaultHook } from '../http/fault-hook.ts';
import type { Credentials, PrincipalRegistry } from '../http/principals.ts';
import { RoleSessions } from '../iam/roles.ts';
import type { DeliveryHook } from '../inject/delivery.ts';
import type { ClockHook, StartHook } from '../inject/start.ts';
import type { WorkHook } from '../inject/work.ts';
import { zoneIdOf } from './zone-ids.ts';
import { queuePauseMs } from '../lambda/queue-pause.ts';
import { type LambdaServer, startLambdaServer } from '../lambda/server.ts';
import type { Ports, ServerName } from '../kept-ports.ts';
import { type LocalLogDirectories, type LogsServer, startLogsServer } from '../logs/server.ts';
import type { HarmHook } from '../s3/harm-object.ts';
import { type S3Server, startS3Server } from '../s3/server.ts';
import { ExecutionEnds } from '../sfn/execution-ends.ts';
import type { ExecutionRecord } from '../sfn/execution-log.ts';
import { startStepFunctionsServer, type StepFunctionsServer } from '../sfn/server.ts';
import { startStsServer, type StsServer } from '../sts/server.ts';
import { createTables } from './create-tables.ts';
import type { LocalDeployment } from './deployment.ts';
import { LOCAL_ACCOUNT } from './identities.ts';
import { type Invoke, invokeOn } from './invoke.ts';

/** What can be closed again. */
export interface Closable {
  close(): Promise<void>;
}

/** Settings that every service has. */
export interface ServiceSettings {
  /** The owner's keys. */
  readonly credentials: Credentials;
  /** Whose keys are accepted: the owner's, and those of roles once there are sessions of them. */
  readonly principals: PrincipalRegistry;
  readonly region: string;
  readonly onRequest?: FaultHook;
  /** `host:port` of proxies before the services that pass requests on as they were signed. */
  readonly hosts?: ReadonlySet<string>;
  /** Says what becomes of launches once Lambda has accepted them. */
  readonly onAccepted?: DeliveryHook;
  /** Told of work that functions and tasks begin; see the servers of Lambda and ECS. */
  readonly onWork?: WorkHook;
  /** Says how much longer environments of functions take to start. */
  readonly onStart?: StartHook;
  /** Says how far the clocks of environments of functions and of tasks are ahead. */
  readonly onClock?: ClockHook;
  /** Says what becomes of objects once they are written. */
  readonly onWritten?: HarmHook;
}

export interface ServicesOptions {
  readonly settings: ServiceSettings;
  readonly deployment: LocalDeployment;
  readonly stateDir: string;
  /** Attempts that may run at once. */
  readonly slots: number;
  readonly zones: number;
  /**
   * Invocations that may run at once, as in an account of so many, with the pauses of Lambda's queue. Absent: as many as
   * the slots and the coordinator need, and what waits is served as room appears.
   */
  readonly concurrency?: number;
  /** Of functions and tasks: read whenever a process starts, so it may be completed until `ready`. */
  readonly environment: Readonly<Record<string, string>>;
  /** Whether S3 hands files of objects to workers. */
  readonly handsFiles: boolean;
  /** Resolves once functions may be called. Executions that an earlier stack left running wait for it. */
  readonly ready: Promise<unknown>;
  /** Told of what is up, to close it in the end: last told, first closed. */
  readonly onOpen: (service: Closable) => void;
  /** Told why the stack cannot go on, as on a full disk. */
  readonly onFailure: (error: Error) => void;
  /** Where servers are to listen; any free port where nothing is said. */
  readonly ports?: Ports;
  /** Told when a function has answered that a state machine has called. */
  readonly onStep?: () => void;
}

/** The services behind the REST API. */
export interface Services {
  readonly dynamodb: DynamoDbProcess;
  readonly s3: S3Server;
  readonly lambda: LambdaServer;
  readonly ecs: EcsServer;
  readonly logs: LogsServer;
  readonly sts: StsServer;
  readonly states: StepFunctionsServer;
  readonly invoke: Invoke;
  readonly ends: ExecutionEnds;
}

/** Besides the slots: resident schedulers, and the short steps of jobs, which are tried again where there is no room. */
const COORDINATOR_CONCURRENCY = 20;
/** Of those so many environments stay for a while when they have nothing to do. */
const IDLE_COORDINATORS = 8;

/**
 * Starts the services and puts into them what the deployment says.
 *
 * Throws what the services throw. All that were started have been told to `onOpen` by then.
 */
export async function startServices(options: ServicesOptions): Promise<Services> {
  const { settings, deployment, stateDir, handsFiles, onOpen } = options;
  const at = (name: ServerName): { readonly port?: number } => portOf(options, name);
  const open = new Map<ServerName, Closable>();
  onOpen({ close: () => closeInOrder(open) });
  const opened = async <T extends Closable>(name: ServerName, starting: Promise<T>): Promise<T> => {
    const service = await starting;
    open.set(name, service);
    return service;
  };
  // A stack that was killed could not remove what its workers had spilled.
  await rm(join(stateDir, 'scratch'), { recursive: true, force: true });
  const roles = openRoles(options);
  const place = { region: settings.region, accountId: LOCAL_ACCOUNT };
  const telling: { bus?: EventBus } = {};
  const [dynamodb, s3, lambda, ecs, logs, sts] = await afterAll([
    opened('dynamodb', startDynamoDb({ ...settings, ...at('dynamodb'), dir: join(stateDir, 'dynamodb') })),
    opened('s3', startS3Server({ ...settings, ...at('s3'), rootDir: join(stateDir, 's3'), handsFiles })),
    opened('lambda', startLambda(options, roles)),
    opened(
      'ecs',
      startEcs(options, roles, (detail) => {
        telling.bus?.put(taskEvent(detail, place));
      }),
    ),
    opened('logs', startLogsServer({ ...settings, ...at('logs'), logGroups: logDirectories(options) })),
    opened('sts', startSts(options, roles)),
  ]);
  await afterAll([
    createTables(dynamodb, deployment.tables),
    Promise.all(deployment.buckets.map((name) => s3.createBucket(name))),
  ]);
  const invoke = invokeOn(lambda);
  const invokeLambda = stepsOf(invoke, options);
  const { stateMachines } = deployment;
  const runDir = join(stateDir, 'executions');
  const bus = startEventBus({
    ...place,
    rules: deployment.rules,
    deliver: (name, event) => lambda.enqueue(name, JSON.stringify(event)) === undefined,
    ready: options.ready,
    isLate: (await readdir(runDir).catch(() => [])).length > 0,
  });
  telling.bus = bus;
  void dynamodb.exited.then(() => {
    options.onFailure(new DynamoDbUnavailableError('the database has ended, and cannot be started again'));
  });
  onOpen(bus);
  const ends = new ExecutionEnds();
  const onStatus = (record: ExecutionRecord): void => {
    bus.put(executionEvent(record, place));
    ends.put(record);
  };
  const states = await startStepFunctionsServer({
    ...{ ...settings, ...at('states'), stateMachines, invokeLambda, runDir, onStatus },
    onUnwritable: options.onFailure,
  });
  onOpen(states);
  return { dynamodb, s3, lambda, ecs, logs, sts, states, invoke, ends };
}

/** Whoever is told to end, and may have something to write down yet, before what it writes to. */
const closingOrder: readonly (readonly ServerName[])[] = [
  ['ecs', 'lambda'],
  ['logs', 'sts', 's3'],
  ['dynamodb'],
];

async function closeInOrder(open: ReadonlyMap<ServerName, Closable>): Promise<void> {
  for (const names of closingOrder)
    await Promise.allSettled(names.map(async (name) => open.get(name)?.close()));
}

/** How state machines call functions: once all is ready. */
const stepsOf =
  (invoke: Invoke, { ready, onStep }: ServicesOptions): Invoke =>
  async (name, payload) => {
    await ready;
    const answer = await invoke(name, payload);
    onStep?.();
    return answer;
  };

/** As Promise.all, but when one fails it waits for the others first: nothing is to start after a failure. */
async function afterAll<T extends readonly unknown[]>(
  promises: readonly [...{ [Index in keyof T]: Promise<T[Index]> }],
): Promise<T>;
async function afterAll(promises: readonly Promise<unknown>[]): Promise<readonly unknown[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

/** What functions and tasks run with: a session of its role for each, with keys of its own. */
interface OpenRoles {
  readonly sessions: RoleSessions;
  readonly credentialsOf: (functionOrFamily: string) => Credentials | undefined;
}

function openRoles({ settings, deployment }: ServicesOptions): OpenRoles {
  const sessions = new RoleSessions(settings.principals, deployment.roles, {
    region: settings.region,
    accountId: LOCAL_ACCOUNT,
    partitionKeys: new Map(deployment.tables.flatMap(({ partitionKeys }) => [...partitionKeys])),
    taskRoles: deployment.taskRoles,
  });
  const keys = new Map(
    [...deployment.roleArns].flatMap(([name, arn]): [string, Credentials][] => {
      const role = sessions.role(arn);
      if (role === undefined) return [];
      return [[name, sessions.open({ role, name, tags: new Map(), policy: undefined })]];
    }),
  );
  return { sessions, credentialsOf: (name) => keys.get(name) };
}

/** Where a server is to listen; on any free port where nothing is said. */
function portOf({ ports }: ServicesOptions, name: ServerName): { readonly port?: number } {
  const port = ports?.[name];
  return port === undefined ? {} : { port };
}

function startLambda(options: ServicesOptions, { credentialsOf }: OpenRoles): Promise<LambdaServer> {
  const { settings, deployment, stateDir, slots, zones, environment, concurrency } = options;
  return startLambdaServer({
    ...settings,
    ...portOf(options, 'lambda'),
    credentialsOf,
    mayCall: (name, called) => {
      const keys = credentialsOf(name);
      const caller = keys === undefined ? undefined : settings.principals.find(keys.accessKeyId);
      return caller?.principal.authorize?.({ service: 'lambda', operation: 'Invoke', resource: called });
    },
    functions: deployment.functions,
    maxConcurrency: concurrency ?? slots + COORDINATOR_CONCURRENCY,
    ...(concurrency === undefined ? {} : { throttledPauseMs: queuePauseMs }),
    maxIdle: slots + IDLE_COORDINATORS,
    logDir: lambdaLogs(stateDir),
    scratchDir: join(stateDir, 'scratch'),
    nodePath: process.execPath,
    extraEnvironment: environment,
    zoneOf: (index) => zoneIdOf(index % zones),
  });
}

function startSts(options: ServicesOptions, { sessions }: OpenRoles): Promise<StsServer> {
  return startStsServer({
    ...options.settings,
    ...portOf(options, 'sts'),
    sessions,
    sessionsPath: join(options.stateDir, 'sessions.ndjson'),
  });
}

function startEcs(
  options: ServicesOptions,
  { credentialsOf }: OpenRoles,
  onTaskChange: (detail: Readonly<Record<string, unknown>>) => void,
): Promise<EcsServer> {
  const { settings, deployment, stateDir, slots, environment } = options;
  return startEcsServer({
    ...settings,
    ...portOf(options, 'ecs'),
    credentialsOf,
    clusters: deployment.clusters,
    capacityProviders: deployment.capacityProviders,
    onTaskChange: (_, detail) => {
      onTaskChange(detail);
    },
    taskDefinitions: deployment.taskDefinitions,
    // Besides those that work, as many that stay for readers of what they keep: see `keepWithWorkers`.
    maxTasks: 2 * slots,
    logDir: ecsLogs(stateDir),
    scratchDir: join(stateDir, 'scratch'),
    nodePath: process.execPath,
    extraEnvironment: environment,
    zoneOf: ({ subnetId }) => deployment.subnetZones.get(subnetId) ?? `${settings.region}a`,
  });
}

const lambdaLogs = (stateDir: string): string => join(stateDir, 'logs', 'lambda');
const ecsLogs = (stateDir: string): string => join(stateDir, 'logs', 'ecs');

function logDirectories({ deployment, stateDir }: ServicesOptions): LocalLogDirectories[] {
  return deployment.logGroups.map(({ name, functions, taskFamilies }) => ({
    name,
    directories: [
      ...functions.map((fn) => join(lambdaLogs(stateDir), fn)),
      ...taskFamilies.map((family) => join(ecsLogs(stateDir), family)),
    ],
  }));
}
