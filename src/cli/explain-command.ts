import type { Command } from 'commander';
import * as z from 'zod';
import { OutriderError } from '../contracts/errors.ts';
import { explanationSchema } from '../contracts/explanation.ts';
import type { JobId } from '../contracts/ids.ts';
import { finalJobStates } from '../contracts/records.ts';
import { OutputName } from '../contracts/settings.ts';
import type { LogLine } from '../ports/log-reader.ts';
import { readDecisions } from '../report/explain/decision-events.ts';
import { type About, explainJob } from '../report/explain/explain-job.ts';
import { renderExplanation } from '../report/explain/explanation-text.ts';
import { oneLine } from '../report/format.ts';
import { readLogLine } from '../report/log-lines.ts';
import { checkTask } from './check-task.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { badInput } from './failures.ts';
import { givenJob } from './given-job.ts';
import { cutText, findJobSource, type JobSource } from './job-source.ts';
import { addTargetOptions, targetOptions } from './target-options.ts';

const examples = `
Examples:
  $ outrider explain wordcount-0123456789ab                where its time went, what was done about it, and what was not
  $ outrider explain wordcount-0123456789ab tokenize       the stragglers of a stage
  $ outrider explain wordcount-0123456789ab tokenize/3     one task, attempt by attempt
  $ outrider explain wordcount-0123456789ab --state-dir data    also when no stack is up: of "run" and of "local"

It goes by the job's records and its log, and says so where these do not tell.
Of a deployed service, give the log group that its stack names in the output ${OutputName.logGroup}: decisions are told by the log.`;

const optionsSchema = z.object({
  ...targetOptions,
  logGroup: z.string().optional(),
  json: z.boolean().default(false),
});

/** Lines of a job's log that are read, without what user code prints: that tells of no decision. */
const mostLines = 100_000;

/** `outrider explain`: what happened to a job, a stage or a task and why, what was considered and declined. */
export function addExplainCommand(program: Command, console: Console): void {
  addTargetOptions(
    program
      .command('explain')
      .description('tell in sentences where the time of a job went and why, and what was done about it'),
  )
    .argument('<job>', 'id of the job')
    .argument('[stage[/task]]', 'only one stage, or one task such as tokenize/3')
    .option('--log-group <name>', 'of a deployed service')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (jobText: string, aboutText: string | undefined, _options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      const about = aboutText === undefined ? undefined : parseAbout(aboutText);
      const jobId = givenJob(jobText);
      const source = await findJobSource(jobId, options, console);
      const job = await source.job();
      if (aboutText !== undefined && !checkTask(aboutText, job))
        throw badInput(
          `job ${jobId} ${finalJobStates.includes(job.state) ? 'ended before it was planned' : 'is not planned yet'}: it has no stages to explain`,
        );
      const [{ attempts }, log] = await Promise.all([
        source.attempts(),
        readLog(source, jobId, options.logGroup),
      ]);
      const decisions = readDecisions(log.lines.map(readLogLine));
      const { unread } = log;
      const facts = {
        job,
        attempts,
        decisions,
        // What nobody goes on with has not gone on since.
        now: source.seenUntil ?? Date.now(),
        ...(unread === undefined ? {} : { unread }),
      };
      const explanation = explainJob(facts, about);
      if (options.json) writeJson(console, explanationSchema.parse(explanation));
      else writeLines(console.out, renderExplanation(explanation, console.outStyle));
    });
}

function parseAbout(text: string): About {
  const [, stage, task] = /^([a-z][a-z0-9-]*)(?:\/(\d{1,9}))?$/.exec(text) ?? [];
  if (stage === undefined)
    throw badInput(`"${oneLine(text)}" must be a stage or stage/index, such as "tokenize" or "tokenize/3"`);
  return { stage, ...(task === undefined ? {} : { task: Number(task) }) };
}

/** The job's log, or why it cannot be read: all else can be told without it. */
async function readLog(
  source: JobSource,
  jobId: JobId,
  logGroup: string | undefined,
): Promise<{ readonly lines: readonly LogLine[]; readonly unread?: string }> {
  try {
    const wants = (line: LogLine): boolean => readLogLine(line).event !== 'user-output';
    const { since, until } = source;
    const page = { since, ...(until === undefined ? {} : { until }), limit: mostLines, wants };
    const { lines, isCut } = await source.logs(logGroup).read(jobId, page);
    if (isCut) return { lines, unread: cutText };
    if (lines.length < mostLines) return { lines };
    return {
      lines,
      unread: `its log has more than ${String(mostLines)} lines besides what its code printed, and the later ones were not read`,
    };
  } catch (error) {
    if (!(error instanceof OutriderError)) throw error;
    return { lines: [], unread: error.message };
  }
}
