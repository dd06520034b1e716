import { describe, expect, it } from 'vitest';
import {
  forecastFormat,
  remainingStatistics,
  type StoredForecast,
  type StoredTable,
} from '../../../src/contracts/forecast.ts';
import type { ForecastStore } from '../../../src/ports/forecast-store.ts';
import { tally } from './builders.ts';

/** What was learned of a job of two stages, of which the second waits for the whole first. */
export function forecastOf(changes: Partial<StoredForecast> = {}): StoredForecast {
  const times = { cold: [900, 1_100], first: [], later: [400.5] };
  return {
    version: forecastFormat,
    name: 'words',
    fingerprint: 'f1',
    inputBytes: 4_096,
    runs: 1,
    jobs: ['words-0123456789ab'],
    profile: {
      stages: [
        { name: 'map', tasks: 4, inputs: [], runs: [{ slots: 2, times }], queueMs: [3], failureShare: 0.25 },
        {
          name: 'reduce',
          tasks: 2,
          inputs: [{ stage: 0, isBarrier: true }],
          runs: [{ slots: 2, times }],
          queueMs: [],
          failureShare: 0,
        },
      ],
    },
    ...changes,
  };
}

const table: StoredTable = {
  ofRuns: 1,
  indicator: 'totalworkWithQ',
  basisSlots: 2,
  slots: [1, 2],
  buckets: 3,
  remainingMs: Float32Array.from(
    { length: 2 * 4 * remainingStatistics.length },
    (_, index) => index * 1_234.5678,
  ),
};

let names = 0;
/** A name that no other test has used. */
const freshName = (): string => `words-${String(++names)}`;

/** What every store of forecasts must do. */
export function describeForecastStore(
  name: string,
  make: () => ForecastStore | Promise<ForecastStore>,
): void {
  describe(`${name} as a forecast store`, () => {
    it('has nothing at first, and gives back what was stored, with its table and without', async () => {
      const store = await make();
      const job = freshName();
      expect(await store.get(job)).toBeUndefined();
      expect(await store.put(job, forecastOf(), undefined)).toBe('stored');
      const first = await store.get(job);
      expect(first?.forecast).toEqual(forecastOf());
      expect(await store.put(job, forecastOf({ table }), first?.tag)).toBe('stored');
      const second = await store.get(job);
      expect(second?.forecast).toEqual(forecastOf({ table }));
      expect(second?.tag).not.toBe(first?.tag);
      expect(await store.get(`${job}-`)).toBeUndefined();
    });

    it('replaces what was read, and nothing that has changed since or come meanwhile', async () => {
      const store = await make();
      const job = freshName();
      expect(await store.put(job, forecastOf(), 'of nothing')).toBe('stale');
      expect(await store.get(job)).toBeUndefined();
      expect(await store.put(job, forecastOf(), undefined)).toBe('stored');
      expect(await store.put(job, forecastOf({ runs: 7 }), undefined)).toBe('stale');
      const tag = (await store.get(job))?.tag;
      expect(await store.put(job, forecastOf({ runs: 2 }), tag)).toBe('stored');
      expect(await store.put(job, forecastOf({ runs: 7 }), tag)).toBe('stale');
      expect((await store.get(job))?.forecast?.runs).toBe(2);
    });

    it.each(['that come first', 'that replace one'])(
      'lets one through of twenty %s at once',
      async (which) => {
        const store = await make();
        const job = freshName();
        if (which === 'that replace one') await store.put(job, forecastOf({ runs: 100 }), undefined);
        const tag = (await store.get(job))?.tag;
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_, rival) => store.put(job, forecastOf({ runs: rival + 1 }), tag)),
        );
        expect(tally(answers)).toEqual({ stored: 1, stale: 19 });
        expect((await store.get(job))?.forecast?.runs).toBe(answers.indexOf('stored') + 1);
      },
    );
  });
}
