import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AttemptsResponse, JournalResponse } from '../contracts/api.ts';
import { parseJobId } from '../contracts/ids.ts';
import type { JobRecord } from '../contracts/records.ts';
import type { LogLine } from '../ports/log-reader.ts';
import { makePrivateDirectory, readOwnFile } from '../local/private-files.ts';

type Attempts = Omit<AttemptsResponse, 'cursor'>;

/** What is kept of a job that has run on a stack of its own: enough to see later what happened. */
export interface RunRecord {
  readonly job: JobRecord;
  readonly attempts: Attempts;
  readonly lines: readonly LogLine[];
  /** What its schedulers have written down; absent where that is not kept. */
  readonly journal?: JournalResponse['pieces'];
  /** Absolute path of the directory to which its output was brought; absent where none was. */
  readonly outputDir?: string;
}

/** Records that a state directory keeps; the oldest go. */
const keptRuns = 20;
const directoryName = 'runs';

const runsIn = (stateDir: string): string => join(stateDir, directoryName);

/** Keeps what is known of a job in a state directory, which is made if missing. Returns that directory. */
export async function keepRun(stateDir: string, run: RunRecord): Promise<string> {
  const { job, attempts, lines, journal = [], outputDir } = run;
  await makePrivateDirectory(stateDir);
  const directory = join(runsIn(stateDir), job.jobId);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const write = (name: string, text: string): Promise<void> =>
    writeFile(join(directory, name), text, { mode: 0o600 });
  await write('log.ndjson', lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  await write('attempts.json', JSON.stringify(attempts));
  await write('journal.json', JSON.stringify(journal));
  if (outputDir !== undefined) await write('output.json', JSON.stringify(outputDir));
  await write('job.json', JSON.stringify(job)); // The last: who has it has all.
  // What cannot be dropped now is dropped after another run.
  await dropOldest(stateDir).catch(() => undefined);
  return stateDir;
}

/** Bears others that do the same at once. */
async function dropOldest(stateDir: string): Promise<void> {
  const runs = runsIn(stateDir);
  const names = (await readdir(runs)).filter((name) => parseJobId(name) !== undefined);
  const aged = await Promise.all(
    names.map(async (name) => {
      const found = await stat(join(runs, name)).catch(() => undefined);
      return found === undefined ? [] : [{ name, ms: found.mtimeMs }];
    }),
  );
  const newestFirst = aged.flat().toSorted((a, b) => b.ms - a.ms);
  for (const { name } of newestFirst.slice(keptRuns))
    await rm(join(runs, name), { recursive: true, force: true }).catch(() => undefined);
}

/** What was kept of a job; undefined where nothing was, or it cannot be read. Throws `NotPrivateError`. */
export async function readRun(stateDir: string, jobId: string): Promise<RunRecord | undefined> {
  if (parseJobId(jobId) === undefined) return undefined;
  const read = (name: string): Promise<string | undefined> =>
    readOwnFile(join(runsIn(stateDir), jobId, name));
  const [job, attempts, log, journal = '[]', output] = await Promise.all([
    read('job.json'),
    read('attempts.json'),
    read('log.ndjson'),
    read('journal.json'),
    read('output.json'),
  ]);
  if (job === undefined || attempts === undefined || log === undefined) return undefined;
  try {
    return {
      job: JSON.parse(job) as JobRecord,
      attempts: JSON.parse(attempts) as Attempts,
      lines: log
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as LogLine),
      journal: JSON.parse(journal) as NonNullable<RunRecord['journal']>,
      ...(output === undefined ? {} : { outputDir: JSON.parse(output) as string }),
    };
  } catch {
    return undefined;
  }
}

/** The jobs of which a state directory keeps what happened, newest first; those that cannot be read are left out. */
export async function keptJobs(stateDir: string): Promise<readonly JobRecord[]> {
  const names = await readdir(runsIn(stateDir)).catch(() => []);
  const runs = await Promise.all(names.map((name) => readRun(stateDir, name).catch(() => undefined)));
  return runs.flatMap((run) => run?.job ?? []).toSorted((a, b) => b.createdAt - a.createdAt);
}
