import { formatTime, oneLine } from '../report/format.ts';
import type { Command } from 'commander';
import * as z from 'zod';
import type { JobRecord } from '../contracts/records.ts';
import { epochMs } from '../contracts/units.ts';
import { renderAttempts } from '../report/attempt-table.ts';
import { renderJob, renderJobs } from '../report/job-table.ts';
import { makeApiClient, type ApiClient } from './api-client.ts';
import { attemptsOf } from './attempts-of.ts';
import { findTarget } from './connection.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { ExitCode } from './failures.ts';
import { findJobs } from './find-jobs.ts';
import { givenJob } from './given-job.ts';
import { withInterrupts } from './interrupts.ts';
import { findJobSource, placeOfOutput, type JobSource } from './job-source.ts';
import { mostJobs } from './list-jobs.ts';
import { checkDeadlineChange, parseWhole } from './quantities.ts';
import { addTargetOptions, targetOptions } from './target-options.ts';
import { exitCodeOfJob, watchJob } from './watch-job.ts';

const optionsSchema = z.object({
  ...targetOptions,
  json: z.boolean().default(false),
  quiet: z.boolean().default(false),
  limit: z.string().default('20'),
  task: z.string().optional(),
});
type Options = z.output<typeof optionsSchema>;

type Add = (name: string, description: string, example: string) => Command;

/** `status`, `attempts`, `watch`, `cancel`, `deadline` and `list`: questions to the service. `done` takes the exit code. */
export function addJobCommands(program: Command, console: Console, done: (exitCode: number) => void): void {
  const add: Add = (name, description, example) =>
    addTargetOptions(program.command(name).description(description))
      .option('--json', 'print one JSON document, and nothing else, on standard output')
      .addHelpText('after', `\nExample:\n  $ outrider ${example}`);

  add('status', 'show a job: its stages, attempts, cost', 'status wordcount-0123456789ab')
    .argument('<job>', 'id of the job')
    .action(async (jobText: string, _options: unknown, self: Command) => {
      const jobId = givenJob(jobText);
      const options = optionsSchema.parse(self.opts());
      const source = await findJobSource(jobId, options, console);
      writeJob(await source.job(), options, console, source);
    });

  add('attempts', 'show where the time of a job went, attempt by attempt', 'attempts wordcount-0123456789ab')
    .argument('<job>', 'id of the job')
    .option('--task <stage/index>', 'only the attempts of one task, or of one stage')
    .action(async (jobText: string, _options: unknown, self: Command) => {
      const jobId = givenJob(jobText);
      const options = optionsSchema.parse(self.opts());
      const source = await findJobSource(jobId, options, console);
      const found = attemptsOf(await source.attempts(), options.task, jobId);
      if (options.json) writeJson(console, found);
      else if (found.attempts.length === 0) console.out('no attempts\n');
      else {
        const now = source.seenUntil ?? epochMs(Date.now());
        writeLines(console.out, renderAttempts(found.attempts, now, console.outStyle));
      }
    });

  add('watch', 'follow a job until it has ended; exit code 1 if it failed', 'watch wordcount-0123456789ab')
    .argument('<job>', 'id of the job')
    .option('-q, --quiet', 'show no progress')
    .action(async (jobText: string, _options: unknown, self: Command) => {
      const jobId = givenJob(jobText);
      const { options, client } = await open(self, console);
      const job = await withInterrupts((signal) =>
        watchJob(client, jobId, console, { quiet: options.quiet, signal }),
      );
      writeJob(job, options, console);
      done(exitCodeOfJob(job));
    });

  add('list', 'list jobs, newest first', 'list --limit 5')
    .option('--limit <n>', 'how many at most', '20')
    .action(async (_options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      const limit = parseWhole('--limit', options.limit, 1, mostJobs);
      const { jobs, unreadable } = await findJobs(options, limit, console);
      for (const { jobId, message } of unreadable) console.err(`${jobId} is left out: ${oneLine(message)}\n`);
      if (options.json) writeJson(console, { jobs });
      else if (jobs.length === 0) console.out('no jobs\n');
      else writeLines(console.out, renderJobs(jobs, epochMs(Date.now()), console.outStyle));
    });
  addChanges(add, console, done);
}

/** `cancel` and `deadline`. */
function addChanges(add: Add, console: Console, done: (exitCode: number) => void): void {
  add('cancel', 'end a job; its output is not published', 'cancel wordcount-0123456789ab')
    .argument('<job>', 'id of the job')
    .action(async (jobText: string, _options: unknown, self: Command) => {
      const jobId = givenJob(jobText);
      const { options, client } = await open(self, console);
      const job = await client.cancel(jobId);
      if (options.json) writeJson(console, job);
      else console.out(`${job.jobId} is told to end\n`);
      done(ExitCode.done);
    });

  add(
    'deadline',
    'set the time by which a running job is to end, or take it away',
    'deadline wordcount-0123456789ab 10m',
  )
    .argument('<job>', 'id of the job')
    .argument('<time>', 'from now, such as 90s, 10m or 2h; an instant such as 2027-01-31T18:00:00Z; or none')
    .action(async (jobText: string, time: string, _options: unknown, self: Command) => {
      const jobId = givenJob(jobText);
      const deadline = checkDeadlineChange(time);
      const { options, client } = await open(self, console);
      const job = await client.setDeadline(jobId, deadline);
      if (options.json) writeJson(console, job);
      else if (job.deadlineAt === undefined) console.out(`${job.jobId} has no deadline\n`);
      else console.out(`${job.jobId} is to end by ${formatTime(job.deadlineAt)}\n`);
      done(ExitCode.done);
    });
}

async function open(self: Command, console: Console): Promise<{ options: Options; client: ApiClient }> {
  const options = optionsSchema.parse(self.opts());
  const target = await findTarget(options, console);
  return { options, client: makeApiClient(target.api) };
}

function writeJob(
  job: JobRecord,
  options: Options,
  console: Console,
  source: Pick<JobSource, 'outputDir' | 'isOutputGone'> = {},
): void {
  const { outputDir } = source;
  if (options.json) writeJson(console, outputDir === undefined ? job : { ...job, outputDir });
  else writeLines(console.out, renderJob(job, placeOfOutput(job, source), console.outStyle));
}
