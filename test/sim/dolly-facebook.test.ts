import { describe, expect, it } from 'vitest';
import { dollyFacebook } from '../../src/experiments/dolly-facebook.ts';
import { missingTraces } from '../../src/experiments/trace-library.ts';
import { isWhole } from '../support/draws.ts';
import { failedShapes, resultOf, sharedData } from '../support/experiment-runs.ts';

/** Long on a busy machine; nothing is timed. */
const timeoutMs = 1_800_000;
/**
 * Windows of Dolly's comparison that are replayed here: of one or two no median of small jobs can be told, and each takes
 * minutes of one core. The other seven of the experiment's ten, and how far windows differ, are left to
 * `outrider experiments dolly-facebook`.
 */
const windows = 3;
const missing = await missingTraces(sharedData, dollyFacebook.traces);
if (missing.length > 0)
  console.warn(`no traces ${missing.join(', ')} in ${sharedData}: Dolly on Facebook's jobs is skipped`);

// With fewer draws it is left out: minutes, of what comes out alike until a rule or the simulator is changed.
describe.skipIf(missing.length > 0 || !isWhole)("Dolly on Facebook's jobs", () => {
  it(
    'makes small jobs end far sooner than with LATE or Mantri, for little more slot time',
    async () => {
      const result = await resultOf(dollyFacebook, windows);
      // Reports ten times in a task, as Mantri's own paper has them (Δ), show it stragglers at a tenth of their time:
      // it leaves 1.3 times the median, where Dolly's authors saw over 5. With Δ of 30 s it left over 5 here as well.
      expect(failedShapes(result)).toEqual(['small jobs: slowest over median task, Mantri']);
      const inputs = result.checks.filter(({ what }) => what.startsWith('calibration'));
      expect(inputs).not.toEqual([]);
      expect(inputs.filter(({ ok }) => !ok)).toEqual([]);
      expect(result.rows.every((row) => Number(row['slots']) > 0 && row['utilization'] !== undefined)).toBe(
        true,
      );
    },
    timeoutMs,
  );
});
