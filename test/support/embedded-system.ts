import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { CloudWatchLogReader } from '../../src/adapters/aws/cloudwatch-log-reader.ts';
import { DynamoCapacityStore } from '../../src/adapters/aws/dynamo-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import { DynamoAttemptStore } from '../../src/adapters/aws/dynamo-attempt-store.ts';
import { DynamoDecisionLog } from '../../src/adapters/aws/dynamo-decision-log.ts';
import { DynamoJobStore } from '../../src/adapters/aws/dynamo-job-store.ts';
import { DynamoStragglerStatistics } from '../../src/adapters/aws/dynamo-straggler-statistics.ts';
import { DynamoTable } from '../../src/adapters/aws/dynamo-table.ts';
import { type ApiClient, makeApiClient } from '../../src/cli/api-client.ts';
import { dataBucketOf, objectStoreOf } from '../../src/cli/embedded-stack.ts';
import { type JobId, parseJobId } from '../../src/contracts/ids.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { parseUri } from '../../src/contracts/keys.ts';
import { finalJobStates, type JobRecord } from '../../src/contracts/records.ts';
import { epochMs } from '../../src/contracts/units.ts';
import { OutputName } from '../../src/contracts/settings.ts';
import type { Decision, Refusal } from '../../src/core/model/decision.ts';
import type { StragglerTally } from '../../src/core/model/straggler-tally.ts';
import type { OutputClaim } from '../../src/core/model/output-claims.ts';
import {
  type LocalStack,
  type LocalStackOptions,
  startLocalStack,
  type WorkerProcess,
} from '../../src/local/stack.ts';
import type { TaskRecords } from '../../src/ports/attempt-store.ts';
import type { CapacityView } from '../../src/app/capacity-ledger.ts';
import type { ObjectStore } from '../../src/ports/object-store.ts';

const pollMs = 100;
const jobLimitMs = 120_000;

/** The whole system on this machine, from `cdk.out`, in a directory of its own. */
export class EmbeddedSystem {
  readonly stack: LocalStack;
  readonly api: ApiClient;
  readonly objects: ObjectStore;
  readonly bucket: string;
  /** Holds its data and logs. */
  readonly dir: string;
  private readonly table: DynamoTable;

  private constructor(stack: LocalStack, dir: string) {
    this.stack = stack;
    this.dir = dir;
    this.api = makeApiClient(stack);
    this.objects = objectStoreOf(stack);
    this.bucket = dataBucketOf(stack);
    this.table = tableOf(stack);
  }

  static async start(options: Omit<LocalStackOptions, 'stateDir'> = {}): Promise<EmbeddedSystem> {
    const dir = await mkdtemp(join(tmpdir(), 'outrider-system-'));
    return new EmbeddedSystem(await startLocalStack({ ...options, stateDir: dir }), dir);
  }

  /** Ends it and removes its directory, unless that is to be looked at. */
  async stop({ keep = false }: { readonly keep?: boolean } = {}): Promise<void> {
    await this.stack.stop();
    if (!keep) await rm(this.dir, { recursive: true, force: true });
  }

  async put(name: string, body: Buffer): Promise<string> {
    const ref = { bucket: this.bucket, key: `input/${name}` };
    await this.objects.write(ref, body);
    return `s3://${ref.bucket}/${ref.key}`;
  }

  /** Has the deployment know how many copies of late jobs have straggled. */
  async addStragglers(tally: StragglerTally): Promise<void> {
    await new DynamoStragglerStatistics(this.table).add(tally, epochMs(Date.now()));
  }

  async submit(spec: JobSpecInput): Promise<string> {
    return (await this.api.submit({ spec })).jobId;
  }

  async ended(jobId: string, limitMs: number = jobLimitMs): Promise<JobRecord> {
    return this.until(
      `the end of ${jobId}`,
      async () => {
        const job = await this.api.job(jobId);
        return finalJobStates.includes(job.state) ? job : undefined;
      },
      limitMs,
    );
  }

  /** Asks until there is an answer, but not for ever. */
  async until<T>(
    what: string,
    ask: () => Promise<T | undefined> | T | undefined,
    limitMs: number = jobLimitMs,
  ): Promise<T> {
    for (let waited = 0; waited < limitMs; waited += pollMs) {
      const answer = await ask();
      if (answer !== undefined) return answer;
      await delay(pollMs);
    }
    throw new Error(`waited in vain for ${what}`);
  }

  /** Processes of one function or task family, by a part of its name. */
  processes(name: string): readonly WorkerProcess[] {
    return this.stack.processes().filter((each) => each.name.toLowerCase().includes(name));
  }

  async output(job: JobRecord): Promise<Buffer> {
    const bucket = parseUri(job.output)?.bucket ?? this.bucket;
    const parts = [];
    for (const { key } of job.parts) parts.push(await this.objects.readAll({ bucket, key }));
    return Buffer.concat(parts);
  }

  /** Objects and uploads in the bucket that are neither inputs, nor the output of a job, nor what was learned of it. */
  async leftovers(): Promise<readonly string[]> {
    const found: string[] = [];
    for await (const { key } of this.objects.list({ bucket: this.bucket, key: '' })) {
      if (!/^(input|output|forecasts)\//.test(key)) found.push(key);
    }
    for await (const { key } of this.objects.listUploads({ bucket: this.bucket, key: '' }))
      found.push(`upload of ${key}`);
    return found;
  }

  async usedSlots(): Promise<number> {
    return (await this.capacity()).usedSlots;
  }

  /** What the capacity ledger holds. */
  async capacity(): Promise<CapacityView> {
    return this.ledger().view();
  }

  /** The ledger as one more process sees it, which knows of no job of its own. */
  ledger(): RuledCapacityLedger {
    return new RuledCapacityLedger(new DynamoCapacityStore(this.table));
  }

  /** Jobs that hold a place for their output in a bucket. */
  async claims(bucket: string): Promise<readonly OutputClaim[]> {
    return (await new DynamoJobStore(this.table).loadClaims(bucket)).claims;
  }

  /** What was decided and refused for a job, in order. */
  async decisions(jobId: string): Promise<readonly (Decision | Refusal)[]> {
    const found: (Decision | Refusal)[] = [];
    for await (const { decisions } of new DynamoDecisionLog(this.table).read(known(jobId))) {
      found.push(...(decisions as readonly (Decision | Refusal)[]));
    }
    return found;
  }

  /** Results and replicas of a job's tasks as the store holds them. */
  async outcomes(jobId: string): Promise<TaskRecords> {
    const { shards } = await this.api.job(jobId);
    if (shards === undefined) return { attempts: [], results: [], replicas: [] };
    return new DynamoAttemptStore(this.table).all({ jobId: known(jobId), shards });
  }
}

function tableOf({ region, credentials, environment, outputs }: LocalStack): DynamoTable {
  const endpoint = environment['AWS_ENDPOINT_URL_DYNAMODB'] ?? '';
  const client = DynamoDBDocumentClient.from(new DynamoDBClient({ region, credentials, endpoint }));
  return new DynamoTable(client, outputs[OutputName.table] ?? '');
}

function known(jobId: string): JobId {
  const parsed = parseJobId(jobId);
  if (parsed === undefined) throw new Error(`no id of a job: ${jobId}`);
  return parsed;
}

/** The logs of a stack, over its CloudWatch Logs. */
export function makeLogs({ region, credentials, environment, outputs }: LocalStack): CloudWatchLogReader {
  const endpoint = environment['AWS_ENDPOINT_URL_CLOUDWATCH_LOGS'] ?? '';
  const client = new CloudWatchLogsClient({ region, credentials, endpoint });
  return new CloudWatchLogReader(client, outputs[OutputName.logGroup] ?? '');
}
