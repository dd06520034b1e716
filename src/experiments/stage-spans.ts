import type { JobProfile } from '../core/forecast/job-profile.ts';
import type { StageSpan } from '../core/forecast/progress-indicators.ts';
import { RunSimulator } from '../core/forecast/run-simulator.ts';
import type { Rng } from '../lib/rng.ts';

/** When each stage begins and ends in one simulated run on so many slots, as shares of it. */
export function spansOf(profile: JobProfile, slots: number, rng: Rng): StageSpan[] {
  const began = profile.stages.map(() => Infinity);
  const ended = profile.stages.map(() => Infinity);
  const endMs = new RunSimulator(profile).run(slots, rng, {
    everyMs: 1_000,
    visit: (atMs, finished, started) => {
      for (const [stage, { tasks }] of profile.stages.entries()) {
        if ((started[stage] ?? 0) > 0) began[stage] = Math.min(began[stage] ?? Infinity, atMs);
        if (finished[stage] === tasks) ended[stage] = Math.min(ended[stage] ?? Infinity, atMs);
      }
    },
  });
  return began.map((begin, stage) => ({
    begin: Math.min(1, begin / endMs),
    end: Math.min(1, (ended[stage] ?? Infinity) / endMs),
  }));
}
