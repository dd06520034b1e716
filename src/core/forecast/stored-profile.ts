import { forecastFormat, type StoredForecast } from '../../contracts/forecast.ts';
import { limits } from '../../contracts/limits.ts';
import { evenly } from '../../lib/quantiles.ts';
import type { JobProfile } from './job-profile.ts';

/** Of an ascending sample as many numbers as are kept. */
const kept = (sample: readonly number[]): number[] => [...evenly(sample, limits.profileSamples)];

/** A profile that did not come of a run of ours, such as one of a trace, as profiles are stored. */
export function storedProfile(name: string, profile: JobProfile): StoredForecast {
  return {
    version: forecastFormat,
    name,
    fingerprint: 'imported',
    inputBytes: 0,
    runs: 1,
    jobs: [],
    profile: {
      stages: profile.stages.map((stage) => ({
        name: stage.name,
        tasks: stage.tasks,
        inputs: [...stage.inputs],
        runs: stage.runs.map(({ slots, times }) => ({
          slots,
          times: { cold: kept(times.cold), first: kept(times.first), later: kept(times.later) },
        })),
        queueMs: kept(stage.queueMs),
        ...(stage.queuedShare === undefined ? {} : { queuedShare: stage.queuedShare }),
        failureShare: stage.failureShare,
      })),
    },
  };
}
