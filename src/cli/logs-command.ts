import { type Command, Option } from 'commander';
import { setTimeout as delay } from 'node:timers/promises';
import * as z from 'zod';
import type { JobId } from '../contracts/ids.ts';
import { finalJobStates } from '../contracts/records.ts';
import { OutputName } from '../contracts/settings.ts';
import { epochMs, type EpochMs } from '../contracts/units.ts';
import type { LogLine, LogReader } from '../ports/log-reader.ts';
import { formatCount } from '../report/format.ts';
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
import { badInput, ServiceUnavailableError } from './failures.ts';
import { givenJob } from './given-job.ts';
import { withInterrupts } from './interrupts.ts';
import { cutText, findJobSource, type JobSource } from './job-source.ts';
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
    .option('--follow', 'go on until the job has ended; exit code 3 if no stack is up that goes on with it')
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
  const jobId = givenJob(jobText);
  // Logs alone cannot tell a silent job from none.
  const source = await findJobSource(jobId, options, console, signal);
  const reader = source.logs(options.logGroup);
  if (options.task !== undefined && !source.isLogAlone) await checkAttempt(options.task, source, signal);
  const { until } = source;
  const log: Log = {
    ...{ reader, jobId, task: options.task, level: options.level, signal },
    ...(until === undefined ? {} : { until }),
  };
  // One more tells whether there are more.
  const { lines: found, isCut } = await readLines(log, source.since, limit + 1);
  const lines = found.slice(0, limit);
  if (options.task !== undefined && source.isLogAlone && lines.length === 0)
    throw badInput(`the logs of job ${jobId} do not name ${options.task}`);
  if (options.json) writeJson(console, { jobId, lines: lines.map(jsonOf) });
  else for (const line of lines) show(line, console);
  if (isCut) console.err(`${cutText}\n`);
  if (options.follow) {
    const hasEnded = async (): Promise<boolean> => finalJobStates.includes((await source.job(signal)).state);
    const isKept = source.seenUntil !== undefined;
    const followed = await follow({ ...log, since: source.since, shown: lines, hasEnded, isKept }, console);
    if (followed.isCut && !isCut) console.err(`${cutText}\n`);
    if (!followed.hasEnded)
      throw new ServiceUnavailableError(
        `job ${jobId} has not ended, and no stack is up that goes on with it: there is nothing to follow`,
      );
  } else if (found.length > limit) {
    console.err(
      `these are the first ${formatCount(limit)} lines, and there are more: --limit shows up to ${formatCount(mostLines)}, --task and --level choose among all\n`,
    );
  }
}

/** Throws where a job has no such stage, task or attempt. */
async function checkAttempt(wanted: string, source: JobSource, signal: AbortSignal): Promise<void> {
  const job = await source.job(signal);
  const isTold = checkTask(wanted, job);
  if (!isTold || wanted.split('/').length > 2) attemptsOf(await source.attempts(signal), wanted, job.jobId);
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

/** What is read of a job's log. */
interface Log {
  readonly reader: LogReader;
  readonly jobId: JobId;
  readonly task: string | undefined;
  readonly level: LogLevel;
  readonly signal: AbortSignal;
  readonly until?: EpochMs;
}

interface Following extends Log {
  /** Before the first line. */
  readonly since: EpochMs;
  readonly shown: readonly ReadLine[];
  /** Whether the job has ended. */
  readonly hasEnded: () => Promise<boolean>;
  /** Whether no stack goes on with it, so that what is kept of it is all that there will be. */
  readonly isKept: boolean;
}

/** Lines that were shown, by what they are, and when they were logged. */
type Known = ReadonlyMap<string, EpochMs>;

/**
 * Goes back a little each time, for lines that came late, and drops what it has shown. Tells whether the job had ended by
 * its last look, and whether its last read was cut.
 */
async function follow(
  following: Following,
  console: Console,
): Promise<{ readonly hasEnded: boolean; readonly isCut: boolean }> {
  const { signal } = following;
  let known: Known = new Map(following.shown.map((line) => [keyOf(line), line.line.at]));
  let newest = following.shown.at(-1)?.line.at ?? following.since;
  const began = performance.now();
  for (;;) {
    // Asked before the lines are read, so that the last ones are not missed.
    const hasEnded = await following.hasEnded();
    const since = epochMs(Math.max(following.since, newest - lateMs));
    const { keys, seenTo, isCut } = await showNewer(following, since, known, console);
    known = keys;
    newest = epochMs(Math.max(newest, seenTo));
    if (hasEnded || following.isKept) return { hasEnded, isCut };
    const pauseMs = Math.max(followPollMs, nextPollMs(performance.now() - began));
    await delay(pauseMs, undefined, { signal }).catch(() => {
      signal.throwIfAborted();
    });
  }
}

/** Shows what is not known, page by page; tells what may be met again of it, and whether the last page was cut. */
async function showNewer(
  log: Log,
  since: EpochMs,
  known: Known,
  console: Console,
): Promise<{ readonly keys: Known; readonly seenTo: EpochMs; readonly isCut: boolean }> {
  let keys: Known = known;
  for (let from = since; ;) {
    const { lines, seenTo, isCut } = await readLines(log, from, mostLines);
    const met = new Map(keys);
    for (const line of lines) {
      const key = keyOf(line);
      if (!met.has(key)) show(line, console);
      met.set(key, line.line.at);
    }
    keys = new Map([...met].filter(([, at]) => at >= seenTo - lateMs));
    if (lines.length < mostLines) return { keys, seenTo, isCut };
    from = epochMs(Math.max(seenTo, from + 1)); // From the last line on, and on in any case.
  }
}

const keyOf = ({ line: { at, source, text } }: ReadLine): string => `${String(at)} ${source} ${text}`;

function show({ event }: ReadLine, console: Console): void {
  console.out(`${renderLogEvent(event, console.outStyle)}\n`);
}

/** The wanted lines, and the time of the newest line up to which all have been seen. */
interface ReadLines {
  readonly lines: readonly ReadLine[];
  readonly seenTo: EpochMs;
  readonly isCut: boolean;
}

async function readLines(
  { reader, jobId, task, level, signal, until }: Log,
  since: EpochMs,
  limit: number,
): Promise<ReadLines> {
  let seenTo = since;
  const { lines, isCut } = await reader.read(jobId, {
    since,
    ...(until === undefined ? {} : { until }),
    limit,
    signal,
    wants: (line) => {
      if (line.at > seenTo) seenTo = line.at;
      const event = readLogLine(line);
      return isAtLeast(event, level) && (task === undefined || isAbout(event, task));
    },
  });
  const read = lines.map((line) => ({ line, event: readLogLine(line) }));
  return { lines: read, isCut, seenTo: lines.length < limit ? seenTo : (lines.at(-1)?.at ?? since) };
}
