import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { storageTiers } from '../../../src/contracts/storage-tiers.ts';
import { lossRates } from '../../../src/core/policy/mantri/loss-rate.ts';
import { choosePrecomputed } from '../../../src/core/policy/mantri/precompute.ts';
import { chooseReplicas } from '../../../src/core/policy/mantri/replicate.ts';
import { type RedoTask, redoTimes } from '../../support/redo-times.ts';

const arbProbability = fc.double({ min: 0, max: 1, noNaN: true });
const arbTime = fc.integer({ min: 1, max: 1_000 });

/** Tasks in layers, each of which reads some of the layer before; at most nine. */
const arbLayers: fc.Arbitrary<RedoTask[]> = fc
  .array(
    fc.array(fc.record({ takesMs: arbTime, lossProbability: arbProbability, picks: fc.nat({ max: 7 }) }), {
      minLength: 1,
      maxLength: 3,
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((layers) => {
    const tasks: RedoTask[] = [];
    let before: number[] = [];
    for (const layer of layers) {
      const own = layer.map((_, place) => tasks.length + place);
      for (const { picks, ...task } of layer)
        tasks.push({ ...task, inputs: before.filter((_, place) => (picks >> place) % 2 === 1) });
      before = own;
    }
    return tasks;
  });

/** How long a task takes again where exactly these outputs are lost. */
function takesWhere(tasks: readonly RedoTask[], lost: number, place: number): number {
  const { takesMs, inputs } = tasks[place] ?? { takesMs: 0, inputs: [] };
  const waits = inputs
    .filter((input) => (lost >> input) % 2 === 1)
    .map((input) => takesWhere(tasks, lost, input));
  return takesMs + Math.max(0, ...waits);
}

/** The expected time to do the last task again, over all sets of outputs that may be lost. */
function expectedRedo(tasks: readonly RedoTask[]): number {
  let sum = 0;
  for (let lost = 0; lost < 2 ** tasks.length; lost++) {
    const chance = tasks.reduce(
      (product, { lossProbability: r }, place) => product * ((lost >> place) % 2 === 1 ? r : 1 - r),
      1,
    );
    if (chance > 0) sum += chance * takesWhere(tasks, lost, tasks.length - 1);
  }
  return sum;
}

const near = (value: number): number => value * (1 + 1e-9) + 1e-9;

describe('the time to do a task again', () => {
  it('is at most what all sets of losses come to, and no less than its own', () => {
    fc.assert(
      fc.property(arbLayers, (tasks) => {
        const last = redoTimes(tasks).at(-1) ?? NaN;
        expect(last).toBeLessThanOrEqual(near(expectedRedo(tasks)));
        expect(last).toBeLessThanOrEqual(near(takesWhere(tasks, 2 ** tasks.length - 1, tasks.length - 1)));
        expect(last).toBeGreaterThanOrEqual(tasks.at(-1)?.takesMs ?? NaN);
      }),
    );
  });

  it('is exactly that in a chain, and where inputs have none of their own', () => {
    const arbChain = arbLayers.map((tasks) =>
      tasks.map((task, place) => ({ ...task, inputs: place === 0 ? [] : [place - 1] })),
    );
    const arbFlat = arbLayers.map((tasks) =>
      tasks.map((task, place) => ({
        ...task,
        inputs: place === tasks.length - 1 ? [...tasks.keys()].slice(0, -1) : [],
      })),
    );
    fc.assert(
      fc.property(fc.oneof(arbChain, arbFlat), (tasks) => {
        const [last = NaN, expected] = [redoTimes(tasks).at(-1), expectedRedo(tasks)];
        expect(Math.abs(last - expected)).toBeLessThanOrEqual(expected * 1e-9);
      }),
    );
  });

  it('never grows by a replica', () => {
    fc.assert(
      fc.property(arbLayers, fc.nat(), arbProbability, (tasks, which, copy) => {
        const kept = tasks.map((task, place) =>
          place === which % tasks.length ? { ...task, lossProbability: task.lossProbability * copy } : task,
        );
        const before = redoTimes(tasks);
        for (const [place, time] of redoTimes(kept).entries())
          expect(time).toBeLessThanOrEqual(near(before[place] ?? NaN));
      }),
    );
  });
});

describe('how likely an output is lost', () => {
  it('is never impossible and never certain', () => {
    const arbCounts = fc.record({ outputs: fc.nat({ max: 1_000_000 }), lost: fc.nat({ max: 1_000_000 }) });
    fc.assert(
      fc.property(
        fc.constantFrom(...storageTiers),
        fc.dictionary(fc.constantFrom('a', 'b', 'c'), arbCounts),
        (tier, seen) => {
          const rates = lossRates(tier, new Map(Object.entries(seen)));
          for (const place of ['a', 'b', 'c', 'd']) {
            expect(rates(place)).toBeGreaterThan(0);
            expect(rates(place)).toBeLessThan(1);
          }
        },
      ),
    );
  });
});

describe('what is kept twice', () => {
  const arbCandidates = fc.array(
    fc.record({
      lossProbability: arbProbability,
      copyLossProbability: fc.double({ min: 0, max: 0.99, noNaN: true }),
      redoMs: arbTime,
      copyMs: arbTime,
      bytes: fc.nat({ max: 1_000 }),
    }),
    { maxLength: 20 },
  );

  it('takes no more than the tokens, is worth it, and leaves out nothing that there are tokens for', () => {
    fc.assert(
      fc.property(arbCandidates, fc.nat({ max: 5_000 }), (candidates, tokens) => {
        const { chosen, declined, tokens: left } = chooseReplicas(candidates, tokens);
        expect(chosen.length + declined.length).toBe(candidates.length);
        expect(chosen.reduce((sum, { bytes }) => sum + bytes, 0) + left).toBe(tokens);
        expect(left).toBeGreaterThanOrEqual(0);
        for (const { lossProbability: r, redoMs, copyMs } of chosen)
          expect(r * redoMs).toBeGreaterThan(copyMs);
        for (const { reason, candidate } of declined)
          if (reason === 'too-few-tokens') expect(candidate.bytes).toBeGreaterThan(left);
          else expect(candidate.lossProbability * candidate.redoMs).toBeLessThanOrEqual(candidate.copyMs);
      }),
    );
  });

  it('and what is made again ahead takes no more than its budget', () => {
    const arbOutputs = fc.array(fc.record({ takesMs: fc.nat({ max: 1_000 }), redoMs: arbTime }));
    fc.assert(
      fc.property(arbOutputs, fc.nat({ max: 5_000 }), (outputs, budgetMs) => {
        const { chosen, leftMs } = choosePrecomputed(outputs, budgetMs);
        expect(chosen.reduce((sum, { takesMs }) => sum + takesMs, 0) + leftMs).toBe(budgetMs);
        expect(leftMs).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
