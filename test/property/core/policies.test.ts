import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { attemptParts, taskOf } from '../../../src/contracts/ids.ts';
import type { PolicyConfigInput } from '../../../src/contracts/policy-config.ts';
import type { PolicyName } from '../../../src/contracts/policy-names.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { decideTick } from '../../../src/core/decide-tick.ts';
import { policySets } from '../../../src/core/policy/policy-sets.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { runToy, type Toy } from '../../support/toy-cluster.ts';
import { isLive, type JobState } from '../../../src/core/model/job-view.ts';
import { draws } from '../../support/draws.ts';

/** Thresholds that let every rule act within seconds, since the jobs here are short. */
const eager: PolicyConfigInput = {
  late: { minAgeMs: 0, speculativeCap: 0.5, slowTaskThreshold: 0.5 },
  hadoop: { minAgeMs: 0 },
  dryad: { doneFraction: 0.3 },
  mapreduce: { doneFraction: 0.3 },
  spark: { quantile: 0.3, multiplier: 1.2 },
  hadoop2: { retryAfterSpeculateMs: 0, skippedReports: 0 },
  flink: { baselineRatio: 0.3, baselineLowerBoundMs: 0, baselineMultiplier: 1.1 },
  cubed: { minTasks: 1, doneFraction: 0.3, slowdown: 1.2 },
};

const arbPolicy: fc.Arbitrary<PolicyName> = fc.constantFrom(...policySets.keys());
const arbNodes = fc
  .array(fc.integer({ min: 1, max: 2 }), { minLength: 2, maxLength: 5 })
  .map((slots) => slots.flatMap((count, node) => Array.from({ length: count }, () => `node${node}`)));

/** Jobs of a few tasks on nodes of unlike speed, with first attempts up to ten times slower than they should be. */
const arbToy: fc.Arbitrary<Toy> = fc
  .record({
    policy: arbPolicy,
    slots: arbNodes,
    sizes: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 16 }),
    speeds: fc.array(fc.constantFrom(1, 1, 1, 2, 5), { minLength: 5, maxLength: 5 }),
    slowdowns: fc.array(fc.constantFrom(1, 1, 1, 1, 3, 10), { minLength: 16, maxLength: 16 }),
    launchOrder: fc.constantFrom('largest-first' as const, 'by-index' as const),
    waitForStarts: fc.boolean(),
  })
  .map(({ policy, slots, sizes, speeds, slowdowns, launchOrder, waitForStarts }) => ({
    policy,
    slots,
    launchOrder,
    config: { ...eager, late: { ...eager.late, waitForStarts } },
    inputBytes: sizes.map((size) => size * 1_000),
    stepMs: 250,
    maxSteps: 20_000,
    durationMs: ({ task, attempt, node }) =>
      (sizes[task] ?? 1) *
      1_000 *
      (speeds[Number(node.slice(4))] ?? 1) *
      (attempt === 0 ? (slowdowns[task] ?? 1) : 1),
  }));

type Tick = Parameters<NonNullable<Toy['onTick']>>[0];

/** Running attempts of each task that nobody told to stop, after a tick's decisions. */
function copiesAfter({ state, decided }: Tick): ReadonlyMap<string, number> {
  const stopped = new Set(
    decided.decisions.flatMap((each) =>
      each.kind === 'cancel' || each.kind === 'lose' ? [each.attemptId] : [],
    ),
  );
  const counts = new Map<string, number>();
  const add = (task: string): void => {
    counts.set(task, (counts.get(task) ?? 0) + 1);
  };
  for (const attempt of state.live)
    if (!attempt.cancelOrdered && !stopped.has(attempt.id)) add(taskOf(attempt.id));
  for (const each of decided.decisions) if (each.kind === 'launch') add(taskOf(each.attemptId));
  return counts;
}

function checkTick(tick: Tick): void {
  const after = copiesAfter(tick);
  const total = [...after.values()].reduce((sum, count) => sum + count, 0);
  expect(total).toBeLessThanOrEqual(tick.budget.slots);
  expect(Math.max(0, ...after.values())).toBeLessThanOrEqual(3);
  for (const each of tick.decided.decisions) {
    if (each.kind !== 'cancel') continue;
    const task = tick.state.stages[0]?.tasks[attemptParts(each.attemptId).task];
    expect(task?.result !== undefined || (after.get(taskOf(each.attemptId)) ?? 0) > 0).toBe(true);
  }
}

/** The same job with everything that has no order of its own in the opposite order. */
const reversed = (state: JobState): JobState => ({
  ...state,
  live: new Set([...state.live].reverse()),
  nodes: new Map([...state.nodes].reverse()),
  attempts: new Map([...state.attempts].reverse()),
});

describe('every policy set', () => {
  it('ends the job, within its slots, with three copies and three restarts of a task at most, never without a live copy', () => {
    fc.assert(
      fc.property(arbToy, (toy) => {
        const restarts = new Map<number, number>();
        const outcome = runToy({
          ...toy,
          onTick: (tick) => {
            checkTick(tick);
            for (const each of tick.decided.decisions) {
              if (each.kind !== 'launch' || each.reason !== 'restart') continue;
              const { task } = attemptParts(each.attemptId);
              restarts.set(task, (restarts.get(task) ?? 0) + 1);
            }
          },
        });
        expect(outcome.endMs).toBeDefined();
        expect(Math.max(0, ...restarts.values())).toBeLessThanOrEqual(3);
      }),
      { numRuns: draws(200) },
    );
  });

  it('does not depend on the order of running attempts, and changes nothing', () => {
    fc.assert(
      fc.property(arbToy, (toy) => {
        runToy({
          ...toy,
          onTick: ({ state, now, config, budget, decided }) => {
            if (now % 1_000 !== 0) return;
            const again = decideTick(reversed(state), epochMs(now), config, budget, createRng('toy'));
            expect(again).toEqual(decided);
          },
        });
      }),
      { numRuns: draws(60) },
    );
  });

  it('keeps the copies of LATE under its cap', () => {
    fc.assert(
      fc.property(arbToy, fc.boolean(), (toy, waitForStarts) => {
        const cap = Math.max(1, Math.floor(toy.slots.length * 0.5));
        runToy({
          ...toy,
          policy: 'late',
          config: { ...eager, late: { ...eager.late, waitForStarts } },
          onTick: ({ state, decided }) => {
            const live = [...state.live].filter(
              (each) =>
                isLive(each) &&
                each.reason === 'backup' &&
                !each.cancelOrdered &&
                state.stages[0]?.tasks[each.task]?.result === undefined,
            );
            const added = decided.decisions.filter(
              (each) => each.kind === 'launch' && each.reason === 'backup',
            );
            expect(live.length + added.length).toBeLessThanOrEqual(cap);
          },
        });
      }),
      { numRuns: draws(60) },
    );
  });
});

describe('the policy set outrider', () => {
  it('never copies a task whose slowness its input explains', () => {
    fc.assert(
      fc.property(arbToy, (toy) => {
        const even = {
          ...toy,
          policy: 'outrider' as const,
          durationMs: ({ task }: { task: number }) => toy.inputBytes[task] ?? 0,
        };
        expect(runToy(even).copies).toEqual([]);
      }),
      { numRuns: draws(100) },
    );
  });
});
