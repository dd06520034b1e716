import { describe, expect, it } from 'vitest';
import type { StoredForecast } from '../../../../src/contracts/forecast.ts';
import { forecastTable } from '../../../../src/core/forecast/forecast-table.ts';
import { predictorOf } from '../../../../src/core/forecast/predictor.ts';
import { resized } from '../../../../src/core/forecast/resize-profile.ts';
import { RunSimulator } from '../../../../src/core/forecast/run-simulator.ts';
import { storedProfile } from '../../../../src/core/forecast/stored-profile.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { barrier, profile, steady } from './profiles.ts';

const stored = (of: ReturnType<typeof profile>): StoredForecast['profile'] =>
  storedProfile('job', of).profile;
const table = (of: ReturnType<typeof profile>, totalSlots: number) =>
  forecastTable({ profile: of, runs: 1 }, { totalSlots, rng: createRng('table') });

describe('a profile with other sizes', () => {
  const learned = stored(profile(steady(1_000, 10), steady(500, 4, barrier(0))));

  it('stays what it is where none is told', () => {
    expect(resized(learned, {})).toEqual(learned);
  });

  it('has the told number of tasks, which take longer as they read more', () => {
    const known = {
      stages: learned.stages.map((stage) => ({ ...stage, taskBytes: 100, name: `s${stage.tasks}` })),
    };
    const { stages } = resized(known, { s10: { tasks: 5, bytes: 1_500 }, s4: { tasks: 8 } });
    expect(stages.map(({ tasks }) => tasks)).toEqual([5, 8]);
    expect(stages.map(({ runs }) => runs[0]?.times.later)).toEqual([[3_000], [500]]);
  });
});

describe('a table of a job of another size', () => {
  // What simulated runs of the job as it is take, beside what the table of one of another size foretells.
  const cases = [
    // Tasks before and now, slots: fewer, more, and more than the table has.
    [1_000, 520, 100],
    [1_000, 1_950, 100],
    [50, 100, 100],
    [100, 50, 50],
    [100, 200, 100],
    [100, 190, 1],
  ] as const;

  it.each(cases)('of %i tasks foretells %i on %i slots', (before, tasks, slots) => {
    const learned = profile(steady(60_000, before));
    const now = profile(steady(60_000, tasks));
    const predictor = predictorOf({ profile: stored(learned), table: table(learned, 100) }, 'simulator', now);
    // Even tasks end all at once, so that what is left is at its most as they begin; numbers of slots between those of the
    // table are off by up to a wave's part.
    const foretold = predictor.remainingMs([0], slots, 'worst');
    const took = new RunSimulator(now).run(slots, createRng('run'));
    expect(foretold / took).toBeGreaterThan(0.9);
    expect(foretold / took).toBeLessThan(1.2);
    expect(predictor.remainingMs([1], slots, 'worst')).toBe(0);
    expect(predictor.partsLeft([0.5])).toEqual({ chainMs: 30_000, workMs: 30_000 * tasks, queueMs: 0 });
  });

  it('counts longer tasks, and stages that grow beside those that do not', () => {
    const learned = profile(steady(60_000, 200), steady(120_000, 20, barrier(0)));
    const now = profile(steady(90_000, 400), steady(120_000, 20, barrier(0)));
    const predictor = predictorOf({ profile: stored(learned), table: table(learned, 40) }, 'simulator', now);
    // Ten waves of 90 s on 40 slots, and one of 120 s.
    expect(predictor.remainingMs([0, 0], 40, 'worst') / 1_020_000).toBeGreaterThan(0.9);
    expect(predictor.remainingMs([0, 0], 40, 'worst') / 1_020_000).toBeLessThan(1.2);
    expect(predictor.chance([0, 0], 40, { leftMs: 1_300_000, factor: 1 })).toBe(1);
    expect(predictor.chance([0, 0], 40, { leftMs: 800_000, factor: 1 })).toBe(0);
  });

  it('takes no less on more slots than it has tasks', () => {
    const learned = profile(steady(60_000, 10));
    const now = profile(steady(66_000, 10));
    const predictor = predictorOf({ profile: stored(learned), table: table(learned, 10) }, 'simulator', now);
    const onTen = predictor.remainingMs([0], 10, 'worst');
    expect(onTen / 66_000).toBeGreaterThan(0.9);
    for (const slots of [11, 20, 100, 1_000]) expect(predictor.remainingMs([0], slots, 'worst')).toBe(onTen);
  });

  it('is read as it is where the size is the same', () => {
    const learned = profile(steady(60_000, 30));
    const parts = { profile: stored(learned), table: table(learned, 10) };
    const now = resized(parts.profile, { 'stage of 60000': { tasks: 30 } });
    for (const slots of [1, 3, 10, 25])
      expect(predictorOf(parts, 'simulator', now).remainingMs([0.4], slots, 'most')).toBe(
        predictorOf(parts, 'simulator').remainingMs([0.4], slots, 'most'),
      );
  });
});
