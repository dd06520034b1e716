import { forecastTable } from '../core/forecast/forecast-table.ts';
import { createRng } from '../lib/rng.ts';
import type { ForecastStore } from '../ports/forecast-store.ts';
import type { Log } from '../ports/log.ts';

export interface ComputeForecastDeps {
  readonly forecasts: ForecastStore;
  readonly log: Log;
  /** Slots of all jobs together: on up to so many a job is simulated. */
  readonly totalSlots: number;
}

/**
 * `computed`; `done`: it was there already; `overtaken`: more was learned meanwhile, and whoever did so asks again;
 * `nothing`: nothing was learned of jobs of the name.
 */
export type ComputeOutcome = 'computed' | 'done' | 'overtaken' | 'nothing';

/**
 * Computes C(p, a) from what was learned of the jobs of a name, and keeps it beside that. May be called twice, late or
 * never: it writes only where what it has read is still what is known. Throws `StoreUnavailableError`.
 */
export async function computeForecast(
  { forecasts, log, totalSlots }: ComputeForecastDeps,
  name: string,
): Promise<ComputeOutcome> {
  const found = await forecasts.get(name);
  if (found?.forecast === undefined) {
    if (found !== undefined) log.warn('forecast-unreadable', { name, why: found.unreadable });
    return 'nothing';
  }
  const { forecast, tag } = found;
  if (forecast.table?.ofRuns === forecast.runs) return 'done';
  const rng = createRng(`forecast/${name}/${String(forecast.runs)}`);
  const table = forecastTable(forecast, { totalSlots, rng });
  const outcome =
    (await forecasts.put(name, { ...forecast, table }, tag)) === 'stored' ? 'computed' : 'overtaken';
  log.info('forecast', { name, runs: forecast.runs, allocations: table.slots.length, outcome });
  return outcome;
}
