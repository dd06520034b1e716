import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runExperiment } from '../../src/experiments/experiment.ts';
import { policiesOnTraces } from '../../src/experiments/policies-on-traces.ts';
import { loadTraces, missingTraces } from '../../src/experiments/trace-library.ts';

const data = fileURLToPath(new URL('../../../shared/data', import.meta.url));
const missing = await missingTraces(data, policiesOnTraces.traces);
if (missing.length > 0)
  console.warn(`no traces ${missing.join(', ')} in ${data}: experiments on traces are skipped`);

describe.skipIf(missing.length > 0)('policies on traces', () => {
  it('are in the order of the papers: Mantri before LATE, LATE about as fast and as lean as Hadoop', async () => {
    const traces = await loadTraces(data, policiesOnTraces.traces);
    const { result } = await runExperiment(policiesOnTraces, { seed: 1, count: 1, traces });
    expect(result.checks.filter(({ what, ok }) => what.includes('Mantri against LATE') && !ok)).toEqual([]);
    const percents = (name: string, of: 'timePct' | 'resourcesPct'): number[] =>
      result.rows.filter(({ policy }) => policy === name).map((row) => Number(row[of]));
    for (const of of ['timePct', 'resourcesPct'] as const) {
      const hadoop = percents('hadoop', of);
      percents('late', of).forEach((late, trace) => {
        expect(late).toBeGreaterThanOrEqual((hadoop[trace] ?? NaN) - 1); // A point at worst.
      });
    }
    const none = result.rows.filter(({ policy }) => policy === 'none');
    expect(none).toHaveLength(6);
    expect(none.every(({ p50, timePct }) => p50 === 0 && timePct === 0)).toBe(true);
  }, 600_000);
});
