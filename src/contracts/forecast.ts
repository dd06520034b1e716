import * as z from 'zod';
import { firstProblem } from './invalid.ts';
import { limits } from './limits.ts';

/** Version of what is stored of a forecast. One in another is as good as none. */
export const forecastFormat = 1;

/** What is told of remaining time: its mean, or the share of simulated runs that need no more; `worst` is all of them. */
export const remainingStatistics = [
  'mean',
  'best',
  'quarter',
  'half',
  'three-quarters',
  'most',
  'worst',
] as const;
export type RemainingStatistic = (typeof remainingStatistics)[number];

/** The progress indicators that Jockey compares (§4.2, Table 10); `totalworkWithQ` is its choice. */
export const progressIndicatorNames = [
  'totalworkWithQ',
  'totalwork',
  'vertexfrac',
  'cp',
  'minstage',
  'minstage-inf',
] as const;
export type ProgressIndicatorName = (typeof progressIndicatorNames)[number];

const ms = z.number().min(0);
const place = z.int().min(0);
const times = z.array(ms).max(limits.profileSamples);
const share = z.number().min(0).max(1);
const spans = z.array(z.object({ begin: share, end: share })).max(limits.forecastStages);

const stageProfile = z.object({
  name: z.string(),
  tasks: z.int().min(1),
  /** Tasks of it by its plan, where there were more: partitions were split. Absent: as many. */
  plannedTasks: z.int().min(1).exactOptional(),
  inputs: z.array(z.object({ stage: place, isBarrier: z.boolean() })),
  runs: z
    .array(
      z.object({
        slots: z.number().min(1),
        times: z.object({ cold: times, first: times, later: times }),
      }),
    )
    .min(1)
    .max(limits.profileRuns),
  queueMs: times,
  /** Share of attempts that waited so, where others rode behind them on their worker; absent: all. */
  queuedShare: share.exactOptional(),
  failureShare: z.number().min(0).lt(1),
  /** Bytes that a task of it reads in the mean; absent: nobody knows. */
  taskBytes: ms.exactOptional(),
});

const profile = z.object({
  stages: z.array(stageProfile).min(1).max(limits.forecastStages),
  /** Work of each run over that of the profile, ascending; absent: always the same. */
  workFactors: z.array(z.number().positive()).max(limits.profileRuns).exactOptional(),
});

/** What has been learned of a recurring job, and what was worked out of that. Times in ms. */
const storedForecast = z.object({
  version: z.literal(forecastFormat),
  name: z.string(),
  /** Of the plan that it was learned under: another plan starts anew. */
  fingerprint: z.string(),
  /** Bytes of the job's sources, as the profile stands. */
  inputBytes: ms,
  /** Finished runs that the profile was learned from. */
  runs: z.int().min(1),
  /** Ids of the last of those: one that is told twice counts once. */
  jobs: z.array(z.string()).max(limits.profileJobs),
  profile,
  /** C(p, a); absent until it was computed from this profile, or from it as it was some runs ago. */
  table: z
    .object({
      /** Of how many runs the profile was from which it was computed. */
      ofRuns: z.int().min(1),
      indicator: z.enum(progressIndicatorNames),
      /** Slots by which the indicator weighs stages. */
      basisSlots: z.number().min(1),
      spans: spans.exactOptional(),
      unlimitedSpans: spans.exactOptional(),
      slots: z.array(z.number().min(1)).min(1).max(limits.forecastSlots),
      buckets: z.int().min(1).max(1_000),
      /** By slots, then progress, then statistic, in the order of `remainingStatistics`: 32-bit floats, base64. */
      remainingMs: z.base64().transform(floatsOf),
    })
    .refine(
      ({ slots, buckets, remainingMs }) =>
        remainingMs.length === slots.length * (buckets + 1) * remainingStatistics.length,
      { path: ['remainingMs'], message: 'must have a number for each allocation, progress and statistic' },
    )
    .exactOptional(),
});

export type StoredForecast = z.output<typeof storedForecast>;
export type StoredTable = NonNullable<StoredForecast['table']>;

function floatsOf(text: string): Float32Array {
  const bytes = Uint8Array.from(Buffer.from(text, 'base64'));
  return new Float32Array(bytes.buffer, 0, Math.floor(bytes.length / 4));
}

function base64Of({ buffer, byteOffset, byteLength }: Float32Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('base64');
}

/** A forecast as it is stored: JSON. */
export function encodeForecast(forecast: StoredForecast): string {
  const { table, ...others } = forecast;
  const stored =
    table === undefined
      ? others
      : { ...others, table: { ...table, remainingMs: base64Of(table.remainingMs) } };
  return JSON.stringify(stored);
}

/** What was stored, or why it cannot be read. */
export function readForecast(text: string): {
  readonly forecast: StoredForecast | undefined;
  readonly unreadable?: string;
} {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return { forecast: undefined, unreadable: 'it is no JSON' };
  }
  const parsed = storedForecast.safeParse(data);
  if (parsed.success) return { forecast: parsed.data };
  return { forecast: undefined, unreadable: firstProblem(parsed.error, 'forecast') };
}
