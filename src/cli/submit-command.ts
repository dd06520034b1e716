import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { z } from 'zod';
import { renderJob } from '../report/job-table.ts';
import { makeApiClient } from './api-client.ts';
import { findTarget, type Target } from './connection.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { dataBucketOf, objectStoreOf } from './embedded-stack.ts';
import { ExitCode } from './failures.ts';
import { withInterrupts } from './interrupts.ts';
import { addJobOptions, jobOptionsSchema } from './job-options.ts';
import { prepareJob, type PreparedJob } from './prepare-job.ts';
import { planStaging, removeStaged, uploadStaged } from './staging.ts';
import { addTargetOptions, repeatedTarget, targetOptions } from './target-options.ts';
import { exitCodeOfJob, watchJob } from './watch-job.ts';

const examples = `
Examples:
  $ outrider submit wordcount --input s3://books/english/ --output s3://results/counts/ --deadline 30m
  $ outrider submit job.json --client-token nightly-2026-01-31 --wait
  $ outrider submit sort --input big.txt         local files: only with a stack of "outrider local"

Without --wait it returns once the job is accepted. Ctrl-C during --wait leaves the job running.`;

const submitOptionsSchema = jobOptionsSchema.extend({
  ...targetOptions,
  output: z.string().optional(),
  clientToken: z.string().optional(),
  wait: z.boolean().default(false),
  quiet: z.boolean().default(false),
  json: z.boolean().default(false),
});

type SubmitOptions = z.output<typeof submitOptionsSchema>;

/** `outrider submit`: starts a job on a service that is up. `done` takes the exit code. */
export function addSubmitCommand(program: Command, console: Console, done: (exitCode: number) => void): void {
  const command = program
    .command('submit')
    .description('start a job on a deployed service, or on a stack kept up by "outrider local"')
    .argument('<job>', 'wordcount, grep, sort, groupby, join, or a spec file (JSON)');
  addTargetOptions(
    addJobOptions(command, 's3:// objects or prefixes (ending in /); local files with a local stack'),
  )
    .option('-o, --output <s3-prefix>', 's3://bucket/prefix/ for the parts (default: in the data bucket)')
    .option('--client-token <token>', 'two submissions of one job with one token start it once')
    .option('--wait', 'show progress and return when the job has ended')
    .option('-q, --quiet', 'show no progress')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (job: string, _options: unknown, self: Command) => {
      const options = submitOptionsSchema.parse(self.opts());
      done(await withInterrupts((signal) => submit(job, options, console, signal)));
    });
}

async function submit(
  job: string,
  options: SubmitOptions,
  console: Console,
  signal: AbortSignal,
): Promise<number> {
  const target = await findTarget(options, console);
  const prepared = await prepareJob(job, options, {
    cwd: console.cwd,
    inputs: target.stack === undefined ? 's3' : 'any',
    ...(options.output === undefined ? {} : { output: options.output }),
  });
  const client = makeApiClient(target.api);
  const staged = await stage(prepared, target, signal);
  try {
    const answer = await client.submit({
      spec: prepared.specWith(staged.uris),
      clientToken: options.clientToken ?? randomUUID(),
    });
    if (!options.wait) {
      if (options.json) writeJson(console, answer);
      else console.out(`${answer.jobId}${answer.started ? '' : ' (started before with this token)'}\n`);
      if (!options.quiet && !options.json) console.err(nextSteps(answer.jobId, options));
      return ExitCode.done;
    }
    const ended = await watchJob(client, answer.jobId, console, { quiet: options.quiet, signal }).finally(
      () => {
        if (signal.aborted) console.err(`job ${answer.jobId} goes on\n${nextSteps(answer.jobId, options)}`);
      },
    );
    if (options.json) writeJson(console, ended);
    else writeLines(console.out, renderJob(ended, ended.output, console.outStyle));
    await staged.remove();
    return exitCodeOfJob(ended);
  } catch (error) {
    // A job that was accepted may still be reading its inputs.
    if (error instanceof Error && error.name === 'InvalidInput') await staged.remove();
    throw error;
  }
}

/** What one does with a job that goes on. */
const nextSteps = (jobId: string, options: SubmitOptions): string =>
  [
    `  follow it         outrider watch ${jobId}${repeatedTarget(options)}\n`,
    `  get its output    outrider get ${jobId} <directory>${repeatedTarget(options)}\n`,
  ].join('');

/** Uploads local inputs to the local stack; `remove` takes them away once nobody reads them. */
async function stage(
  prepared: PreparedJob,
  target: Target,
  signal: AbortSignal,
): Promise<{ readonly uris: readonly string[]; readonly remove: () => Promise<void> }> {
  const { stack } = target;
  if (stack === undefined || prepared.sets.length === 0) return { uris: [], remove: () => Promise.resolve() };
  const store = objectStoreOf(stack);
  const sets = prepared.sets.map((files) => planStaging(dataBucketOf(stack), files));
  for (const set of sets) await uploadStaged(store, set, signal);
  return {
    uris: sets.map(({ uri }) => uri),
    remove: async () => {
      for (const set of sets) await removeStaged(store, set);
    },
  };
}
