import { describe, expect, it } from 'vitest';
import {
  type AssignmentSamples,
  bestWait,
  contendedReadMs,
  contentionProbability,
  exclusiveReadMs,
  expectedTaskMs,
  jobBin,
} from '../../../../../src/core/policy/dolly/delay-assignment.ts';

const read = { sizeBytes: 10, bytesPerMs: 1, share: 0.5 };

describe('read times of two clones', () => {
  it.each([
    [0, [20, 20], [10, 10]],
    [4, [16, 20], [10, 14]],
    [8, [12, 20], [10, 18]],
    [10, [10, 20], [10, 20]],
    [99, [10, 20], [10, 20]],
  ])('after a wait of %d', (waitMs, contended, exclusive) => {
    expect(contendedReadMs(read, waitMs)).toEqual(contended);
    expect(exclusiveReadMs(read, waitMs)).toEqual(exclusive);
  });

  it('cost nothing more where readers do not share', () => {
    expect(contendedReadMs({ ...read, share: 1 }, 0)).toEqual([10, 10]);
  });
});

describe('contentionProbability', () => {
  it('is the share of copies that came later', () => {
    expect([0, 2, 5, 7].map((waitMs) => contentionProbability([1, 2, 6, Infinity], waitMs))).toEqual([
      1, 0.5, 0.5, 0.25,
    ]);
    expect(contentionProbability([], 3)).toBe(1);
  });
});

const samples: AssignmentSamples = {
  sizeBytes: 10,
  flows: [{ bytesPerMs: 1, share: 0.5 }],
  gapsMs: [4],
  computeMs: [5],
};

describe('bestWait', () => {
  it('reads at once where sharing costs nothing', () => {
    expect(bestWait({ ...samples, flows: [{ bytesPerMs: 1, share: 1 }] })).toEqual({
      waitMs: 0,
      expectedMs: 15,
    });
  });

  it('waits until copies come where sharing is dear and they come soon', () => {
    // At 4 the second copy is there, so nobody shares: the first clone takes 10 + 5.
    expect(bestWait(samples)).toEqual({ waitMs: expect.closeTo(4, 0), expectedMs: 15 });
    expect(expectedTaskMs(samples, 0)).toBe(25);
  });

  it('has the clones read in turn where no copy ever comes', () => {
    const { waitMs, expectedMs } = bestWait({ ...samples, gapsMs: [Infinity], computeMs: [5, 5, 5, 105] });
    expect(waitMs).toBeLessThanOrEqual(10);
    // By turns: min(10 + X, 20 + Y) with X, Y = 5, but 105 once in four: 15·¾ + 25·¾·¼ + 115/16.
    expect(expectedMs).toBeLessThanOrEqual((15 * 3) / 4 + (25 * 3) / 16 + 115 / 16);
    expect(expectedTaskMs({ ...samples, gapsMs: [Infinity], computeMs: [5, 5, 5, 105] }, 10)).toBeCloseTo(
      23.125,
      9,
    );
  });

  it('has a clone begin when its copies come, and not later', () => {
    // The second copy comes at 1 or at 4: 15 and 111 or 114 with X and Y of 5 or 105, each pair once in four.
    const two = { ...samples, gapsMs: [1, 4], computeMs: [5, 105] };
    expect(expectedTaskMs(two, 4)).toBe((15 + 15 + (16 + 19) / 2 + 115) / 4);
  });
});

describe('jobBin', () => {
  it('sorts jobs by their tasks', () => {
    expect([1, 10, 11, 50, 51, 150, 151, 500, 501].map(jobBin)).toEqual([1, 1, 2, 2, 3, 3, 4, 4, 5]);
  });
});
