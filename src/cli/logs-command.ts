import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import type { Command } from 'commander';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { CloudWatchLogReader } from '../adapters/aws/cloudwatch-log-reader.ts';
import { parseJobId, type JobId } from '../contracts/ids.ts';
import { finalJobStates } from '../contracts/records.ts';
import { OutputName } from '../contracts/settings.ts';
import { epochMs, type EpochMs } from '../contracts/units.ts';
import type { LogLine, LogReader } from '../ports/log-reader.ts';
import { oneLine } from '../report/format.ts';
import { makeApiClient } from './api-client.ts';
import { attemptsOf } from './attempts-of.ts';
import { findTarget, type Target } from './connection.ts';
import { writeJson, type Console } from './console.ts';
import { badInput } from './failures.ts';
import { withInterrupts } from './interrupts.ts';
import { parseWhole } from './quantities.ts';
import { addTargetOptions, targetOptions } from './target-options.ts';
import { nextPollMs } from './watch-job.ts';

const examples = `
Examples:
  $ outrider logs wordcount-0123456789ab
  $ outrider logs wordcount-0123456789ab --task tokenize/3
  $ outrider logs wordcount-0123456789ab --follow

Of a deployed service, give the log group that its stack names in the output ${OutputName.logGroup}.`;

const optionsSchema = z.object({
  ...targetOptions,
  task: z
    .string()
    .regex(/^[a-z][a-z0-9-]*\/\d+(\/\d+)?$/)
    .optional()
    .catch('?'),
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

/** `outrider logs`: what functions and workers logged about a job. */
export function addLogsCommand(program: Command, console: Console): void {
  addTargetOptions(program.command('logs').description('show what functions and workers logged about a job'))
    .argument('<job>', 'id of the job')
    .option('--task <stage/index>', 'only lines of one task, or of one attempt (stage/index/number)')
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
  const target = await findTarget(options, console);
  const client = makeApiClient(target.api);
  const jobId = parseJobId(jobText);
  if (jobId === undefined) throw badInput(`no such job: ${oneLine(jobText)}; "outrider list" names them`);
  const job = await client.job(jobId, signal); // Logs alone cannot tell a silent job from none.
  const reader = readerOf(target, options);
  const lines = await readLines(reader, jobId, epochMs(job.createdAt - lateMs), limit, options.task);
  // No line may mean that it has said nothing, or that there is no such task.
  if (options.task !== undefined && lines.length === 0)
    attemptsOf(await client.attempts(jobId), options.task, jobId);
  if (options.json) {
    writeJson(console, { jobId, lines });
    return;
  }
  for (const line of lines) console.out(format(line));
  if (options.follow) {
    const isOver = async (): Promise<boolean> =>
      finalJobStates.includes((await client.job(jobId, signal)).state);
    await follow({ reader, jobId, task: options.task, shown: lines, isOver }, console, signal);
  }
}

interface Following {
  readonly reader: LogReader;
  readonly jobId: JobId;
  readonly task: string | undefined;
  readonly shown: readonly LogLine[];
  readonly isOver: () => Promise<boolean>;
}

/** Goes back a little each time, for lines that came late, and drops what it has shown. */
async function follow(following: Following, console: Console, signal: AbortSignal): Promise<void> {
  let known = new Set(following.shown.map(format));
  let newest = following.shown.at(-1)?.at ?? epochMs(0);
  const began = performance.now();
  for (;;) {
    // Asked before the lines are read, so that the last ones are not missed.
    const isLast = await following.isOver();
    const since = epochMs(newest - lateMs);
    const lines = await readLines(following.reader, following.jobId, since, mostLines, following.task);
    for (const text of lines.map(format)) if (!known.has(text)) console.out(text);
    known = new Set(lines.map(format));
    newest = lines.at(-1)?.at ?? newest;
    if (isLast) return;
    const pauseMs = Math.max(followPollMs, nextPollMs(performance.now() - began));
    await delay(pauseMs, undefined, { signal }).catch(() => {
      signal.throwIfAborted();
    });
  }
}

async function readLines(
  reader: LogReader,
  jobId: JobId,
  since: EpochMs,
  limit: number,
  task: string | undefined,
): Promise<readonly LogLine[]> {
  if (task === undefined) return reader.read(jobId, { since, limit });
  // A task's lines may be few among many, so the limit holds for those that are left.
  const lines = await reader.read(jobId, { since, limit: mostLines });
  const names = new RegExp(`(?<![\\w/-])${task}(?![\\w-])`);
  return lines.filter(({ text }) => names.test(text)).slice(0, limit);
}

const format = ({ at, source, text }: LogLine): string =>
  `${new Date(at).toISOString()} ${oneLine(source)} ${oneLine(text, mostLines)}\n`;

function readerOf({ stack, api }: Target, options: Options): LogReader {
  const logGroup = options.logGroup ?? stack?.outputs[OutputName.logGroup];
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
