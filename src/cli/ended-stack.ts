import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { readdir } from 'node:fs/promises';
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
import { type JobList, listJobs } from './list-jobs.ts';
import { lockEndedStack } from './state-dir.ts';
import { wholeJournal } from './whole-journal.ts';

/** What the database of a local stack holds of a job. */
export interface EndedJob {
  readonly job: JobRecord;
  readonly attempts: Omit<AttemptsResponse, 'cursor'>;
  readonly journal: JournalResponse['pieces'];
}

const region = 'us-east-1';
const databaseName = 'dynamodb';

/**
 * A job out of the database of a local stack that is not up; undefined where there is no database, or the job is not in it.
 *
 * @throws InvalidInputError where a stack has the directory now; and what the database throws.
 */
export function readEndedJob(stateDir: string, jobId: JobId): Promise<EndedJob | undefined> {
  return readTables(stateDir, async (tables) => {
    for (const table of tables) {
      const found = await readJob(table, jobId);
      if (found !== undefined) return found;
    }
    return undefined;
  });
}

/** The newest jobs in the database of a local stack that is not up, at most `limit`; errors as of {@link readEndedJob}. */
export async function listEndedJobs(stateDir: string, limit: number): Promise<JobList> {
  const found = await readTables(stateDir, ([table]) => {
    if (table === undefined) return Promise.resolve(undefined);
    const store = new DynamoJobStore(table, () => undefined);
    return listJobs((page) => store.list(page), limit);
  });
  return found ?? { jobs: [], unreadable: [] };
}

/** Opens the database, which has one table, for as long as it takes to read something out of it. */
async function readTables<T>(
  stateDir: string,
  read: (tables: readonly DynamoTable[]) => Promise<T | undefined>,
): Promise<T | undefined> {
  const dir = join(stateDir, databaseName);
  const files = await readdir(dir).catch(() => []);
  // Of either engine. A directory of that name alone may be anybody's.
  if (!files.some((name) => name.startsWith(`${databaseName}.`))) return undefined;
  const credentials = await stackCredentials(stateDir);
  const state = await lockEndedStack(stateDir);
  try {
    const database = await startDynamoDb({ dir, credentials, region });
    try {
      const client = new DynamoDBClient({ region, credentials, endpoint: database.endpoint });
      const { TableNames: names = [] } = await client.send(new ListTablesCommand({}));
      const marshallOptions = { removeUndefinedValues: true };
      const documents = DynamoDBDocumentClient.from(client, { marshallOptions });
      return await read(names.map((name) => new DynamoTable(documents, name)));
    } finally {
      await database.close();
    }
  } finally {
    await state.release();
  }
}

async function readJob(table: DynamoTable, jobId: JobId): Promise<EndedJob | undefined> {
  const jobs = new DynamoJobStore(table, () => undefined);
  const job = await jobs.load(jobId);
  if (job === undefined) return undefined;
  const journals = new DynamoJournalStore(table);
  // What else is known of the job is known without it.
  const journal = await wholeJournal((cursor) => listJournal({ jobs, journals }, jobId, { cursor })).catch(
    () => [],
  );
  return { job, journal, attempts: await attemptsOf(new DynamoAttemptStore(table), job) };
}

async function attemptsOf(store: AttemptStore, { jobId, shards }: JobRecord): Promise<EndedJob['attempts']> {
  if (shards === undefined) return { attempts: [] };
  const { attempts, unreadable = [] } = await store.all({ jobId, shards });
  const left = unreadable.filter(({ kind }) => kind === 'attempt' || kind === 'unknown').length;
  return { attempts, ...(left === 0 ? {} : { unreadable: left }) };
}
