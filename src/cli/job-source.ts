import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { CloudWatchLogReader } from '../adapters/aws/cloudwatch-log-reader.ts';
import type { AllocationsResponse, AttemptsResponse, JournalResponse } from '../contracts/api.ts';
import { InvalidInputError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { successName } from '../contracts/keys.ts';
import { decodePartList } from '../contracts/part-list.ts';
import { finalJobStates, type JobRecord } from '../contracts/records.ts';
import { OutputName } from '../contracts/settings.ts';
import { epochMs, type EpochMs } from '../contracts/units.ts';
import type { LogLine, LogReader } from '../ports/log-reader.ts';
import { outputOf } from '../report/job-table.ts';
import { makeApiClient } from './api-client.ts';
import { defaultStateDir, findTarget, NoServiceError, StackEndedError, type Target } from './connection.ts';
import type { Console } from './console.ts';
import { badInput } from './failures.ts';
import { localLines } from './local-lines.ts';
import { readRun, type RunRecord } from './run-records.ts';

type Attempts = Omit<AttemptsResponse, 'cursor'>;

/** Where one learns of a job: a service that is up, or what is kept of it where none is. */
export interface JobSource {
  /** Before its first line. */
  readonly since: EpochMs;
  /** After its last line; absent of a job that may log more. */
  readonly until?: EpochMs;
  /** The newest that is kept of it, where no service is up that could tell more; absent where one is. */
  readonly seenUntil?: EpochMs;
  /** Whether nothing but its log can be read. */
  readonly isLogAlone: boolean;
  /** The directory to which a run has brought the output, and which has it still. */
  readonly outputDir?: string;
  /** Whether the output was brought to a directory that has it no more, as after a later run with `--force`. */
  readonly isOutputGone?: boolean;
  job(signal?: AbortSignal): Promise<JobRecord>;
  attempts(signal?: AbortSignal): Promise<Attempts>;
  /** None where a job is kept without its log of decisions. */
  allocations(): Promise<AllocationsResponse>;
  /** What its schedulers have written down, page by page. None where a job is kept without it. */
  journal(cursor?: string): Promise<JournalResponse>;
  /** @param logGroup - Of a deployed service. Throws `InvalidInputError` where it is needed and absent. */
  logs(logGroup?: string): LogReader;
}

/** That a log was not read to its end, though fewer lines were found than were asked for. */
export const cutText =
  'its log was not read to the end: CloudWatch had more to search after a thousand answers, and what it has not searched is not told';

/** Lines may be a little older by their own clock than the job is by the service's. */
const lateMs = 15_000;
/** For so long after its end a job may log: attempts that were not told to stop in time go on to Lambda's limit. */
const afterEndMs = 30 * 60_000;

/**
 * Asks the service for a job; where there is none, or it does not know the job, looks into the state directory, which
 * keeps what is known of jobs of `outrider run`, and the database and the logs of a local stack that has ended.
 *
 * @throws what finding the service or asking it throws, where nothing is kept of the job.
 */
export async function findJobSource(
  jobId: JobId,
  options: { readonly endpoint?: string | undefined; readonly stateDir?: string | undefined },
  console: Console,
  signal?: AbortSignal,
): Promise<JobSource> {
  const stateDir = resolve(console.cwd, options.stateDir ?? defaultStateDir);
  try {
    const target = await findTarget(options, console);
    const client = makeApiClient(target.api);
    const { createdAt, endedAt } = await client.job(jobId, signal);
    return {
      since: epochMs(createdAt - lateMs),
      ...(endedAt === undefined ? {} : { until: epochMs(endedAt + afterEndMs) }),
      isLogAlone: false,
      job: (each) => client.job(jobId, each),
      attempts: (each) => client.attempts(jobId, each),
      allocations: () => client.allocations(jobId),
      journal: (cursor) => client.journal(jobId, cursor),
      logs: (logGroup) => readerOf(target, logGroup),
    };
  } catch (error) {
    const isDown = error instanceof NoServiceError || error instanceof StackEndedError;
    const kept =
      signal?.aborted === true
        ? undefined
        : await keptSource(stateDir, jobId, console).catch((unread: unknown) => {
            if (isDown) throw unread;
            return undefined; // A service that is up has told more.
          });
    if (kept !== undefined) return kept;
    if (!(error instanceof NoServiceError)) throw error;
    throw badInput(`${error.message}; nor is anything kept there of a job ${jobId}`, error);
  }
}

async function keptSource(stateDir: string, jobId: JobId, console: Console): Promise<JobSource | undefined> {
  const run = await readRun(stateDir, jobId);
  if (run === undefined) return sourceOfEnded(stateDir, jobId, console);
  const { outputDir, ...rest } = run;
  if (outputDir === undefined) return sourceOf(rest);
  return (await hasOutput(outputDir, jobId)) ? sourceOf(run) : { ...sourceOf(rest), isOutputGone: true };
}

/** Whether the output in a directory is this job's: what comes with it names its job. */
async function hasOutput(directory: string, jobId: JobId): Promise<boolean> {
  try {
    return decodePartList(await readFile(join(directory, successName))).jobId === jobId;
  } catch {
    return false;
  }
}

/** Where the output of a job is or will be, as far as that is known; undefined where it is nowhere. */
export const placeOfOutput = (
  job: JobRecord,
  { outputDir, isOutputGone = false }: Pick<JobSource, 'outputDir' | 'isOutputGone'>,
): string | undefined => outputDir ?? (isOutputGone ? undefined : outputOf(job));

/** When the newest was told of what is kept of a job. */
function newestOf({ job, attempts: { attempts }, lines }: RunRecord): EpochMs {
  let newest: number = Math.max(job.createdAt, job.startedAt ?? 0, job.endedAt ?? 0);
  for (const { launchedAt, claimedAt = 0, reportedAt = 0, endedAt = 0 } of attempts)
    newest = Math.max(newest, launchedAt, claimedAt, reportedAt, endedAt);
  for (const { at } of lines) newest = Math.max(newest, at);
  return epochMs(newest);
}

const sourceOf = ({ outputDir, ...kept }: RunRecord): JobSource => ({
  since: epochMs(0),
  seenUntil: newestOf(kept),
  isLogAlone: false,
  ...(outputDir === undefined ? {} : { outputDir }),
  job: () => Promise.resolve(kept.job),
  attempts: () => Promise.resolve(kept.attempts),
  allocations: () => Promise.resolve({ allocations: [] }),
  journal: () => Promise.resolve({ pieces: kept.journal ?? [] }),
  logs: () => readerOfLines(kept.lines),
});

const readerOfLines = (lines: readonly LogLine[]): LogReader => ({
  read: (_jobId, { since, limit, wants = () => true }) =>
    Promise.resolve({
      lines: lines.filter((line) => line.at >= since && wants(line)).slice(0, limit),
      isCut: false,
    }),
});

/** A local stack that is not up: its logs lie in files, all else of its jobs in its database. */
async function sourceOfEnded(
  stateDir: string,
  jobId: JobId,
  console: Console,
): Promise<JobSource | undefined> {
  // The database and all that it needs: most commands do not.
  const { readEndedJob } = await import('./ended-stack.ts');
  // Without it there are the logs.
  const [read] = await Promise.allSettled([readEndedJob(stateDir, jobId)]);
  const ended = read.status === 'fulfilled' ? read.value : undefined;
  const lines = await localLines(stateDir, jobId);
  if (ended !== undefined) {
    // Its record says what it did then.
    if (!finalJobStates.includes(ended.job.state))
      console.err(
        `job ${jobId} had not ended when its stack did: "outrider local" with the same --state-dir goes on with it\n`,
      );
    return sourceOf({ ...ended, lines });
  }
  const inUse =
    read.status === 'rejected' && read.reason instanceof InvalidInputError ? read.reason : undefined;
  if (lines.length === 0) {
    if (inUse !== undefined) throw inUse;
    return undefined;
  }
  const why =
    inUse ??
    badInput(
      `of job ${jobId} only logs can be read while its stack is down: "outrider local" with the same --state-dir starts it again`,
    );
  const closed = (): Promise<never> => Promise.reject(why);
  return {
    since: epochMs(0),
    seenUntil: epochMs(lines.reduce((newest, { at }) => Math.max(newest, at), 0)),
    isLogAlone: true,
    job: closed,
    attempts: closed,
    allocations: closed,
    journal: closed,
    logs: () => readerOfLines(lines),
  };
}

function readerOf({ stack, api }: Target, named: string | undefined): LogReader {
  const logGroup = named ?? stack?.outputs[OutputName.logGroup];
  if (logGroup === undefined) {
    throw badInput(
      `--log-group is needed with a deployed service: its stack names it in the output ${OutputName.logGroup}`,
    );
  }
  const endpoint = stack?.environment.AWS_ENDPOINT_URL_CLOUDWATCH_LOGS ?? stack?.environment.AWS_ENDPOINT_URL;
  const client = new CloudWatchLogsClient({
    region: api.region,
    credentials: api.credentials,
    ...(endpoint === undefined ? {} : { endpoint }),
  });
  return new CloudWatchLogReader(client, logGroup);
}
