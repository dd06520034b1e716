import { computeForecast, type ComputeOutcome } from '../../src/app/compute-forecast.ts';
import { forecastInputSchema } from '../../src/contracts/payloads.ts';
import { buildForecastDeps } from '../shared/build-deps.ts';

const deps = buildForecastDeps(process.env); // Per cold start; fails on missing settings.

/** Computes what the jobs of a name are expected to take, after one of them has ended. */
export const handler = async (event: unknown): Promise<{ outcome: ComputeOutcome }> => {
  const { name } = forecastInputSchema.parse(event);
  return { outcome: await computeForecast(deps, name) };
};
