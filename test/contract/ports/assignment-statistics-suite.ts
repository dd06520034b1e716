import { describe, expect, it } from 'vitest';
import { type AssignmentTally, neverMs, noAssignments } from '../../../src/core/model/assignment-tally.ts';
import type { AssignmentStatistics } from '../../../src/ports/assignment-statistics.ts';
import { at } from './builders.ts';

const nothing: AssignmentTally = { reads: [], gapsMs: [], computeMs: [] };
const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => from + index);
const gaps = (from: number, to: number): AssignmentTally => ({ ...nothing, gapsMs: range(from, to) });
const ascending = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);

/** What every store of assignment statistics must do. `make` gives an empty one. */
export function describeAssignmentStatistics(
  name: string,
  make: () => AssignmentStatistics | Promise<AssignmentStatistics>,
): void {
  describe(`${name} as a store of assignment statistics`, () => {
    describeKeeping(make);
    describeLimits(make);
  });
}

function describeKeeping(make: () => AssignmentStatistics | Promise<AssignmentStatistics>): void {
  it('knows nothing at first, nor after nothing was added', async () => {
    const statistics = await make();
    expect(await statistics.recent(1, at(0))).toEqual(nothing);
    await statistics.add(1, noAssignments, at(0));
    expect(await statistics.recent(1, at(0))).toEqual(nothing);
  });

  it('gives values back exactly, in the order in which they came', async () => {
    const statistics = await make();
    const first: AssignmentTally = {
      reads: [
        { sizeBytes: 5_000_000_000, ms: 1_234, overlapMs: 1_200 },
        { sizeBytes: 7, ms: 1, overlapMs: 0 },
      ],
      gapsMs: [neverMs, 0, 1_234.567_891_234_5],
      computeMs: [17],
    };
    await statistics.add(1, first, at(0));
    await statistics.add(1, { ...nothing, computeMs: [3] }, at(1));
    expect(await statistics.recent(1, at(2))).toEqual({ ...first, computeMs: [17, 3] });
  });

  it('keeps what all jobs have seen, whoever adds at once', async () => {
    const statistics = await make();
    await Promise.all(
      range(0, 20).map((job) =>
        statistics.add(1, { ...gaps(2 * job, 2 * job + 2), computeMs: [job] }, at(0)),
      ),
    );
    const { reads, gapsMs, computeMs } = await statistics.recent(1, at(1));
    expect(reads).toEqual([]);
    expect(ascending(gapsMs)).toEqual(range(0, 40));
    expect(ascending(computeMs)).toEqual(range(0, 20));
  });

  it('keeps the bins of jobs apart', async () => {
    const statistics = await make();
    await statistics.add(1, gaps(0, 2), at(0));
    await statistics.add(11, gaps(5, 6), at(0));
    expect(await statistics.recent(1, at(0))).toEqual(gaps(0, 2));
    expect(await statistics.recent(11, at(0))).toEqual(gaps(5, 6));
    expect(await statistics.recent(2, at(0))).toEqual(nothing);
  });

  it('forgets what is older than the last full hour, and gives the older hour first', async () => {
    const statistics = await make();
    await statistics.add(1, gaps(10, 12), at(0));
    await statistics.add(1, gaps(0, 1), at(3_600));
    expect(await statistics.recent(1, at(3_600))).toEqual({ ...nothing, gapsMs: [10, 11, 0] });
    expect(await statistics.recent(1, at(7_200))).toEqual(gaps(0, 1));
    expect(await statistics.recent(1, at(10_800))).toEqual(nothing);
  });
}

function describeLimits(make: () => AssignmentStatistics | Promise<AssignmentStatistics>): void {
  it('takes sixteen values of each kind at once', async () => {
    const statistics = await make();
    const reads = range(0, 17).map((ms) => ({ sizeBytes: 1, ms, overlapMs: 0 }));
    await statistics.add(1, { reads, gapsMs: range(0, 17), computeMs: range(0, 17) }, at(0));
    expect(await statistics.recent(1, at(0))).toEqual({
      reads: reads.slice(0, 16),
      gapsMs: range(0, 16),
      computeMs: range(0, 16),
    });
  });

  it('keeps the first 256 values of an hour, and others of kinds and hours that are not full', async () => {
    const statistics = await make();
    for (let from = 0; from < 285; from += 15) await statistics.add(1, gaps(from, from + 15), at(0));
    expect(await statistics.recent(1, at(0))).toEqual(gaps(0, 256));
    await statistics.add(1, { ...gaps(900, 901), computeMs: [5] }, at(1));
    await statistics.add(1, gaps(901, 902), at(3_600));
    expect(await statistics.recent(1, at(3_600))).toEqual({
      reads: [],
      gapsMs: [...range(0, 256), 901],
      computeMs: [5],
    });
  });

  it('keeps 256 values of an hour where forty jobs add at once', async () => {
    const statistics = await make();
    await Promise.all(range(0, 40).map((job) => statistics.add(1, gaps(job * 15, job * 15 + 15), at(0))));
    const { gapsMs } = await statistics.recent(1, at(0));
    expect(gapsMs).toHaveLength(256);
    expect(new Set(gapsMs).size).toBe(256);
  });
}
