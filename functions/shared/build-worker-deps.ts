import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type AwsSettings,
  dynamoClient,
  s3HedgingClient,
  s3ReadClient,
  s3ZonalClients,
} from '../../src/adapters/aws/clients.ts';
import { DynamoAttemptStore } from '../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoTable } from '../../src/adapters/aws/dynamo-table.ts';
import { S3ObjectStore } from '../../src/adapters/aws/s3-object-store.ts';
import { AsyncRequestMeter } from '../../src/adapters/node/async-request-meter.ts';
import { HandedObjects } from '../../src/adapters/node/handed-objects.ts';
import { HandingClient } from '../../src/adapters/node/handing-client.ts';
import { KeptClient } from '../../src/adapters/node/kept/kept-client.ts';
import { KeptFiles } from '../../src/adapters/node/kept/kept-files.ts';
import { KeptObjects } from '../../src/adapters/node/kept/kept-objects.ts';
import { KeptServer } from '../../src/adapters/node/kept/kept-server.ts';
import { secretOf } from '../../src/adapters/node/kept/question.ts';
import { JsonLog } from '../../src/adapters/node/json-log.ts';
import { SteadyClock } from '../../src/adapters/node/steady-clock.ts';
import { handedFilesSetting } from '../../src/contracts/handed-files.ts';
import type { AttemptPayload } from '../../src/contracts/payloads.ts';
import { type ObjectRef, uriOf } from '../../src/contracts/keys.ts';
import type { RequestTally } from '../../src/contracts/requests.ts';
import { Setting } from '../../src/contracts/settings.ts';
import { operators } from '../../src/operators/registry.ts';
import type { Log } from '../../src/ports/log.ts';
import type { ObjectStore } from '../../src/ports/object-store.ts';
import { type AttemptDeps, requestOwner } from '../../src/worker/run-attempt.ts';
import { credentialEnvironment, plainEnvironment } from '../../src/worker/processes/child-environment.ts';
import type { HostProgram } from '../../src/worker/user-code/host-process.ts';
import { CountedLog } from './counted-log.ts';
import { jobSession } from './job-session.ts';
import type { Place } from './place.ts';
import { type Environment, flagSetting, textSetting } from './settings.ts';
import { engineSize, sortMemoryBytes, userHeapMb, workerMemoryBytes } from './task-memory.ts';

/** No read fails because S3 is busy before the attempt itself is over: its signal ends it. */
const patienceMs = 60 * 60_000;

/** What an attempt works with, and its clock. */
export type TimedDeps = AttemptDeps & { readonly clock: SteadyClock };

/**
 * What an attempt works with, on Lambda and on Fargate alike: clients with the rights of its job's session, to which
 * the worker's own rights lead and to nothing else. Its clock is that of those who gave the session: what workers say of
 * time is compared with what schedulers and other workers say. From then on it goes on evenly, whatever the machine is set to.
 */
export async function buildWorkerDeps(
  env: Environment,
  place: Place,
  { access, jobId, attemptId }: Pick<AttemptPayload, 'access' | 'jobId' | 'attemptId'>,
): Promise<TimedDeps> {
  const requests = new AsyncRequestMeter({ elapsedMs: () => performance.now() });
  const count = (tally: RequestTally): void => {
    requests.count(tally);
  };
  const log = new CountedLog(new JsonLog(), requests);
  const own = { region: env['AWS_REGION'] ?? 'us-east-1', env, count };
  const tableName = textSetting(env, Setting.table);
  const session = access === undefined ? undefined : jobSession(own, tableName, access);
  const aws = session === undefined ? own : { ...own, credentials: session.credentials };
  const objects = buildObjects(aws, count, log);
  // The read of the session is the first of what the attempt asks for.
  const owner = requestOwner({ jobId, attemptId });
  const aheadMs = await requests.counting(owner, async () => session?.aheadMs());
  return {
    objects,
    attempts: new DynamoAttemptStore(new DynamoTable(dynamoClient(aws), tableName)),
    clock: new SteadyClock(aheadMs),
    log,
    requests,
    operators,
    dataBucket: textSetting(env, Setting.dataBucket),
    place,
    environment: {
      plain: plainEnvironment(env),
      ...(flagSetting(env, Setting.userCredentials) && session !== undefined
        ? { credentials: async () => credentialEnvironment(env, await session.fresh()) }
        : {}),
    },
    scratchRoot: tmpdir(),
    sortMemoryBytes: sortMemoryBytes(workerMemoryBytes(env)),
    engine: engineSize(workerMemoryBytes(env)),
    peakMemoryBytes: () => process.resourceUsage().maxRSS * 1024,
    cpuMs: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000;
    },
    userCode: { objects, program: hostProgram(env) },
  };
}

/**
 * The same on Fargate, where workers of a job reach each other: outputs may stay with them. Not where the network tells no
 * address, or the job has no word that its workers share: outputs then go to the data bucket.
 */
export async function buildKeepingDeps(
  env: Environment,
  place: Place,
  payload: AttemptPayload,
): Promise<AttemptDeps> {
  const deps = await buildWorkerDeps(env, place, payload);
  const { access, jobId, attemptId } = payload;
  const port = env[Setting.keeperPort];
  if (access === undefined || port === undefined || place.address === undefined) return deps;
  const secret = secretOf(access);
  const files = new KeptFiles(join(deps.scratchRoot, `kept-${jobId}-${attemptId.replaceAll('/', '-')}`));
  const client = new KeptClient(secret);
  const objects = new KeptObjects(deps.objects, { client, files, dataBucket: deps.dataBucket });
  const keeper = new KeptServer(files, secret, { host: place.address, port: Number(port) }, () =>
    deps.clock.now(),
  );
  return { ...deps, objects, keeper };
}

/** Objects in S3; those of the embedded S3 by files, where it hands them. */
function buildObjects(aws: AwsSettings, count: (tally: RequestTally) => void, log: Log): ObjectStore {
  const { env, region } = aws;
  const client = s3HedgingClient(aws);
  const clients = { reads: s3ReadClient(aws), zonal: s3ZonalClients(aws) };
  const onHedge = (ref: ObjectRef): void => {
    count({ hedged: 1 });
    log.info('read-hedged', { uri: uriOf(ref) });
  };
  const onHedgedPart = (ref: ObjectRef): void => {
    count({ hedgedParts: 1 });
    log.info('part-hedged', { uri: uriOf(ref) });
  };
  const endpoint = env['AWS_ENDPOINT_URL_S3'];
  const isHanded = endpoint !== undefined && env[handedFilesSetting] === 'true';
  // Parts that are files are numbered by whoever writes them, and those beside them have to be as well.
  const hedges = isHanded ? { onHedge } : { onHedge, onHedgedPart };
  const objects = new S3ObjectStore(client, { ...clients, patienceMs, ...hedges });
  if (!isHanded) return objects;
  // The client keeps them until they run out.
  const credentials = (): ReturnType<typeof client.config.credentials> => client.config.credentials();
  return new HandedObjects(objects, new HandingClient({ endpoint, region, credentials }), count);
}

/** The second module of the bundle, with the part of the memory for its heap that this process leaves. */
function hostProgram(env: Environment): HostProgram {
  const entryPath = fileURLToPath(new URL('./user-code-host.mjs', import.meta.url));
  // Without a limit of memory V8 chooses by that of the machine.
  const heapMb = userHeapMb(workerMemoryBytes(env));
  return heapMb === undefined ? { entryPath } : { entryPath, heapMb };
}

/**
 * What the attempts of one environment work with, one after the other: those of one job share clients and what they
 * know, and the first of another job drops both.
 */
export class WarmWorker {
  private readonly build: (payload: AttemptPayload) => Promise<TimedDeps>;
  private last: { readonly access: string | undefined; readonly deps: TimedDeps } | undefined;

  constructor(build: (payload: AttemptPayload) => Promise<TimedDeps>) {
    this.build = build;
  }

  async depsFor(payload: AttemptPayload): Promise<AttemptDeps> {
    const { access } = payload;
    if (this.last === undefined || this.last.access !== access)
      this.last = { access, deps: await this.build(payload) };
    // The environment was frozen since the last one.
    else this.last.deps.clock.catchUp();
    return this.last.deps;
  }
}
