import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import * as z from 'zod';
import { answerOf, type Found, subjectOf } from '../app/plan-ahead.ts';
import { encodeForecast, readForecast } from '../contracts/forecast.ts';
import { parseDurationText } from '../contracts/job-spec.ts';
import { limits } from '../contracts/limits.ts';
import type { PlanResponse } from '../contracts/plans.ts';
import { pricesWith } from '../contracts/prices.ts';
import { resized } from '../core/forecast/resize-profile.ts';
import { storedProfile } from '../core/forecast/stored-profile.ts';
import { profileOfRuns } from '../experiments/profile-of-trace.ts';
import { oneLine, plural } from '../report/format.ts';
import { renderPlan } from '../report/plan-table.ts';
import { drawPlan } from '../report/plots/plan-plot.ts';
import { readTrace } from '../traces/read-trace.ts';
import { isTraceFormat, TRACE_FORMATS } from '../traces/trace-formats.ts';
import type { TraceJob } from '../traces/trace-job.ts';
import { makeApiClient } from './api-client.ts';
import { findTarget } from './connection.ts';
import { writeJson, writeLines, type Console } from './console.ts';
import { badInput, systemReason } from './failures.ts';
import { addJobOptions, jobOptionsSchema } from './job-options.ts';
import { limitsOf } from './prepare-inputs.ts';
import { prepareJob } from './prepare-job.ts';
import { type SizedJob, sizeJob } from './plan-sizes.ts';
import { parseWhole } from './quantities.ts';
import { objectsOf } from './target-objects.ts';
import { addTargetOptions, targetOptions } from './target-options.ts';

const examples = `
Examples:
  $ outrider plan wordcount --input logs/ --deadline 10m
  $ outrider plan job.json --deadline 1h --budget 5 --svg plan.svg --endpoint https://…
  $ outrider plan --trace runs.jsonl.gz --trace-format spark --trace-job q3 --save-profile q3.json
  $ outrider plan sort --input big.txt --profile sort.json --slots 1,2,4,8,16 --json

Nothing is started. The service is asked what it has learned of the job's finished runs, else of jobs like it (--like,
or those that ran the same operators); the answer says what it rests on, and where nothing is known, that. With
--profile or --trace no service is needed. "half in" is the time within which half of the simulated runs end.
Marked is the cheapest number of slots that meets the deadline at 95 %.

Prices are a dated list of us-east-1; --prices takes a JSON file with those that differ, such as
{"asOf": "2027-01-15", "region": "eu-west-1", "lambdaGbSecond": 0.0000133334}.`;

const optionsSchema = jobOptionsSchema.extend({
  ...targetOptions,
  slots: z.string().optional(),
  like: z.string().optional(),
  prices: z.string().optional(),
  profile: z.string().optional(),
  saveProfile: z.string().optional(),
  trace: z.string().optional(),
  traceFormat: z.string().optional(),
  traceJob: z.string().optional(),
  svg: z.string().optional(),
  json: z.boolean().default(false),
});
type Options = z.output<typeof optionsSchema>;

/** `outrider plan`: what a job would take and cost on each number of slots, before it runs. */
export function addPlanCommand(program: Command, console: Console): void {
  const command = program
    .command('plan')
    .description('foretell what a job would take and cost on each number of slots; starts nothing')
    .argument(
      '[job]',
      'wordcount, grep, sort, groupby, join, a job file (TypeScript), or a spec file (JSON)',
    );
  addTargetOptions(addJobOptions(command, 'files, directories, glob patterns, s3:// objects or prefixes'))
    .option('--slots <list>', 'numbers of slots to look at, such as 1,2,4,8')
    .option('--like <name>', 'a job whose runs stand for this one where it has none')
    .option('--prices <file>', 'JSON file with prices that differ from the list')
    .option('--profile <file>', 'what is known of its runs, as --save-profile has written it')
    .option('--trace <file>', 'take its profile from a recorded trace')
    .option('--trace-format <name>', `format of the trace: ${TRACE_FORMATS.join(', ')}`)
    .option('--trace-job <id>', 'which job of the trace (default: its first)')
    .option('--save-profile <file>', 'write the profile of the trace to a file')
    .option('--svg <file>', 'draw the plan into a file')
    .option('--json', 'print one JSON document, and nothing else, on standard output')
    .addHelpText('after', examples)
    .action(async (job: string | undefined, _options: unknown, self: Command) => {
      await plan(job, optionsSchema.parse(self.opts()), console);
    });
}

async function plan(job: string | undefined, options: Options, console: Console): Promise<void> {
  const answer = await answerFor(job, options, console);
  if (options.svg !== undefined) await save(options.svg, drawPlan(answer), console);
  if (options.json) writeJson(console, answer);
  else writeLines(console.out, renderPlan(answer, console.outStyle));
}

async function answerFor(job: string | undefined, options: Options, console: Console): Promise<PlanResponse> {
  const slots = options.slots === undefined ? undefined : parseSlots(options.slots);
  const prices = options.prices === undefined ? undefined : await readPrices(options.prices, console);
  const given = await givenProfile(options, console);
  if (given !== undefined && options.like !== undefined)
    throw badInput('--like cannot go with --profile or --trace: those say what the runs were');
  const asked = { ...(slots === undefined ? {} : { slots }), ...(prices === undefined ? {} : { prices }) };
  if (job === undefined) {
    if (given === undefined)
      throw badInput('name a job, or give --profile or --trace: there is nothing to plan');
    return answerOf(given, { ...subjectOfOptions(given, options), ...asked });
  }
  const target = given === undefined ? await findTarget(options, console) : undefined;
  const sizedJob = await sized(job, options, console, target === undefined ? undefined : objectsOf(target));
  const { spec, stages, unsized } = sizedJob;
  if (unsized !== undefined) console.err(`how much the job reads is not known: ${oneLine(unsized)}\n`);
  if (given !== undefined) return answerOf(fitted(given, sizedJob), { ...subjectOf(spec), ...asked });
  if (target === undefined) throw badInput('there is no service to ask');
  const { like } = options;
  return makeApiClient(target.api).plan({ spec, stages, ...(like === undefined ? {} : { like }), ...asked });
}

async function sized(
  job: string,
  options: Options,
  console: Console,
  objects: Parameters<typeof sizeJob>[1],
): Promise<SizedJob> {
  const prepared = await prepareJob(job, options, {
    cwd: console.cwd,
    inputs: 'any',
    ...(objects === undefined ? {} : { objects }),
  });
  return sizeJob(prepared, objects);
}

/** A profile that was given, cut as the job is. Throws where it is of other stages. */
function fitted(given: GivenProfile, { spec, stages, unsized }: SizedJob): Found {
  const names = given.profile.stages.map(({ name }) => name);
  const wanted = spec.stages.map(({ name }) => name);
  if ([...names].sort().join() !== [...wanted].sort().join())
    throw badInput(`the profile has the stages ${names.join(', ')}, and the job ${wanted.join(', ')}`);
  const { basis } = given;
  const says = unsized === undefined ? basis.says : `${basis.says}, taken to read as much as then`;
  return { ...given, profile: resized(given.profile, stages), basis: { ...basis, says } };
}

type GivenProfile = Found & Required<Pick<Found, 'profile'>> & { readonly name: string };

const subjectOfOptions = (given: GivenProfile, options: Options): Parameters<typeof answerOf>[1] => {
  const { deadline, budget } = limitsOf(options);
  const { worker: kind = 'lambda', workerSize: size = 'medium' } = options;
  return {
    name: given.name,
    workers: given.profile.stages.map(() => ({ kind, size })),
    deadlineMs: deadline === undefined ? undefined : parseDurationText(deadline),
    budgetDollars: budget,
  };
};

async function givenProfile(options: Options, console: Console): Promise<GivenProfile | undefined> {
  const { profile, trace, saveProfile } = options;
  if (profile !== undefined && trace !== undefined) throw badInput('give either --profile or --trace');
  if (trace === undefined && saveProfile !== undefined)
    throw badInput('--save-profile writes what --trace tells: give a trace');
  if (profile !== undefined) return profileFrom(profile, console);
  if (trace === undefined) return undefined;
  const job = await jobOfTrace(trace, options, console);
  const forecast = storedProfile(nameOf(job.id), profileOfRuns([{ slots: 1, job }]));
  if (saveProfile !== undefined) await save(saveProfile, `${encodeForecast(forecast)}\n`, console);
  const says = `one recorded run, ${oneLine(job.id)} of ${oneLine(trace)}`;
  return given(forecast.name, forecast, says);
}

/** How far another run may be from the one that was recorded: as much as runs of a recurring job differ. */
const spreadOfGiven = 0.28;

const given = (
  name: string,
  { profile, runs }: { readonly profile: GivenProfile['profile']; readonly runs: number },
  says: string,
): GivenProfile => ({
  name,
  profile,
  spread: spreadOfGiven / Math.sqrt(runs),
  basis: { kind: 'given', runs, says },
});

async function profileFrom(path: string, console: Console): Promise<GivenProfile> {
  const { forecast, unreadable } = readForecast(await readText(path, console));
  if (forecast === undefined) throw badInput(`${path} is no profile: ${unreadable ?? 'it cannot be read'}`);
  return given(
    forecast.name,
    forecast,
    `the profile in ${oneLine(path)}, of ${plural(forecast.runs, 'finished run')}`,
  );
}

/** Names of jobs are of few characters; those of traces of any. */
const nameOf = (id: string): string =>
  id
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 48) || 'trace';

async function jobOfTrace(trace: string, options: Options, console: Console): Promise<TraceJob> {
  const { traceFormat, traceJob } = options;
  if (traceFormat === undefined || !isTraceFormat(traceFormat))
    throw badInput(`--trace needs --trace-format, one of ${TRACE_FORMATS.join(', ')}`);
  for await (const job of readTrace(traceFormat, resolve(console.cwd, trace))) {
    if (traceJob !== undefined && job.id !== traceJob) continue;
    if (job.stages.every(({ tasks }) => tasks.some(({ workMs }) => workMs !== undefined))) return job;
    throw badInput(`job ${oneLine(job.id)} of ${trace} does not tell how long its tasks took`);
  }
  throw badInput(
    traceJob === undefined ? `${trace} has no jobs` : `${trace} has no job ${oneLine(traceJob)}`,
  );
}

function parseSlots(text: string): number[] {
  const parts = text.split(',').map((part) => parseWhole('--slots', part, 1, limits.guaranteedSlots));
  if (parts.length > limits.forecastSlots)
    throw badInput(`--slots must name at most ${String(limits.forecastSlots)} numbers`);
  return parts;
}

async function readPrices(path: string, console: Console): Promise<Record<string, string | number>> {
  const text = await readText(path, console);
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw badInput(`${path} is not JSON`, error);
  }
  pricesWith(data);
  return data as Record<string, string | number>;
}

async function readText(path: string, console: Console): Promise<string> {
  try {
    return await readFile(resolve(console.cwd, path), 'utf8');
  } catch (error) {
    throw badInput(`cannot read ${path}: ${systemReason(error)}`, error);
  }
}

async function save(path: string, text: string, console: Console): Promise<void> {
  try {
    await writeFile(resolve(console.cwd, path), text);
  } catch (error) {
    throw badInput(`cannot write ${path}: ${systemReason(error)}`, error);
  }
}
