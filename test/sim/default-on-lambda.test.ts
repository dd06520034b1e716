import { describe, expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { sampleJobs } from '../../src/experiments/policies-on-lambda.ts';
import { loadTraces, missingTraces } from '../../src/experiments/trace-library.ts';
import { type TraceName, traceFormatOf } from '../../src/experiments/trace-names.ts';
import { traceScenario } from '../../src/experiments/trace-scenario.ts';
import { createRng } from '../../src/lib/rng.ts';
import { metricsOf } from '../../src/sim/metrics.ts';
import { parseScenario } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { sharedData } from '../support/experiment-runs.ts';

const names = ['swim', 'yahoo1'] as const satisfies readonly TraceName[];
const missing = await missingTraces(sharedData, names);
if (missing.length > 0)
  console.warn(
    `no traces ${missing.join(', ')} in ${sharedData}: the default on Lambda is not tried on them`,
  );

/**
 * Six samples of a trace under a policy (one sample's luck is worth a tenth of its mean): summed means and 95th percentiles of jobs'
 * times, and slot time, in seconds.
 */
async function measured(name: TraceName, policy: PolicyName) {
  const traces = await loadTraces(sharedData, [name]);
  const sums = { meanS: 0, p95S: 0, slotS: 0 };
  for (const seed of ['1', '2', '3', '4', '5', '6']) {
    const { jobs } = sampleJobs(traces.get(name) ?? [], 300, createRng(`sample/${seed}`));
    const rng = createRng(`${name}/${seed}`);
    const replay = {
      format: traceFormatOf(name),
      policy,
      slots: 50,
      load: 0.7,
      host: 'lambda',
      rng,
    } as const;
    const { completionS, slotSeconds } = metricsOf(
      await simulate(parseScenario(traceScenario(jobs, replay)), { seed }),
    );
    sums.meanS += completionS.mean;
    sums.p95S += completionS.p95;
    sums.slotS += slotSeconds;
  }
  return sums;
}

describe.skipIf(missing.length > 0)('what a job gets on Lambda with nothing said', () => {
  it.each([
    ['swim', 0.97],
    ['yahoo1', 1.02],
  ] as const)(
    'is beside no copies, for at most a fiftieth more slot time: %s, at most %d of the time',
    async (name, most) => {
      const [none, own] = [await measured(name, 'none'), await measured(name, 'outrider')];
      expect(own.meanS / none.meanS).toBeLessThanOrEqual(most);
      expect(own.p95S / none.p95S).toBeLessThanOrEqual(most);
      expect(own.slotS / none.slotS).toBeLessThanOrEqual(1.02);
    },
    120_000,
  );
});
