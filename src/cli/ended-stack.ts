import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { DynamoAttemptStore } from '../adapters/aws/dynamo-attempt-store.ts';
import { DynamoJobStore } from '../adapters/aws/dynamo-job-store.ts';
import { DynamoJournalStore } from '../adapters/aws/dynamo-journal-store.ts';
import { DynamoTable } from '../adapters/aws/dynamo-table.ts';
import { listJournal } from '../app/list-journal.ts';
import type { AttemptsResponse, JournalResponse } from '../contracts/api.ts';
import type { JobId } from '../contracts/ids.ts';
import type { JobRecord } from '../contracts/records.ts';
import { startDynamoDb } from '../local/dynamodb/process.ts';
import { stackCredentials } from '../local/stack-credentials.ts';
import type { AttemptStore } from '../ports/attempt-store.ts';
import { wholeJournal } from './whole-journal.ts';
import { openStateDir } from './state-dir.ts';

/** What the database of a local stack holds of a job. */
export interface EndedJob {
  readonly job: JobRecord;
  readonly attempts: Omit<AttemptsResponse, 'cursor'>;
  readonly journal: JournalResponse['pieces'];
}

const region = 'us-east-1';
const databaseName = 'dynamodb';

/**
 * Opens the database of a local stack that is not up, for as long as it takes to read a job from it; undefined where there
 * is no database, or the job is not in it. Throws where another process has the directory, and what the database does.
 */
export async function readEndedJob(stateDir: string, jobId: JobId): Promise<EndedJob | undefined> {
  const dir = join(stateDir, databaseName);
  const isThere = await access(dir).then(
    () => true,
    () => false,
  );
  if (!isThere) return undefined;
  const state = await openStateDir(stateDir, stateDir);
  try {
    const credentials = await stackCredentials(stateDir);
    const database = await startDynamoDb({ dir, credentials, region });
    try {
      const client = new DynamoDBClient({ region, credentials, endpoint: database.endpoint });
      return await readJob(client, jobId);
    } finally {
      await database.close();
    }
  } finally {
    await state.release();
  }
}

async function readJob(client: DynamoDBClient, jobId: JobId): Promise<EndedJob | undefined> {
  const { TableNames: names = [] } = await client.send(new ListTablesCommand({}));
  const documents = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
  for (const name of names) {
    const table = new DynamoTable(documents, name);
    const jobs = new DynamoJobStore(table, () => undefined);
    const job = await jobs.load(jobId);
    if (job === undefined) continue;
    const journals = new DynamoJournalStore(table);
    // What else is known of the job is known without it.
    const journal = await wholeJournal((cursor) => listJournal({ jobs, journals }, jobId, { cursor })).catch(
      () => [],
    );
    return { job, journal, attempts: await attemptsOf(new DynamoAttemptStore(table), job) };
  }
  return undefined;
}

async function attemptsOf(store: AttemptStore, { jobId, shards }: JobRecord): Promise<EndedJob['attempts']> {
  if (shards === undefined) return { attempts: [] };
  const { attempts, unreadable = [] } = await store.all({ jobId, shards });
  const left = unreadable.filter(({ kind }) => kind === 'attempt' || kind === 'unknown').length;
  return { attempts, ...(left === 0 ? {} : { unreadable: left }) };
}
