import { describe, expect, it } from 'vitest';
import type { JobOutcome } from '../../src/sim/outcome.ts';
import { atOnce, runOne } from './scenarios.ts';

/** Seven tasks of a minute each on nodes with room to spare, and one whose attempts take so many seconds, each in turn. */
const stageWith = (...attemptsS: readonly number[]): Promise<JobOutcome> =>
  runOne({
    cluster: { nodes: [{ count: 20 }], placement: 'in-order' },
    scheduler: atOnce,
    reports: { everyMs: 1_000, tenths: false },
    jobs: [
      {
        policy: 'outrider',
        stages: [
          {
            ...{ name: 'map', tasks: 8, workMs: 60_000, inputBytes: 8e6 },
            attemptsMs: [
              attemptsS.map((seconds) => seconds * 1_000),
              ...Array.from({ length: 7 }, () => [60_000]),
            ],
          },
        ],
      },
    ],
  });

/** Attempts of the first task: how each ended, and after how many seconds. */
const endsOf = ({ attempts }: JobOutcome): (readonly [string, number])[] =>
  attempts
    .filter(({ task }) => task === 0)
    .toSorted((a, b) => a.number - b.number)
    .map(({ ending, leftAtMs }) => [ending, leftAtMs / 1_000] as const);

describe('a straggler and its copy', () => {
  it('do not both run until the end: the straggler is stopped once it is overtaken', async () => {
    const [first, copy, ...others] = endsOf(await stageWith(600, 60));
    expect(others).toEqual([]);
    expect(first?.[0]).toBe('cancelled');
    expect(copy?.[0]).toBe('won');
    // The copy has overtaken it after seconds. It is let run for half of an ordinary time, to tell of its node.
    expect(first?.[1]).toBeGreaterThanOrEqual(30);
    expect(first?.[1]).toBeLessThan(35);
    expect(copy?.[1]).toBeGreaterThan(60);
  });

  it('run on together where the copy is as slow', async () => {
    const ends = endsOf(await stageWith(200, 200, 200));
    expect(ends[0]).toEqual(['won', expect.closeTo(200, 0)]);
    expect(ends.slice(1).some(([, leftS]) => leftS >= 200)).toBe(true);
  });

  it('do not both run where the copy is slower: the copy is stopped', async () => {
    const ends = endsOf(await stageWith(200, 400, 400, 400, 400));
    expect(ends[0]).toEqual(['won', expect.closeTo(200, 0)]);
    expect(ends.length).toBeGreaterThan(1);
    for (const [ending, leftS] of ends.slice(1)) {
      expect(ending).toBe('cancelled');
      expect(leftS).toBeLessThan(120);
    }
    // No more than two are tried in vain.
    expect(ends.length).toBeLessThanOrEqual(3);
  });
});
