import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import * as z from 'zod';
import { defaultPolicy, type PolicyName } from '../contracts/policy-names.ts';
import { policySets } from '../core/policy/policy-sets.ts';
import { traceScenario } from '../experiments/trace-scenario.ts';
import { createRng } from '../lib/rng.ts';
import { oneLine, plural } from '../report/format.ts';
import { renderMetrics } from '../report/simulation-report.ts';
import { hostProfileNames, type HostProfileName } from '../sim/host-profiles.ts';
import { metricsOf } from '../sim/metrics.ts';
import { parseScenario, scenarioJsonSchema, type Scenario } from '../sim/scenario.ts';
import { simulate } from '../sim/simulate.ts';
import { collectJobs } from '../traces/collect-jobs.ts';
import { readTrace } from '../traces/read-trace.ts';
import { isTraceFormat, TRACE_FORMATS } from '../traces/trace-formats.ts';
import { taskCount, type TraceJob } from '../traces/trace-job.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { badInput, ExitCode, systemReason } from './failures.ts';
import { parseWhole } from './quantities.ts';
import { addTargetOptions, targetOptions } from './target-options.ts';

const examples = `
Examples:
  $ outrider simulate cluster.json --seed 7
  $ outrider simulate --trace FB-2009_samples_24_times_1hr_0.tsv --format swim --policy late --jobs 200
  $ outrider simulate --trace tpch_spark_tasks.jsonl.gz --format tpch --policy outrider --slots 50 --json
  $ outrider simulate --replay wordcount-0123456789ab      decides each tick of a job again that has run, and compares
  $ outrider simulate --replay wordcount-0123456789ab --policy mantri    and what Mantri would have done

A scenario is JSON: a cluster, what goes wrong in it, and jobs; "outrider simulate --schema" prints its schema.
Production's own scheduler decides; only machines, stores and time are simulated. Same seed, same bytes.

What is simulated of a trace: its jobs arrive as recorded (at random where nothing is), and share slots max-min fairly.
Tasks take what is recorded, or what their bytes foretell times a slowdown as measured on Hadoop; later attempts are
drawn for their task's input. Of drawn slowdowns 15 % is the node's, 19 % that of a minute there, the rest the attempt's,
as Hadoop's hosts had it (shares of the variance of normal scores). How a stage gets through its input is drawn: evenly, all of it early, or slowly at first.
  --host lambda   what production runs on: one attempt an environment, which nobody chooses; cold starts, warm
                  environments, Lambda's queue and pace; orders that a worker reads when it is time to; reports at the
                  workers' own times; looks between ticks. An invocation ends after 15 minutes: its task begins anew on
                  Fargate, which is beside it, and others that will take too long begin there. Starts (30 to 80 ms
                  warm, 0.3 to 1.5 s cold) and writes to S3 (about 70 ms) are assumed.
  --host fargate  a task on Fargate for each worker, in one of three zones: RunTask's pace, half a minute to a minute
                  until one works (assumed), and StopTask for those that are given up; all else as on Lambda.
  --host hadoop   the papers' clusters: fixed nodes, ends known and kills done at once, reports each tenth of a task.
Not simulated: that a task hands on what it has done when its invocation ends, what readers do to each other's bandwidth,
failures, and where times are recorded, what nodes make of later attempts.

Exit codes: 0 done, 1 a job failed or came out otherwise, 2 bad usage or input, 3 service unavailable.`;

const optionsSchema = z.object({
  ...targetOptions,
  replay: z.string().optional(),
  trace: z.string().optional(),
  format: z.string().optional(),
  policy: z.string().optional(),
  seed: z.string().default('1'),
  jobs: z.string().default('100'),
  slots: z.string().optional(),
  load: z.string().optional(),
  host: z.string().optional(),
  schema: z.boolean().default(false),
  json: z.boolean().default(false),
});
type Options = z.output<typeof optionsSchema>;

const mostJobs = 100_000;
const mostSlots = 100_000;
const largestSeed = 1_000_000_000;
/** A replay keeps every attempt; larger jobs are left out. */
const mostTasksOfJob = 20_000;
const mostScenarioBytes = 256 * 1024 * 1024;

/** `outrider simulate`: runs a scenario, or jobs of a trace, in the simulator. */
export function addSimulateCommand(
  program: Command,
  console: Console,
  done: (exitCode: number) => void,
): void {
  const command = program
    .command('simulate')
    .description('run a scenario, or jobs of a trace, on a simulated cluster')
    .argument('[scenario]', 'JSON file')
    .option('--trace <file>', 'replay a trace instead')
    .option(
      '--replay <job>',
      'go through a job again that has run, from what its schedulers have written down',
    )
    .option('--format <name>', `format of the trace: ${TRACE_FORMATS.join(', ')}`)
    .option(
      '--policy <name>',
      `how stragglers are treated (default: as in the scenario; ${defaultPolicy} for a trace); with --replay, what is compared`,
    )
    .option('--seed <n>', 'seed of all that is drawn', '1')
    .option('--jobs <n>', 'jobs of the trace, from its beginning', '100')
    .option('--slots <n>', 'slots of the cluster that replays a trace (default: as many as the load needs)')
    .option(
      '--load <share>',
      'share of the slots that the trace keeps busy (default: 0.7; with --slots as recorded, if it is)',
    )
    .option('--host <name>', `what a trace is replayed on: ${hostProfileNames.join(', ')}`, 'lambda')
    .option('--schema', 'print the JSON schema of scenarios, and nothing else')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (path: string | undefined, _options: unknown, self: Command) => {
      const options = optionsSchema.parse(self.opts());
      refuseUnused(self, path, options);
      if (options.schema) writeJson(console, scenarioJsonSchema());
      else if (options.replay !== undefined) done(await replayed(path, options.replay, options, console));
      else done(await runSimulation(path, options, console));
    });
  addTargetOptions(command);
}

/** Options by which a service is named, and what they are called. */
const ofService = { endpoint: 'endpoint', stateDir: 'state-dir' } as const;
const ofTraces: readonly string[] = ['format', 'jobs', 'slots', 'load', 'host'];

/** Throws where an option is given that would change nothing: the numbers would pass for those of what was asked for. */
function refuseUnused(self: Command, path: string | undefined, { replay, trace, schema }: Options): void {
  const given = Object.entries(ofService).find(([name]) => self.getOptionValueSource(name) === 'cli');
  if (given !== undefined && replay === undefined && !schema)
    throw badInput(`--${given[1]} goes with --replay alone: nothing else asks a service`);
  if (schema || (path === undefined && replay === undefined) || trace !== undefined) return;
  const names = replay === undefined ? ofTraces : [...ofTraces, 'seed'];
  const why = replay === undefined ? 'a scenario file: it says' : '--replay: the job says';
  const unused = names.find((name) => self.getOptionValueSource(name) === 'cli');
  if (unused !== undefined) throw badInput(`--${unused} cannot go with ${why} it by itself`);
}

async function replayed(
  path: string | undefined,
  job: string,
  options: Options,
  console: Console,
): Promise<number> {
  if (path !== undefined || options.trace !== undefined)
    throw badInput('give only one of a scenario file, --trace and --replay');
  // With it come the service's clients: most simulations need none.
  const { runReplay } = await import('./replay-command.ts');
  const policy = options.policy === undefined ? undefined : policyOf(options.policy);
  return runReplay(job, { ...options, policy }, console);
}

/** Returns the exit code. */
async function runSimulation(path: string | undefined, options: Options, console: Console): Promise<number> {
  if ((path === undefined) === (options.trace === undefined))
    throw badInput('give either a scenario file, --trace or --replay');
  const policy = options.policy === undefined ? undefined : policyOf(options.policy);
  const seed = String(parseWhole('--seed', options.seed, 0, largestSeed));
  const scenario =
    path === undefined
      ? await replayOf(options, policy ?? defaultPolicy, seed, console)
      : await scenarioFrom(resolve(console.cwd, path), policy);
  const metrics = metricsOf(await simulate(scenario, { seed }));
  if (options.json) writeJson(console, { ...metrics, seed: Number(seed) });
  else writeLines(console.out, renderMetrics(metrics, console.outStyle));
  return metrics.failed === 0 ? ExitCode.done : ExitCode.jobFailed;
}

function policyOf(name: string): PolicyName {
  const known = [...policySets.keys()].find((each) => each === name);
  if (known === undefined) {
    throw badInput(`no such policy: ${oneLine(name)}; there are ${[...policySets.keys()].join(', ')}`);
  }
  return known;
}

async function scenarioFrom(path: string, policy: PolicyName | undefined): Promise<Scenario> {
  const scenario = parseScenario(parseJson(await readText(path), path));
  if (policy === undefined) return scenario;
  return { ...scenario, jobs: scenario.jobs.map((job) => ({ ...job, policy })) };
}

async function readText(path: string): Promise<string> {
  try {
    const bytes = await readFile(path);
    if (bytes.length > mostScenarioBytes) throw badInput(`${path} is larger than any scenario may be`);
    return bytes.toString('utf8');
  } catch (error) {
    throw badInput(`cannot read ${path}: ${systemReason(error)}`, error);
  }
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badInput(
      `${path} is not JSON: ${error instanceof Error ? oneLine(error.message) : 'it cannot be read'}`,
      error,
    );
  }
}

async function replayOf(
  options: Options,
  policy: PolicyName,
  seed: string,
  console: Console,
): Promise<Scenario> {
  const { trace = '', format } = options;
  if (format === undefined || !isTraceFormat(format))
    throw badInput(`--trace needs --format, one of ${TRACE_FORMATS.join(', ')}`);
  const maxJobs = parseWhole('--jobs', options.jobs, 1, mostJobs);
  const slots = options.slots === undefined ? undefined : parseWhole('--slots', options.slots, 1, mostSlots);
  const host = hostNamed(options.host ?? 'lambda');
  const load = options.load === undefined ? undefined : parseShare('--load', options.load);
  let left = 0;
  const keep = (job: TraceJob): boolean => {
    const fits = taskCount(job) <= mostTasksOfJob;
    if (!fits) left += 1;
    return fits;
  };
  const jobs = await collectJobs(readTrace(format, resolve(console.cwd, trace)), { maxJobs, keep });
  if (left > 0) console.err(`left out ${plural(left, 'job')} of over ${mostTasksOfJob} tasks\n`);
  if (jobs.length === 0) throw badInput(`${trace} has no jobs`);
  const rng = createRng(`trace/${seed}`);
  return parseScenario(traceScenario(jobs, { format, policy, slots, load, host, rng }));
}

function hostNamed(text: string): HostProfileName {
  const known = hostProfileNames.find((each) => each === text);
  if (known === undefined)
    throw badInput(`--host "${oneLine(text)}" must be one of ${hostProfileNames.join(', ')}`);
  return known;
}

function parseShare(option: string, text: string): number {
  const value = /^\d*\.?\d+$/.test(text.trim()) ? Number(text) : 0;
  if (!(value > 0 && value <= 10))
    throw badInput(`${option} "${text}" must be a number above 0 and at most 10, such as 0.7`);
  return value;
}
