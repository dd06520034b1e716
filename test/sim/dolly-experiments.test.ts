import { expect, it } from 'vitest';
import { dollyAssignment } from '../../src/experiments/dolly-assignment.ts';
import { dollyClosedForms } from '../../src/experiments/dolly-closed-forms.ts';
import { missingTraces } from '../../src/experiments/trace-library.ts';
import { failedShapes, resultOf, sharedData } from '../support/experiment-runs.ts';

/** Long on a busy machine; nothing is timed. */
const timeoutMs = 1_800_000;
const missing = await missingTraces(sharedData, dollyAssignment.traces);
if (missing.length > 0)
  console.warn(`no traces ${missing.join(', ')} in ${sharedData}: delay assignment is skipped`);

it(
  "has Dolly's closed forms, and jobs that straggle as they say",
  async () => {
    const result = await resultOf(dollyClosedForms);
    expect(result.checks.filter(({ ok }) => !ok)).toEqual([]);
    // Values worked out by hand from the paper's formulas are no figures of the paper.
    expect(result.checks.filter(({ kind }) => kind === 'value')).toEqual([]);
    expect(result.verdict).toBe('same-shape');
  },
  timeoutMs,
);

it.skipIf(missing.length > 0)(
  'finds delay assignment never worse than contention or its avoidance, and better where both matter',
  async () => {
    expect(failedShapes(await resultOf(dollyAssignment))).toEqual([]);
  },
  timeoutMs,
);
