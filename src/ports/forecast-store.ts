import type { StoredForecast } from '../contracts/forecast.ts';

/** What lies in the store under the name of a job. */
export interface FoundForecast {
  /** Undefined where it cannot be read, or is of another version: it is to be replaced. */
  readonly forecast: StoredForecast | undefined;
  /** Why it cannot be read, in one line. */
  readonly unreadable?: string;
  /** Another after each change. */
  readonly tag: string;
}

/** What was learned of recurring jobs, by their name. Passing faults throw `StoreUnavailableError`. */
export interface ForecastStore {
  get(name: string): Promise<FoundForecast | undefined>;
  /**
   * Writes what jobs of a name are expected to take, if what lies there is still that of `ifTag` (undefined: nothing);
   * else `stale`, and nothing is written.
   */
  put(name: string, forecast: StoredForecast, ifTag: string | undefined): Promise<'stored' | 'stale'>;
}
