import { describe, expect, it } from 'vitest';
import { pricesWith } from '../../../../src/contracts/prices.ts';
import type { JobProfile } from '../../../../src/core/forecast/job-profile.ts';
import {
  type AllocationTerms,
  planAllocations,
  plannedSlots,
} from '../../../../src/core/forecast/plan-allocations.ts';
import { createRng } from '../../../../src/lib/rng.ts';

const stage = (name: string, tasks: number, times: readonly number[], reads: readonly number[] = []) => ({
  ...{ name, tasks, queueMs: [], failureShare: 0 },
  inputs: reads.map((each) => ({ stage: each, isBarrier: true })),
  runs: [{ slots: 1, times: { cold: [], first: [], later: times } }],
});
/** Eight tasks of 10 s, then two of 20 s. */
const job: JobProfile = { stages: [stage('map', 8, [10_000]), stage('reduce', 2, [20_000], [0])] };
const medium = { kind: 'lambda', size: 'medium' } as const;
const lambdaSecond = (1769 / 1024) * 0.0000133334;

const planned = (more: Partial<AllocationTerms> = {}) =>
  planAllocations(job, {
    ...{ slots: [1, 2, 4, 8], workers: [medium, medium], spread: 0, rng: createRng('plan') },
    ...more,
  });

describe('planAllocations', () => {
  it('foretells by slots what waves of equal tasks take', () => {
    const { allocations } = planned();
    // 80 + 40, 40 + 20, 20 + 20, 10 + 20 seconds.
    expect(allocations.map(({ slots, completionMs }) => [slots, completionMs.p50])).toEqual([
      [1, 120_000],
      [2, 60_000],
      [4, 40_000],
      [8, 30_000],
    ]);
    expect(allocations[0]?.completionMs).toEqual({
      ...{ p10: 120_000, p50: 120_000, p90: 120_000, p95: 120_000, p99: 120_000, mean: 120_000 },
    });
    expect(
      allocations.every(({ deadlineProbability, isCheapest }) => deadlineProbability === null && !isCheapest),
    ).toBe(true);
  });

  it('costs the time of all attempts, and what is asked for beside it', () => {
    const [row] = planned({ slots: [8] }).allocations;
    // 120 s of workers; ten attempts and one submission ask for well below a tenth of a cent.
    expect(row?.dollars).toBeGreaterThan(120 * lambdaSecond);
    expect(row?.dollars).toBeLessThan(120 * lambdaSecond + 0.001);
    const free = pricesWith({ lambdaGbSecond: 0, fargateVcpuHour: 3600, fargateGbHour: 0 });
    const fargate = { kind: 'fargate', size: 'medium' } as const;
    // A vCPU-second for a dollar, and each attempt billed for a minute: ten dollars-minutes.
    const [dear] = planned({ slots: [8], workers: [fargate, fargate], prices: free }).allocations;
    expect(dear?.dollars).toBeCloseTo(600, 2);
  });

  it('marks the cheapest that meets the deadline at 95 %, and none where none does', () => {
    const late = planned({ deadlineMs: 45_000 });
    expect(late.allocations.map(({ deadlineProbability }) => deadlineProbability)).toEqual([0, 0, 1, 1]);
    // The scheduler is paid for as long as the job lasts, so that eight slots are cheaper than four.
    expect(late.cheapest).toBe(8);
    expect(late.allocations.filter(({ isCheapest }) => isCheapest).map(({ slots }) => slots)).toEqual([8]);
    const none = planned({ deadlineMs: 20_000 });
    expect(none.cheapest).toBeUndefined();
    const freeScheduler = planned({ deadlineMs: 45_000, prices: pricesWith({ lambdaGbSecond: 0 }) });
    expect(freeScheduler.cheapest).toBe(4);
  });

  it('tells probabilities between never and always where runs differ, wider where less is known', () => {
    const narrow = planned({ slots: [8], deadlineMs: 30_000, spread: 0.1 });
    const wide = planned({ slots: [8], deadlineMs: 30_000, spread: 0.4 });
    for (const { allocations } of [narrow, wide]) {
      expect(allocations[0]?.deadlineProbability).toBeGreaterThan(0.3);
      expect(allocations[0]?.deadlineProbability).toBeLessThan(0.7);
    }
    // e^(1.645 sigma) at the 95th percentile: 1.18 and 1.93 times the median.
    expect((narrow.allocations[0]?.completionMs.p95 ?? 0) / 30_000).toBeCloseTo(1.18, 1);
    expect((wide.allocations[0]?.completionMs.p95 ?? 0) / 30_000).toBeGreaterThan(1.6);
    expect((wide.allocations[0]?.completionMs.p95 ?? 0) / 30_000).toBeLessThan(2.3);
  });

  it('says of each allocation whether it is within the budget', () => {
    const { allocations } = planned({ budgetDollars: 0.0001 });
    expect(allocations.every(({ isWithinBudget }) => isWithinBudget === false)).toBe(true);
    expect(planned({ budgetDollars: 1 }).allocations[0]?.isWithinBudget).toBe(true);
    expect(planned().allocations[0]?.isWithinBudget).toBeNull();
  });

  it('gives the same for the same seed, slots in any order and twice', () => {
    const noisy = { stages: [stage('map', 30, [1_000, 2_000, 9_000])] };
    const of = (slots: readonly number[]) =>
      planAllocations(noisy, { slots, workers: [medium], spread: 0.2, rng: createRng('x') });
    expect(of([4, 2, 4])).toEqual(of([2, 4]));
  });

  it('bounds its work for jobs of any size', () => {
    const huge = { stages: [stage('map', 10_000, [1_000])] };
    const { runs } = planAllocations(huge, {
      slots: [1_000],
      workers: [medium],
      spread: 0,
      rng: createRng('x'),
    });
    expect(runs).toBe(200);
    const many = Array.from({ length: 20 }, (_, index) => (index + 1) * 50);
    expect(
      planAllocations(huge, { slots: many, workers: [medium], spread: 0, rng: createRng('x') }).runs,
    ).toBe(10);
  });

  // What it simulates at the most: two million task ends, which take some seconds of the API's 29.
  it.each([
    [1, 100, 20, 200],
    [1, 10_000, 10, 20],
    [3, 10_000, 5, 13],
    [20, 10_000, 5, 2],
  ])(
    'looks at fewer slots, and then has fewer runs, the larger a job is: %i × %i',
    (stages, tasks, most, ran) => {
      const large = { stages: Array.from({ length: stages }, (_, at) => stage(`s${at}`, tasks, [1_000])) };
      const slots = plannedSlots(large, 1_000);
      const { runs, allocations } = planAllocations(large, {
        ...{ slots, workers: [medium], spread: 0.2, deadlineMs: 1, rng: createRng('x') },
      });
      expect([allocations.length, runs]).toEqual([most, ran]);
      expect(stages * tasks * allocations.length * runs).toBeLessThanOrEqual(2_000_000);
      expect([slots[0], slots.at(-1)]).toEqual([1, Math.min(1_000, tasks)]);
    },
  );

  it('tells by how much runs differ also of a job that it can simulate only once', () => {
    const large = { stages: Array.from({ length: 20 }, (_, at) => stage(`s${at}`, 10_000, [1_000])) };
    const slots = [10, 100, 300, 1_000, 3_000, 4_000, 5_000, 6_000, 7_000, 10_000];
    const { runs, allocations } = planAllocations(large, {
      ...{ slots, workers: [medium], spread: 0.4, rng: createRng('x') },
    });
    expect(runs).toBe(1);
    for (const { completionMs } of allocations)
      expect(completionMs.p90 / completionMs.p10).toBeGreaterThan(1.5);
  });
});
