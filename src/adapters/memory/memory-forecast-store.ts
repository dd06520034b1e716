import { encodeForecast, readForecast, type StoredForecast } from '../../contracts/forecast.ts';
import type { ForecastStore, FoundForecast } from '../../ports/forecast-store.ts';

/** Forecasts in memory, kept as they would be stored. */
export class MemoryForecastStore implements ForecastStore {
  private readonly kept = new Map<string, { readonly text: string; readonly tag: string }>();
  private writes = 0;

  constructor(forecasts: readonly StoredForecast[] = []) {
    for (const forecast of forecasts) {
      this.writes += 1;
      this.kept.set(forecast.name, { text: encodeForecast(forecast), tag: String(this.writes) });
    }
  }

  get(name: string): Promise<FoundForecast | undefined> {
    const found = this.kept.get(name);
    return Promise.resolve(found === undefined ? undefined : { ...readForecast(found.text), tag: found.tag });
  }

  put(name: string, forecast: StoredForecast, ifTag: string | undefined): Promise<'stored' | 'stale'> {
    if (this.kept.get(name)?.tag !== ifTag) return Promise.resolve('stale');
    this.writes += 1;
    this.kept.set(name, { text: encodeForecast(forecast), tag: String(this.writes) });
    return Promise.resolve('stored');
  }
}
