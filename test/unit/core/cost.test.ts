import { describe, expect, it } from 'vitest';
import { pricesWithoutAddresses } from '../../../src/contracts/prices.ts';
import { noCosts } from '../../../src/contracts/requests.ts';
import { addRequests, computeDollars, costsOf, requestsOf, totalOf } from '../../../src/core/model/cost.ts';
import { addTallies } from '../../../src/core/model/request-tally.ts';

describe('costs at list prices', () => {
  it('of what is counted, by what it is for', () => {
    const tally = {
      writeUnits: 2_000_000,
      readUnits: 8_000_000,
      calls: 5,
      put: 1_000,
      list: 1_000,
      get: 10_000,
      other: 7,
      lambda: 1_000_000,
      states: 40,
      api: 1_000_000,
      logBytes: 2 * 1024 ** 3,
      coordinatorMbMs: 512 * 1_000_000,
    };
    const costs = costsOf(tally, 1.5);
    expect(costs.compute).toBe(1.5);
    // 2 x $0.625 + 8 x $0.125.
    expect(costs.records).toBe(2.25);
    // 2 x $0.005 + 10 x $0.0004.
    expect(costs.storage).toBe(0.014);
    // $0.20 + 500 GB-s + $0.001 + $3.50 + 2 x $0.50.
    expect(costs.coordination).toBeCloseTo(0.2 + 0.0066667 + 0.001 + 3.5 + 1, 9);
    expect(totalOf(costs)).toBeCloseTo(1.5 + 2.25 + 0.014 + 4.7076667, 9);
    expect(totalOf(noCosts)).toBe(0);
  });

  it('of a worker: an hour of a gigabyte on arm64, and Fargate by the minute at least', () => {
    expect(computeDollars({ kind: 'lambda', size: 'medium' }, 3_600_000)).toBeCloseTo(0.082923, 5);
    expect(computeDollars({ kind: 'fargate', size: 'small' }, 1)).toBe(
      computeDollars({ kind: 'fargate', size: 'small' }, 60_000),
    );
    expect(computeDollars({ kind: 'fargate', size: 'small' }, 0)).toBe(0);
    // A vCPU and 2 GB, on arm64 as tasks are deployed: $0.03238 and 2 x $0.00356; and $0.005 for its public address.
    const worker = { kind: 'fargate', size: 'medium' } as const;
    expect(computeDollars(worker, 3_600_000)).toBeCloseTo(0.0445, 9);
    expect(computeDollars(worker, 3_600_000, pricesWithoutAddresses)).toBeCloseTo(0.0395, 9);
  });

  it('are told by names that scripts rely on, and added to', () => {
    const told = requestsOf(
      { writeUnits: 3, readUnits: 1.5, calls: 4, put: 1, coordinatorMbMs: 1024 * 2_000 },
      1,
    );
    expect(told).toEqual({
      dynamodb: { writeUnits: 3, readUnits: 1.5, calls: 4 },
      s3: { put: 1, get: 0, list: 0, other: 0 },
      lambda: 0,
      states: 0,
      api: 0,
      logBytes: 0,
      coordinatorGbSeconds: 2,
      uncounted: 1,
    });
    expect(addRequests(told, { put: 2, coordinatorMbMs: 1024 * 500, states: 2 })).toMatchObject({
      s3: { put: 3 },
      states: 2,
      coordinatorGbSeconds: 2.5,
      uncounted: 1,
    });
    expect(addTallies({ get: 1 }, { get: 2, put: 1 })).toEqual({ get: 3, put: 1 });
  });
});
