import { describe, expect, it } from 'vitest';
import { billJob } from '../support/costed-job.ts';

describe('the cost of a job', () => {
  it('is told as it was counted where its requests were served', async () => {
    const { job, seen, rows, attempts } = await billJob({
      maps: 12,
      mapMs: 10_000,
      reduces: 3,
      reduceMs: 5_000,
      slots: 900,
      workerGb: 1,
    });
    expect(job.state).toBe('succeeded');
    expect(attempts).toBe(15);
    const told = job.requests;
    const { writeUnits = 0, readUnits = 0, calls = 0, put, get, list } = seen;
    // What a step writes last tells of all before it, and of itself where that is known: five steps, a few units each.
    expect(writeUnits - (told?.dynamodb.writeUnits ?? 0)).toBeGreaterThanOrEqual(0);
    expect(writeUnits - (told?.dynamodb.writeUnits ?? 0)).toBeLessThanOrEqual(20);
    expect(readUnits - (told?.dynamodb.readUnits ?? 0)).toBeGreaterThanOrEqual(0);
    expect(readUnits - (told?.dynamodb.readUnits ?? 0)).toBeLessThanOrEqual(5);
    expect(calls - (told?.dynamodb.calls ?? 0)).toBeLessThanOrEqual(12);
    expect(told?.s3).toMatchObject({ put, get, list });
    // 15 workers, the API, Plan, Schedule and Finish.
    expect(told).toMatchObject({ lambda: 19, states: 5, api: 1, uncounted: 0 });
    const { costs, dollars } = job;
    expect(dollars).toBeCloseTo(
      (costs?.compute ?? 0) + (costs?.records ?? 0) + (costs?.storage ?? 0) + (costs?.coordination ?? 0),
      9,
    );
    const part = (name: string): number =>
      rows.filter((row) => row.part.startsWith(name)).reduce((sum, row) => sum + row.dollars, 0);
    expect(costs?.storage).toBeCloseTo(part('storage'), 9);
    expect((costs?.records ?? 0) / part('records')).toBeGreaterThan(0.9);
    expect(costs?.coordination).toBeCloseTo(part('coordination'), 9);
  }, 120_000);

  it('is at most 30 % on top of the compute of ten tasks of 10 s', async () => {
    const ten = { maps: 10, mapMs: 10_000, reduces: 0, reduceMs: 0, slots: 900, workerGb: 1 };
    const { job, overhead } = await billJob(ten);
    expect(job.state).toBe('succeeded');
    expect(overhead).toBeLessThanOrEqual(0.3);
  }, 120_000);
});
