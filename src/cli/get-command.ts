import type { Command } from 'commander';
import * as z from 'zod';
import type { JobId } from '../contracts/ids.ts';
import { oneLine, plural } from '../report/format.ts';
import { makeApiClient } from './api-client.ts';
import { findTarget } from './connection.ts';
import { writeJson, type Console } from './console.ts';
import { badInput } from './failures.ts';
import { givenJob } from './given-job.ts';
import { withInterrupts } from './interrupts.ts';
import { checkOutputDir, downloadOutput } from './output-dir.ts';
import { objectsOf } from './target-objects.ts';
import { addTargetOptions, targetOptions } from './target-options.ts';

const examples = `
Example:
  $ outrider get wordcount-0123456789ab counts

The parts come under their own names, and _SUCCESS last: a directory that has it is whole.`;

const optionsSchema = z.object({
  ...targetOptions,
  force: z.boolean().default(false),
  json: z.boolean().default(false),
});
type Options = z.output<typeof optionsSchema>;

/** `outrider get`: brings the output of a job that has succeeded to this machine. */
export function addGetCommand(program: Command, console: Console): void {
  addTargetOptions(program.command('get').description('bring the output of a job to a directory'))
    .argument('<job>', 'id of the job')
    .argument('<directory>', 'empty, or not there yet')
    .option('--force', 'replace an earlier output in the directory')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (jobText: string, directory: string, _options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      const jobId = givenJob(jobText);
      await withInterrupts((signal) => getOutput({ jobId, directory }, options, console, signal));
    });
}

async function getOutput(
  { jobId, directory }: { readonly jobId: JobId; readonly directory: string },
  options: Options,
  console: Console,
  signal: AbortSignal,
): Promise<void> {
  const { force } = options;
  const target = await findTarget(options, console);
  const job = await makeApiClient(target.api).job(jobId, signal);
  if (job.state !== 'succeeded') {
    const hint =
      job.endedAt === undefined ? `wait for it with "outrider watch ${job.jobId}"` : 'it has no output';
    throw badInput(`job ${job.jobId} is ${job.state}: ${hint}`);
  }
  const path = await checkOutputDir(directory, console.cwd, { name: 'directory', force });
  const store = objectsOf(target);
  const parts = await downloadOutput(() => store, job, path, signal, { force });
  if (options.json) writeJson(console, { jobId: job.jobId, output: parts });
  else console.out(`${plural(parts.length, 'part')} of ${job.jobId} in ${oneLine(directory)}\n`);
}
