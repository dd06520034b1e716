import { describe, expect, it } from 'vitest';
import type { AttemptId } from '../../../src/contracts/ids.ts';
import type { StageDescription } from '../../../src/contracts/plan.ts';
import type { OutputKeeper } from '../../../src/ports/output-keeper.ts';
import { keptBucket } from '../../../src/worker/kept-bucket.ts';

const keeperAt = (address: string | undefined): OutputKeeper => ({
  open: () => Promise.resolve(address),
  keys: () => [],
  askedAt: undefined,
  close: () => Promise.resolve(),
});
const stage = (keptTasks?: number, output = 'sorted'): StageDescription =>
  ({ keptTasks, output }) as unknown as StageDescription;
const id = (text: string): AttemptId => text as AttemptId;

describe('where an attempt leaves its output', () => {
  it.each([
    ['with its worker', keeperAt('10.0.0.7:7843'), stage(3), 'map/2/0', 'worker@10.0.0.7:7843'],
    ['on S3 where the job did not ask', keeperAt('10.0.0.7:7843'), stage(), 'map/2/0', undefined],
    ['on S3 where enough others stay', keeperAt('10.0.0.7:7843'), stage(2), 'map/2/0', undefined],
    ['on S3 where nobody reads it', keeperAt('10.0.0.7:7843'), stage(3, 'final'), 'map/2/0', undefined],
    ['on S3 where its worker cannot answer', keeperAt(undefined), stage(3), 'map/2/0', undefined],
    ['on S3 where its worker keeps nothing', undefined, stage(3), 'map/2/0', undefined],
    ['on S3 where the task is done again', keeperAt('10.0.0.7:7843'), stage(3), 'map/2/1', undefined],
  ] as const)('is %s', async (_, keeper, description, attempt, expected) => {
    expect(await keptBucket(keeper, description, id(attempt))).toBe(expected);
  });
});
