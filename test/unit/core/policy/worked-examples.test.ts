import { describe, expect, it } from 'vitest';
import { runToy, type Toy } from '../../../support/toy-cluster.ts';

const minute = 60_000;

/** LATE §5.4.3: ten fast nodes, X at 2.9 min a task, Y at 10 min, one slot each, 32 tasks. */
function slowNodes(slowNodeThreshold: number): Toy {
  const minutes: Readonly<Record<string, number>> = { X: 2.9, Y: 10 };
  const fast = Array.from({ length: 10 }, (_, index) => `fast${index}`);
  return {
    policy: 'late',
    config: { late: { slowNodeThreshold } },
    inputBytes: Array.from({ length: 32 }, () => 60_000),
    slots: [...fast, 'X', 'Y'],
    durationMs: ({ node }) => (minutes[node] ?? 1) * minute,
    stepMs: 1_000,
    maxSteps: 1_000,
  };
}

describe('LATE on a slow node', () => {
  it('ends at 5.8 min where the slow node may take the copy', () => {
    const outcome = runToy(slowNodes(0));
    expect(outcome.endMs).toBe(5.8 * minute);
    expect(outcome.copies).toEqual(['11/1 backup X 174000']);
  });

  it('ends at 4.0 min where it waits for a fast node', () => {
    const outcome = runToy(slowNodes(0.25));
    expect(outcome.endMs).toBe(4 * minute);
    expect(outcome.copies).toEqual(['11/1 backup fast0 180000']);
  });

  it('ends at 10 min without copies', () => {
    expect(runToy({ ...slowNodes(0.25), policy: 'none' }).endMs).toBe(10 * minute);
  });
});

/** Mantri Fig. 8: seven tasks on two slots; the fifth takes 5t where a new copy takes t. */
const seven: Toy = {
  policy: 'none',
  inputBytes: [1, 1, 1, 2, 1, 2, 2].map((size) => size * 1_000_000),
  slots: ['A', 'B'],
  durationMs: ({ task, attempt }) =>
    (task === 4 && attempt === 0 ? 5 : ([1, 1, 1, 2, 1, 2, 2][task] ?? 1)) * minute,
  stepMs: minute / 10,
  maxSteps: 200,
};

describe('Mantri on seven tasks and two slots', () => {
  it('takes 7t and 14t of slot time without copies', () => {
    expect(runToy(seven)).toEqual({ endMs: 7 * minute, slotMs: 14 * minute, copies: [] });
  });

  it('takes 7t with schemes that act at the end', () => {
    for (const policy of ['late', 'hadoop', 'mapreduce', 'dryad', 'spark', 'cubed', 'flink'] as const) {
      expect(runToy({ ...seven, policy })).toMatchObject({ endMs: 7 * minute });
    }
  });

  it('takes 6t and 12t by a duplicate at the next free slot', () => {
    const outcome = runToy({ ...seven, policy: 'mantri', config: { mantri: { restartsPerTask: 0 } } });
    expect(outcome).toEqual({ endMs: 6 * minute, slotMs: 12 * minute, copies: ['4/1 backup B 180000'] });
  });

  it('takes 5.1t and 10.1t by a restart in place', () => {
    const outcome = runToy({ ...seven, policy: 'mantri' });
    expect(outcome).toEqual({ endMs: 5.1 * minute, slotMs: 10.1 * minute, copies: ['4/1 restart A 126000'] });
  });

  it('takes 5.1t by the combined set, too', () => {
    expect(runToy({ ...seven, policy: 'outrider' })).toMatchObject({ endMs: 5.1 * minute });
  });

  it('leaves the outlier alone where its input explains it', () => {
    const big = { ...seven, inputBytes: [1, 1, 1, 2, 5, 2, 2].map((size) => size * 1_000_000) };
    const explained: Toy = { ...big, durationMs: ({ task }) => ([1, 1, 1, 2, 5, 2, 2][task] ?? 1) * minute };
    for (const policy of ['mantri', 'outrider'] as const) {
      expect(runToy({ ...explained, policy }).copies).toEqual([]);
    }
  });
});
