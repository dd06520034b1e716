import { describe, expect, it } from 'vitest';
import { buildFinishStepDeps } from '../../functions/shared/build-deps.ts';
import { Setting } from '../../src/contracts/settings.ts';

describe('the step that ends a job well', () => {
  const env = { AWS_REGION: 'eu-central-1', [Setting.table]: 'table', [Setting.dataBucket]: 'bucket' };

  it('learns from it, and asks the function that is named', () => {
    const deps = buildFinishStepDeps({ ...env, [Setting.forecastFunction]: 'forecast' });
    expect(deps.forecasts).toBeDefined();
    expect(deps.forecaster).toBeDefined();
  });

  it('learns nothing where none is wanted', () => {
    const deps = buildFinishStepDeps({ ...env, [Setting.forecastFunction]: '' });
    expect(deps.forecasts).toBeUndefined();
    expect(deps.forecaster).toBeUndefined();
  });

  it('does not start where nothing is said of it', () => {
    expect(() => buildFinishStepDeps(env)).toThrow(/OUTRIDER_FORECAST_FUNCTION is missing/);
  });
});
