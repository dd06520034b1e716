import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import * as z from 'zod';
import { renderInjected } from '../report/injected-line.ts';
import { renderJob } from '../report/job-table.ts';
import { oneLine } from '../report/format.ts';
import { runReport } from '../report/run-report.ts';
import { refuseInputsInside, refuseStateInside } from './apart.ts';
import { quote } from './connection.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { withInterrupts } from './interrupts.ts';
import { idleFaults, refuseIdleZones } from './idle-faults.ts';
import { injectOption, parseInject } from './inject-option.ts';
import { addJobOptions, jobOptionsSchema, type JobOptions } from './job-options.ts';
import { checkOutputDir } from './output-dir.ts';
import { renderPhases } from './phases.ts';
import { standIn } from './prepare-inputs.ts';
import { prepareJob } from './prepare-job.ts';
import { parseWhole } from './quantities.ts';
import { runDeps, runJob, type RunDeps, type RunOutcome } from './run-job.ts';
import { exitCodeOfJob } from './watch-job.ts';

const examples = `
Examples:
  $ outrider run wordcount --input books/ --output counts
  $ outrider run grep --pattern 'error|fatal' --count --input 'logs/**/*.log' --output errors
  $ outrider run sort --input big.txt --output sorted --slots 4 --deadline 10m
  $ outrider run groupby --input sales.csv --key region --agg 'count,sum:amount' --output totals
  $ outrider run join --input orders.csv --right customers.csv --left-key customer --right-key id --output joined
  $ outrider run job.json --output result --json
  $ outrider run ./job.ts --input logs/ --output sessions
  $ outrider run job.json --output result --policy outrider --inject slow=8x1,kill=1,throttle=0.2

Directories are walked; what has a name there that begins with "_" or "." is passed over, so that a job's output
can be the next one's input. Files are read in byte order of their absolute paths, each once. In a spec file,
entries of "s3" that do not begin with "s3://" are local files, directories or patterns, relative to the spec file.

Exit codes: 0 done, 1 job failed or missed its deadline, 2 bad usage or input, 3 service unavailable.`;

const runOptionsSchema = jobOptionsSchema.extend({
  output: z.string(),
  force: z.boolean().default(false),
  slots: z.string().optional(),
  inject: z.string().optional(),
  stateDir: z.string().optional(),
  keepState: z.boolean().default(false),
  quiet: z.boolean().default(false),
  json: z.boolean().default(false),
});

const mostSlots = 256;
const fewestDefaultSlots = 2;

/** `outrider run`: one job on a stack of its own. `done` takes the exit code. */
export function addRunCommand(program: Command, console: Console, done: (exitCode: number) => void): void {
  const command = program
    .command('run')
    .description('run one job on this machine, on an embedded stack that goes when the job has ended')
    .argument(
      '<job>',
      'wordcount, grep, sort, groupby, join, a job file (TypeScript), or a spec file (JSON)',
    );
  addJobOptions(command, 'files, directories or glob patterns')
    .requiredOption('-o, --output <dir>', 'directory for the parts and _SUCCESS; absent or empty')
    .option('--force', 'replace an earlier output in the directory')
    .option('--slots <n>', 'tasks at once (default: one per core, at least 2)')
    .addOption(injectOption())
    .option('--state-dir <dir>', "keep the stack's data here")
    .option('--keep-state', "leave the stack's data in its temporary directory")
    .option('-q, --quiet', 'show no progress')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (job: string, _options: unknown, self: Command) => {
      const options = runOptionsSchema.parse(self.opts());
      const code = await withInterrupts((signal) => runCommand(job, options, runDeps(console), signal));
      done(code);
    });
}

export type RunOptions = z.output<typeof runOptionsSchema>;

/** Checks everything, runs the job, prints its report. Returns the exit code. */
export async function runCommand(
  job: string,
  options: RunOptions,
  deps: RunDeps,
  signal: AbortSignal,
): Promise<number> {
  const outcome = await checkAndRun(job, options, deps, signal);
  if (options.json) writeJson(deps.console, runReport(outcome.job, outcome.output, outcome));
  else writeLines(deps.console.out, reportLines(outcome, options, deps.console));
  if (outcome.job.state !== 'succeeded') deps.console.err(`outrider: ${failureOf(outcome)}\n`);
  return exitCodeOfJob(outcome.job);
}

/** The part of `run` that is not printing: also what the demonstration does. */
export async function checkAndRun(
  job: string,
  options: JobOptions &
    Pick<RunOptions, 'output' | 'slots' | 'inject' | 'stateDir' | 'keepState' | 'quiet'> &
    Partial<Pick<RunOptions, 'force'>>,
  deps: RunDeps,
  signal: AbortSignal,
): Promise<RunOutcome> {
  const { cwd } = deps.console;
  const { force = false } = options;
  const slots =
    options.slots === undefined
      ? Math.max(fewestDefaultSlots, availableParallelism())
      : parseWhole('--slots', options.slots, 1, mostSlots);
  const injection = options.inject === undefined ? undefined : parseInject(options.inject);
  const prepared = await prepareJob(job, options, {
    cwd,
    inputs: 'local',
    slots,
    note: (text) => {
      deps.console.err(`${text}\n`);
    },
  });
  if (injection !== undefined) {
    const spec = prepared.specWith(prepared.sets.map((_, place) => standIn(place)));
    refuseIdleZones(injection, spec);
    for (const text of idleFaults(injection, spec)) deps.console.err(`${text}\n`);
  }
  const outputDir = await checkOutputDir(options.output, cwd, { force });
  const files = prepared.sets.flat();
  // Else the output of the last run would be counted among the inputs of this one.
  if (force) await refuseInputsInside(files, outputDir, `--output ${options.output}`);
  if (options.stateDir !== undefined) {
    const stateDir = resolve(cwd, options.stateDir);
    await refuseStateInside(stateDir, options.stateDir, outputDir);
    await refuseInputsInside(files, stateDir, `--state-dir ${options.stateDir}`);
  }
  return runJob(
    {
      job: prepared,
      outputDir,
      force,
      slots,
      keepState: options.keepState,
      quiet: options.quiet,
      ...(injection === undefined ? {} : { injection }),
      ...(options.stateDir === undefined ? {} : { stateDir: options.stateDir }),
    },
    deps,
    signal,
  );
}

function reportLines(outcome: RunOutcome, options: RunOptions, console: Console): readonly string[] {
  const { injected, asked } = outcome;
  const output = outcome.job.state === 'succeeded' ? options.output : undefined;
  return [
    ...renderJob(outcome.job, output, console.outStyle),
    ...(injected === undefined ? [] : [`injected  ${renderInjected(injected, asked)}`]),
    `time      ${renderPhases(outcome.phases)}`,
    ...(outcome.stateDir === undefined ? [] : [`state     ${outcome.stateDir}`]),
    ...(outcome.recordIn === undefined ? [] : [`logs      ${logsCommand(outcome, options)}`]),
  ];
}

/** What tells more of a job that has run, and where it is kept. */
const logsCommand = ({ job, recordIn = '' }: RunOutcome, { stateDir, keepState }: RunOptions): string => {
  const where = stateDir === undefined && !keepState ? '' : ` --state-dir ${quote(recordIn)}`;
  return `outrider logs ${job.jobId}${where}   (kept in ${recordIn})`;
};

function failureOf({ job }: RunOutcome): string {
  const reason = job.error === undefined ? '' : `: ${oneLine(job.error.message)}`;
  return `job ${job.jobId} ${job.state}${reason}`;
}
