import { replayJob } from '../app/replay-job.ts';
import { UnreadableRecordError } from '../contracts/errors.ts';
import { parseJobId } from '../contracts/ids.ts';
import { oneLine } from '../report/format.ts';
import { renderReplay } from '../report/replay-report.ts';
import { type Console, writeJson, writeLines } from './console.ts';
import { badInput, ExitCode } from './failures.ts';
import { findJobSource } from './job-source.ts';

interface ReplayOptions {
  readonly endpoint?: string | undefined;
  readonly stateDir?: string | undefined;
  readonly json: boolean;
}

/**
 * Goes through a recorded job again, and prints whether it came out alike; answers the exit code. Throws
 * `UnreadableRecordError` that names the job where it has no journal, or a spoilt one, or one of another version.
 */
export async function runReplay(jobText: string, options: ReplayOptions, console: Console): Promise<number> {
  const jobId = parseJobId(jobText);
  if (jobId === undefined) throw badInput(`no such job: ${oneLine(jobText)}; "outrider list" names them`);
  const source = await findJobSource(jobId, options, console);
  const report = await replayJob((cursor) => source.journal(cursor)).catch((cause: unknown) => {
    if (!(cause instanceof UnreadableRecordError)) throw cause;
    throw new UnreadableRecordError(
      `job ${jobId} cannot be gone through again: ${cause.message}`,
      { jobId },
      { cause },
    );
  });
  const isAlike = report.reproduced === report.ticks;
  if (options.json) writeJson(console, report);
  else writeLines(console.out, renderReplay(report, console.outStyle));
  return isAlike ? ExitCode.done : ExitCode.jobFailed;
}
