import { isSource, type JobSpec, parseDurationText, type Worker } from '../contracts/job-spec.ts';
import type { JobId } from '../contracts/ids.ts';
import { parseInput, refuseProtoKeys } from '../contracts/invalid.ts';
import type { StoredForecast } from '../contracts/forecast.ts';
import { type PlanBasis, planRequestSchema, type PlanResponse } from '../contracts/plans.ts';
import { listPrices, pricesWith } from '../contracts/prices.ts';
import { InvalidInputError, underField } from '../contracts/errors.ts';
import { fingerprintOf, tellsOf } from '../core/forecast/learn-profile.ts';
import type { JobProfile, ProfiledInput } from '../core/forecast/job-profile.ts';
import { planAllocations, plannedSlots } from '../core/forecast/plan-allocations.ts';
import { learnedBytes, outgrows, resized, type StageSizes } from '../core/forecast/resize-profile.ts';
import { jobsBehind, type NewStage, type RunStage, similarProfile } from '../core/forecast/similar-jobs.ts';
import { type GraphStage, jobGraph } from '../core/model/job-graph.ts';
import { createRng } from '../lib/rng.ts';
import type { ForecastStore } from '../ports/forecast-store.ts';
import type { JobStore } from '../ports/job-store.ts';
import { checkPlaces, checkRequestedSpec, outputOf, type SpecTerms } from './check-spec.ts';

export interface PlanAheadDeps extends SpecTerms {
  readonly jobs: Pick<JobStore, 'list'>;
  /** What was learned of recurring jobs; absent: nothing was. */
  readonly forecasts?: Pick<ForecastStore, 'get'>;
}

/** More slots than that are looked at only where they are asked for: what an account has at first. */
const mostSlots = 1_000;
/** Finished jobs that are looked through for stages like a new job's. */
const mostJobs = 100;
/** How much the completion of a recurring job differs from run to run, in the median (Jockey, Table 1). */
const spreadOfRuns = 0.28;
/** How far off a forecast by others' runs may be: nine of ten within a factor of two. */
const spreadOfOthers = 0.4;

/** What a job is told by, in its stages' order. */
export interface Found {
  readonly basis: PlanBasis;
  readonly spread: number;
  readonly profile?: JobProfile;
}

const inputsOf = (stage: GraphStage, places: ReadonlyMap<string, number>): readonly ProfiledInput[] =>
  stage.upstream.flatMap((input) => {
    const place = places.get(input.stage);
    const isBarrier = input.pattern === 'all-to-all' || input.pattern === 'broadcast';
    return place === undefined ? [] : [{ stage: place, isBarrier }];
  });

/** Whether a profile is of the same stages in the same order. */
const fits = (profile: JobProfile, graph: readonly GraphStage[]): boolean =>
  profile.stages.length === graph.length &&
  profile.stages.every(({ name }, index) => name === graph[index]?.spec.name);

const readsSources = ({ spec }: GraphStage): boolean => spec.inputs.some(isSource);

/** What stages read of sources, in all; undefined where nobody says of one how much. */
function sourceBytesOf(graph: readonly GraphStage[], sizes: StageSizes): number | undefined {
  const bytes = graph.filter(readsSources).map(({ spec }) => sizes[spec.name]?.bytes);
  return bytes.includes(undefined) ? undefined : bytes.reduce<number>((sum, each) => sum + (each ?? 0), 0);
}

/**
 * Sizes in bytes as tasks count them that a profile tells of: some read a share of their files alone, as samples and Parquet's
 * columns are. As the sources are to those of earlier runs, so is what stages read of them to what was read.
 */
function sizesAsRead(
  { profile, inputBytes }: StoredForecast,
  graph: readonly GraphStage[],
  sizes: StageSizes,
): StageSizes {
  const now = sourceBytesOf(graph, sizes);
  if (now === undefined || inputBytes === 0) return sizes;
  const learned = new Map(profile.stages.map((stage) => [stage.name, learnedBytes(stage)]));
  const asRead = graph.filter(readsSources).map(({ spec: { name } }) => {
    const { tasks = 1, bytes } = sizes[name] ?? {};
    const before = learned.get(name);
    return [name, { tasks, bytes: before === undefined ? bytes : (before * now) / inputBytes }] as const;
  });
  return { ...sizes, ...Object.fromEntries(asRead) };
}

/** What tells a job from those that a profile is of, in words; undefined where it is the same again. */
function differences(
  forecast: StoredForecast,
  graph: readonly GraphStage[],
  sizes: StageSizes,
): string | undefined {
  const stages = graph.map(({ spec }) => ({
    description: {
      ...{ name: spec.name, operator: spec.operator, worker: spec.worker },
      inputs: spec.inputs.map((input) =>
        isSource(input)
          ? ({ kind: 'source', format: input.format } as const)
          : ({ kind: 'stage', stage: input.stage, pattern: input.pattern } as const),
      ),
    },
  }));
  const fingerprint = fingerprintOf({ stages });
  if (fingerprint !== forecast.fingerprint) return 'under another plan';
  const inputBytes = sourceBytesOf(graph, sizes);
  if (inputBytes === undefined) return 'taken to read as much as then, since nobody says how much';
  if (tellsOf(forecast, { fingerprint, inputBytes })) return undefined;
  return inputBytes > forecast.inputBytes ? 'on less than half the input' : 'on more than twice the input';
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** By the job's own runs, or by those of the job that it is said to be like. */
async function byStored(
  { forecasts }: PlanAheadDeps,
  name: string,
  { graph, sizes, isOwn }: { graph: readonly GraphStage[]; sizes: StageSizes; isOwn: boolean },
): Promise<Found | { readonly why: string }> {
  const found = await forecasts?.get(name);
  if (found === undefined) return { why: `no finished run of ${name} is known` };
  const { forecast } = found;
  if (forecast === undefined)
    return { why: `what was learned of ${name} cannot be read (${found.unreadable ?? 'it is empty'})` };
  const { profile, runs } = forecast as StoredForecast & { readonly profile: JobProfile };
  if (!fits(profile, graph))
    return {
      why: `runs of ${name} had other stages (${profile.stages.map((each) => each.name).join(', ')})`,
    };
  const asRead = sizesAsRead(forecast, graph, sizes);
  if (outgrows(profile, asRead))
    return { why: `tasks of finished runs of ${name} read less than a tenth as much` };
  const others = differences(forecast, graph, sizes);
  const isSame = isOwn && others === undefined;
  const whose = isOwn ? 'its own' : `those of ${name}`;
  const rests = `${plural(runs, 'finished run')}, ${whose}`;
  return {
    profile: resized(profile, asRead),
    spread: isSame ? spreadOfRuns / Math.sqrt(runs) : spreadOfOthers,
    basis: {
      kind: isSame ? 'own' : 'like',
      runs,
      says: others === undefined ? rests : `${rests}, ${others}: it may take half as long or twice`,
    },
  };
}

/** By finished jobs that ran the same operators. */
async function byOperators(
  { jobs }: PlanAheadDeps,
  graph: readonly GraphStage[],
  sizes: StageSizes,
): Promise<Found | { readonly why: string }> {
  const places = new Map(graph.map(({ spec }, place) => [spec.name, place]));
  const unsized = graph.find(({ spec }) => sizes[spec.name] === undefined);
  if (unsized !== undefined)
    return { why: `nobody says into how many tasks stage ${unsized.spec.name} falls ("stages")` };
  const stages = graph.map((stage): NewStage => {
    const { name, operator = 'code' } = stage.spec;
    const { tasks = 1, bytes } = sizes[name] ?? {};
    return {
      name,
      operator,
      tasks,
      sourceBytes: readsSources(stage) ? bytes : 0,
      inputs: inputsOf(stage, places),
    };
  });
  const { jobs: records } = await jobs.list({ limit: mostJobs });
  const done = records.filter(({ state }) => state === 'succeeded');
  const finished = done.flatMap((job): readonly RunStage[] => job.stages);
  const similar = similarProfile(stages, finished);
  if ('unknown' in similar)
    return {
      why:
        similar.unknown.length > 0
          ? `no finished job has run ${similar.unknown.map((each) => (each === 'code' ? 'its code' : each)).join(', ')}`
          : `finished jobs have run ${similar.onLess.join(', ')} on less than a tenth as much in a task alone`,
    };
  const says = `jobs like it: ${plural(similar.samples, 'finished stage')} with the same operators; it may take half as long or twice`;
  const runs = jobsBehind(similar, done);
  return { profile: similar.profile, spread: spreadOfOthers, basis: { kind: 'like', runs, says } };
}

async function findBasis(
  deps: PlanAheadDeps,
  spec: JobSpec,
  graph: readonly GraphStage[],
  { like, sizes }: { readonly like: string | undefined; readonly sizes: StageSizes },
): Promise<Found> {
  const whys: string[] = [];
  for (const name of like === undefined ? [spec.name] : [spec.name, like]) {
    const found = await byStored(deps, name, { graph, sizes, isOwn: name === spec.name });
    if ('basis' in found) return found;
    whys.push(found.why);
  }
  const found = await byOperators(deps, graph, sizes);
  if ('basis' in found) return found;
  const says = `nothing: ${[...whys, found.why].join('; ')}. Run it once, or name a job that it is like`;
  return { basis: { kind: 'none', runs: 0, says }, spread: 0 };
}

/** The check of a submission's places, for a job of this name that nobody has submitted. */
function checkPlacesAhead(spec: JobSpec, deps: SpecTerms): void {
  const jobId = `${spec.name}-000000000000` as JobId;
  try {
    checkPlaces({ jobId, spec, output: outputOf(spec, jobId, deps.dataBucket) }, deps);
  } catch (cause) {
    throw underField('spec', cause);
  }
}

/**
 * What a job would take and cost on each number of slots, and on what that rests: its own finished runs, those of a job
 * that it is said to be like, or of jobs with the same operators. Where nothing is known it says so, and foretells
 * nothing. Starts nothing. Throws `InvalidInputError` that names the field at fault, also wherever a submission would be
 * refused for its spec alone.
 */
export async function planAhead(deps: PlanAheadDeps, body: unknown): Promise<PlanResponse> {
  refuseProtoKeys(body);
  const request = parseInput(planRequestSchema, body);
  const { spec, stages: sizes = {}, like } = request;
  const strange = Object.keys(sizes).find((name) => !spec.stages.some((stage) => stage.name === name));
  if (strange !== undefined) {
    const field = `stages.${strange}`;
    throw new InvalidInputError(`${field} is no stage of the spec`, { field });
  }
  checkRequestedSpec(spec, deps);
  checkPlacesAhead(spec, deps);
  const found = await findBasis(deps, spec, jobGraph(spec), { like, sizes });
  return answerOf(found, { ...subjectOf(spec), slots: request.slots, prices: request.prices });
}

/** Of a job what its plan needs besides a profile. */
export interface PlannedSubject {
  readonly name: string;
  /** What each of its stages runs on, in the profile's order. */
  readonly workers: readonly Worker[];
  readonly deadlineMs: number | undefined;
  readonly budgetDollars: number | undefined;
}

/** The subject that a spec describes. */
export const subjectOf = (spec: JobSpec): PlannedSubject => ({
  name: spec.name,
  workers: jobGraph(spec).map(({ spec: stage }) => stage.worker),
  deadlineMs: spec.deadline === undefined ? undefined : parseDurationText(spec.deadline),
  budgetDollars: spec.budget,
});

/** The plan of a job by a profile that was found or given. */
export function answerOf(
  { basis, spread, profile }: Found,
  subject: PlannedSubject & {
    readonly slots?: readonly number[] | undefined;
    readonly prices?: object | undefined;
  },
): PlanResponse {
  const { name, workers, deadlineMs, budgetDollars, slots } = subject;
  const overrides = subject.prices ?? {};
  const prices = pricesWith(overrides);
  const overridden = Object.keys(overrides).filter((each) => each in listPrices);
  const told = {
    ...{ name, basis, deadlineMs: deadlineMs ?? null, budgetDollars: budgetDollars ?? null },
    prices: { asOf: prices.asOf, region: prices.region, overridden },
  };
  if (profile === undefined) return { ...told, tasks: 0, simulatedRuns: 0, allocations: [], cheapest: null };
  const { allocations, runs, cheapest } = planAllocations(profile, {
    slots: slots ?? plannedSlots(profile, mostSlots),
    ...{ workers, spread, deadlineMs, budgetDollars, prices },
    rng: createRng(`plan/${name}`),
  });
  const tasks = profile.stages.reduce((sum, stage) => sum + stage.tasks, 0);
  return { ...told, tasks, simulatedRuns: runs, allocations: [...allocations], cheapest: cheapest ?? null };
}
