import { describe, expect, it } from 'vitest';
import { MemoryForecastStore } from '../../../src/adapters/memory/memory-forecast-store.ts';
import { computeForecast } from '../../../src/app/compute-forecast.ts';
import type { StoredForecast } from '../../../src/contracts/forecast.ts';
import type { ForecastStore } from '../../../src/ports/forecast-store.ts';
import { forecastOf } from '../../contract/ports/forecast-store-suite.ts';

const quietLog = { info: (): void => undefined, warn: (): void => undefined };
const depsOf = (forecasts: ForecastStore) => ({ forecasts, log: quietLog, totalSlots: 4 });

describe('computing a forecast', () => {
  it('puts the table beside what was learned, once', async () => {
    const forecasts = new MemoryForecastStore();
    await forecasts.put('words', forecastOf(), undefined);
    expect(await computeForecast(depsOf(forecasts), 'words')).toBe('computed');
    const { forecast, tag } = (await forecasts.get('words')) ?? {};
    const { table, ...learned } = forecast ?? {};
    expect(learned).toEqual(forecastOf());
    expect(table).toMatchObject({ ofRuns: 1, indicator: 'totalworkWithQ', slots: [1, 2, 3, 4] });
    expect(await computeForecast(depsOf(forecasts), 'words')).toBe('done');
    expect((await forecasts.get('words'))?.tag).toBe(tag);
  });

  it('replaces a table of fewer runs', async () => {
    const forecasts = new MemoryForecastStore();
    await forecasts.put('words', forecastOf(), undefined);
    await computeForecast(depsOf(forecasts), 'words');
    const found = await forecasts.get('words');
    if (found?.forecast === undefined) throw new Error('nothing stored');
    await forecasts.put('words', { ...found.forecast, runs: 2 }, found.tag);
    expect(await computeForecast(depsOf(forecasts), 'words')).toBe('computed');
    expect((await forecasts.get('words'))?.forecast?.table?.ofRuns).toBe(2);
  });

  it('knows nothing of jobs that have never run', async () => {
    const forecasts = new MemoryForecastStore();
    expect(await computeForecast(depsOf(forecasts), 'words')).toBe('nothing');
    expect(await forecasts.get('words')).toBeUndefined();
  });

  it('writes over nothing that was learned while it computed, nor over what cannot be read', async () => {
    const kept = new MemoryForecastStore();
    await kept.put('words', forecastOf(), undefined);
    const late: ForecastStore = {
      get: (name) => kept.get(name),
      // Frozen before its write, while another run is learned from.
      put: async (name, forecast: StoredForecast, ifTag) => {
        await kept.put(name, forecastOf({ runs: 2 }), (await kept.get(name))?.tag);
        return kept.put(name, forecast, ifTag);
      },
    };
    expect(await computeForecast(depsOf(late), 'words')).toBe('overtaken');
    expect((await kept.get('words'))?.forecast).toEqual(forecastOf({ runs: 2 }));
    const spoilt: ForecastStore = {
      get: () => Promise.resolve({ forecast: undefined, unreadable: 'no JSON', tag: 't' }),
      put: () => Promise.reject(new Error('nothing was to be written')),
    };
    expect(await computeForecast(depsOf(spoilt), 'words')).toBe('nothing');
  });

  it('ends alike for both of two that compute at the same time', async () => {
    const forecasts = new MemoryForecastStore();
    await forecasts.put('words', forecastOf(), undefined);
    const outcomes = await Promise.all([0, 1].map(() => computeForecast(depsOf(forecasts), 'words')));
    expect(outcomes.toSorted()).toEqual(['computed', 'overtaken']);
  });
});
