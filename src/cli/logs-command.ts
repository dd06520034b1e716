import { type Command, Option } from 'commander';
import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import { parseJobId, type JobId } from '../contracts/ids.ts';
import { finalJobStates } from '../contracts/records.ts';
import { OutputName } from '../contracts/settings.ts';
import { epochMs, type EpochMs } from '../contracts/units.ts';
import type { LogLine, LogReader } from '../ports/log-reader.ts';
import { oneLine } from '../report/format.ts';
import {
  isAbout,
  isAtLeast,
  type LogEvent,
  type LogLevel,
  logLevels,
  readLogLine,
  renderLogEvent,
} from '../report/log-lines.ts';
import { attemptsOf } from './attempts-of.ts';
import { checkTask } from './check-task.ts';
import { writeJson, type Console } from './console.ts';
import { badInput } from './failures.ts';
import { withInterrupts } from './interrupts.ts';
import { findJobSource, type JobSource } from './job-source.ts';
import { parseWhole } from './quantities.ts';
import { addTargetOptions, targetOptions } from './target-options.ts';
import { nextPollMs } from './watch-job.ts';

const examples = `
Examples:
  $ outrider logs wordcount-0123456789ab
  $ outrider logs wordcount-0123456789ab --task tokenize/3
  $ outrider logs wordcount-0123456789ab --level warn        what went wrong, and what was said on standard error
  $ outrider logs wordcount-0123456789ab --follow
  $ outrider logs wordcount-0123456789ab --state-dir data    also when no stack is up: of "run" and of "local"

"|" is before what user code printed, "!" before what it said on standard error.
Of a deployed service, give the log group that its stack names in the output ${OutputName.logGroup}.`;

const optionsSchema = z.object({
  ...targetOptions,
  task: z
    .string()
    .regex(/^[a-z][a-z0-9-]*(\/\d+){0,2}$/)
    .optional()
    .catch('?'),
  level: z.enum(logLevels).default('info'),
  follow: z.boolean().default(false),
  limit: z.string().default('1000'),
  logGroup: z.string().optional(),
  json: z.boolean().default(false),
});
type Options = z.output<typeof optionsSchema>;

const mostLines = 10_000;
const followPollMs = 1_000;
/** Lines may arrive so much later than they were logged. */
const lateMs = 15_000;

/** `outrider logs`: what functions and workers logged about a job, and what its code printed. */
export function addLogsCommand(program: Command, console: Console): void {
  addTargetOptions(
    program
      .command('logs')
      .description('show what the code of a job printed, and what was decided and done for it'),
  )
    .argument('<job>', 'id of the job')
    .option(
      '--task <stage/index>',
      'only lines of one task, of one attempt (stage/index/number) or of one stage',
    )
    .addOption(
      new Option('--level <level>', 'lines of this level and above').choices(logLevels).default('info'),
    )
    .option('--follow', 'go on until the job has ended')
    .option('--limit <n>', 'lines at most', '1000')
    .option('--log-group <name>', 'of a deployed service')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (jobText: string, _options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      if (options.task === '?')
        throw badInput('--task must be stage/index or stage/index/number, such as "tokenize/3"');
      if (options.follow && options.json)
        throw badInput('--follow cannot go with --json: it has no last line');
      await withInterrupts((signal) => showLogs(jobText, options, console, signal));
    });
}

async function showLogs(
  jobText: string,
  options: Options,
  console: Console,
  signal: AbortSignal,
): Promise<void> {
  const limit = parseWhole('--limit', options.limit, 1, mostLines);
  const jobId = parseJobId(jobText);
  if (jobId === undefined) throw badInput(`no such job: ${oneLine(jobText)}; "outrider list" names them`);
  // Logs alone cannot tell a silent job from none.
  const source = await findJobSource(jobId, options, console, signal);
  const reader = source.logs(options.logGroup);
  const wanted = { task: options.task, level: options.level };
  if (options.task !== undefined && !source.isLogAlone) await checkAttempt(options.task, source);
  const lines = await readLines(reader, { jobId, ...wanted }, source.since, limit);
  if (options.task !== undefined && source.isLogAlone && lines.length === 0)
    throw badInput(`the logs of job ${jobId} do not name ${options.task}`);
  if (options.json) {
    writeJson(console, { jobId, lines: lines.map(jsonOf) });
    return;
  }
  for (const { event } of lines) console.out(`${renderLogEvent(event, console.outStyle)}\n`);
  if (options.follow) {
    const isOver = async (): Promise<boolean> => finalJobStates.includes((await source.job(signal)).state);
    await follow({ reader, jobId, ...wanted, shown: lines, isOver }, console, signal);
  }
}

/** Throws where a job has no such stage, task or attempt. */
async function checkAttempt(wanted: string, source: JobSource): Promise<void> {
  const job = await source.job();
  const isTold = checkTask(wanted, job);
  if (!isTold || wanted.split('/').length > 2) attemptsOf(await source.attempts(), wanted, job.jobId);
}

/** A line as it was logged, and what it says. */
interface ReadLine {
  readonly line: LogLine;
  readonly event: LogEvent;
}

const jsonOf = ({ line, event }: ReadLine): object => ({
  ...line,
  level: event.level,
  ...(event.event === undefined ? {} : { event: event.event }),
  ...(event.about === undefined ? {} : { about: event.about }),
  ...(event.stream === undefined ? {} : { stream: event.stream, message: event.text }),
});

interface Following {
  readonly reader: LogReader;
  readonly jobId: JobId;
  readonly task: string | undefined;
  readonly level: LogLevel;
  readonly shown: readonly ReadLine[];
  readonly isOver: () => Promise<boolean>;
}

/** Goes back a little each time, for lines that came late, and drops what it has shown. */
async function follow(following: Following, console: Console, signal: AbortSignal): Promise<void> {
  let known = new Set(following.shown.map(keyOf));
  let newest = following.shown.at(-1)?.line.at ?? epochMs(0);
  const began = performance.now();
  for (;;) {
    // Asked before the lines are read, so that the last ones are not missed.
    const isLast = await following.isOver();
    const since = epochMs(newest - lateMs);
    const lines = await readLines(following.reader, following, since, mostLines);
    for (const line of lines)
      if (!known.has(keyOf(line))) console.out(`${renderLogEvent(line.event, console.outStyle)}\n`);
    known = new Set(lines.map(keyOf));
    newest = lines.at(-1)?.line.at ?? newest;
    if (isLast) return;
    const pauseMs = Math.max(followPollMs, nextPollMs(performance.now() - began));
    await delay(pauseMs, undefined, { signal }).catch(() => {
      signal.throwIfAborted();
    });
  }
}

const keyOf = ({ line: { at, source, text } }: ReadLine): string => `${String(at)} ${source} ${text}`;

async function readLines(
  reader: LogReader,
  {
    jobId,
    task,
    level,
  }: { readonly jobId: JobId; readonly task: string | undefined; readonly level: LogLevel },
  since: EpochMs,
  limit: number,
): Promise<readonly ReadLine[]> {
  // Those that are wanted may be few among many, so the limit holds for those that are left.
  const isAll = task === undefined && level === 'debug';
  const lines = await reader.read(jobId, { since, limit: isAll ? limit : mostLines });
  return lines
    .map((line) => ({ line, event: readLogLine(line) }))
    .filter(({ event }) => isAtLeast(event, level) && (task === undefined || isAbout(event, task)))
    .slice(0, limit);
}
