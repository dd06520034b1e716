import { formatTime, oneLine } from '../report/format.ts';
import type { ListResponse } from '../contracts/api.ts';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import * as z from 'zod';
import { epochMs } from '../contracts/units.ts';
import { renderAttempts } from '../report/attempt-table.ts';
import { renderJob, renderJobs } from '../report/job-table.ts';
import { eachPage } from '../lib/pages.ts';
import { makeApiClient, type ApiClient } from './api-client.ts';
import { attemptsOf } from './attempts-of.ts';
import { defaultStateDir, findTarget, NoServiceError } from './connection.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { ExitCode } from './failures.ts';
import { withInterrupts } from './interrupts.ts';
import { findJobSource } from './job-source.ts';
import { checkDeadlineChange, parseWhole } from './quantities.ts';
import { keptJobs } from './run-records.ts';
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

const mostJobs = 1_000;
const pageJobs = 100;

type Add = (name: string, description: string, example: string) => Command;

/** `status`, `attempts`, `watch`, `cancel`, `deadline` and `list`: questions to the service. `done` takes the exit code. */
export function addJobCommands(program: Command, console: Console, done: (exitCode: number) => void): void {
  const add: Add = (name, description, example) =>
    addTargetOptions(program.command(name).description(description))
      .option('--json', 'print one JSON document, and nothing else, on standard output')
      .addHelpText('after', `\nExample:\n  $ outrider ${example}`);

  add('status', 'show a job: its stages, attempts, cost', 'status wordcount-0123456789ab')
    .argument('<job>', 'id of the job')
    .action(async (jobId: string, _options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      const source = await findJobSource(jobId, options, console);
      writeJob(await source.job(), options, console);
    });

  add('attempts', 'show where the time of a job went, attempt by attempt', 'attempts wordcount-0123456789ab')
    .argument('<job>', 'id of the job')
    .option('--task <stage/index>', 'only the attempts of one task, or of one stage')
    .action(async (jobId: string, _options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      const source = await findJobSource(jobId, options, console);
      const found = attemptsOf(await source.attempts(), options.task, jobId);
      if (options.json) writeJson(console, found);
      else if (found.attempts.length === 0) console.out('no attempts\n');
      else writeLines(console.out, renderAttempts(found.attempts, epochMs(Date.now()), console.outStyle));
    });

  add('watch', 'follow a job until it has ended; exit code 1 if it failed', 'watch wordcount-0123456789ab')
    .argument('<job>', 'id of the job')
    .option('-q, --quiet', 'show no progress')
    .action(async (jobId: string, _options: unknown, self: Command) => {
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
    .action(async (jobId: string, _options: unknown, self: Command) => {
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
    .action(async (jobId: string, time: string, _options: unknown, self: Command) => {
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

function writeJob(job: Awaited<ReturnType<ApiClient['job']>>, options: Options, console: Console): void {
  if (options.json) writeJson(console, job);
  else writeLines(console.out, renderJob(job, job.output, console.outStyle));
}

/** Asks the service; where there is none, for what is kept of runs in the state directory. Throws where nothing is. */
async function findJobs(options: Options, limit: number, console: Console): Promise<Listed> {
  try {
    const target = await findTarget(options, console);
    return await listJobs(makeApiClient(target.api), limit);
  } catch (error) {
    if (!(error instanceof NoServiceError)) throw error;
    const kept = await keptJobs(resolve(console.cwd, options.stateDir ?? defaultStateDir));
    if (kept.length === 0) throw error;
    return { jobs: kept.slice(0, limit), unreadable: [] };
  }
}

type Listed = Required<Pick<ListResponse, 'jobs' | 'unreadable'>>;

/** Pages until there are enough, or no more; jobs whose records cannot be read are told apart. */
async function listJobs(client: ApiClient, limit: number): Promise<Listed> {
  const jobs: Awaited<ReturnType<ApiClient['job']>>[] = [];
  const unreadable: NonNullable<ListResponse['unreadable']>[number][] = [];
  const ask = (cursor?: string): ReturnType<ApiClient['list']> => {
    const wanted = Math.min(pageJobs, limit - jobs.length);
    return client.list({ limit: wanted, ...(cursor === undefined ? {} : { cursor }) });
  };
  for await (const page of eachPage(ask, mostJobs + 1)) {
    jobs.push(...page.jobs);
    unreadable.push(...(page.unreadable ?? []));
    if (jobs.length >= limit) break;
  }
  return { jobs: jobs.slice(0, limit), unreadable };
}
