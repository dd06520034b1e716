import { describe, expect, it } from 'vitest';
import { drawNoise, gatesOf } from '../../../src/experiments/jockey-runs.ts';
import { createRng } from '../../../src/lib/rng.ts';
import type { SyntheticStage } from '../../../src/traces/generators/jockey-jobs.ts';

const stage = (...inputs: (readonly [stage: number, isBarrier: boolean])[]): SyntheticStage => ({
  ...{ tasks: 1, medianMs: 1, sigma: 1, mostMs: 1 },
  inputs: inputs.map(([read, isBarrier]) => ({ stage: read, isBarrier })),
});

describe('what the stages of a job wait for', () => {
  it('is nothing where none is behind a barrier', () => {
    expect(gatesOf([stage(), stage([0, false]), stage([0, false], [1, false])])).toEqual([[], [], []]);
  });

  it('is all before a barrier, also what lies before the stages that it reads', () => {
    // 3 reads 2, which reads 0 without a barrier; 1 is beside them.
    expect(gatesOf([stage(), stage(), stage([0, false]), stage([2, true])])).toEqual([[], [], [], [0, 2]]);
  });

  it('is for a stage behind others what those wait for', () => {
    const stages = [stage(), stage([0, true]), stage([1, false]), stage([2, false]), stage([3, true])];
    expect(gatesOf(stages)).toEqual([[], [0], [0], [0], [0, 1, 2, 3]]);
  });
});

it('draws work about as uneven as Table 1 has it: 0.20 on inputs alike, 0.28 on any, never beyond a half and twice', () => {
  for (const [inputs, sigma] of [
    ['alike', 0.2],
    ['any', 0.28],
  ] as const) {
    const rng = createRng(`noise of ${inputs}`);
    const logs = Array.from({ length: 4_000 }, () => Math.log(drawNoise(rng, inputs).work));
    const spread = Math.sqrt(logs.reduce((sum, each) => sum + each ** 2, 0) / logs.length);
    expect(Math.abs(spread / sigma - 1)).toBeLessThan(0.05);
    expect(Math.max(...logs.map((each) => Math.abs(each)))).toBeLessThanOrEqual(Math.log(2) + 1e-12);
  }
});
