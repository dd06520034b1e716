import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StageProfile } from '../../../../src/core/forecast/job-profile.ts';
import { RunSimulator } from '../../../../src/core/forecast/run-simulator.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { barrier, pairs, profile, steady, times } from './profiles.ts';

const timeOf = (slots: number, ...stages: readonly StageProfile[]): number =>
  new RunSimulator(profile(...stages)).run(slots, createRng('a'));

describe('a simulated run', () => {
  it.each([
    [1, 70],
    [2, 40],
    [3, 30],
    [7, 10],
    [100, 10],
  ])('of seven tasks of 10 on %i slots takes %i', (slots, ms) => {
    expect(timeOf(slots, steady(10, 7))).toBe(ms);
  });

  it('has no task behind a barrier start before the last in front of it has ended', () => {
    expect(timeOf(2, steady(10, 3), steady(10, 3, barrier(0)))).toBe(40);
  });

  it('has tasks that wait for their own inputs alone start as soon as these have ended', () => {
    expect(timeOf(2, steady(10, 3), steady(10, 3, pairs(0)))).toBe(30);
  });

  it('has a task wait for each of several inputs whose share it reads', () => {
    // The one task of the second stage reads all four of the first, two at a time.
    expect(timeOf(2, steady(10, 4), steady(5, 1, pairs(0)))).toBe(25);
    // Four tasks read two: each starts with its half.
    expect(timeOf(4, steady(10, 2), steady(5, 4, pairs(0)))).toBe(15);
  });

  it('starts tasks of earlier stages before those of later ones, whatever became ready first', () => {
    // The second stage is ready once the first has ended, the third from the begin: on one slot it waits.
    const [first, second, third] = [steady(10, 1), steady(20, 1, barrier(0)), steady(40, 3)];
    const begun: number[] = [];
    new RunSimulator(profile(first, second, third)).run(1, createRng('a'), {
      everyMs: 5,
      visit: (atMs, _, started) => {
        for (const [stage, count] of started.entries()) if (count > 0) begun[stage] ??= atMs;
      },
    });
    expect(begun).toEqual([0, 10, 30]);
  });

  it('takes longer where a slot is new to the job, and to a stage', () => {
    const runs = [{ slots: 1, times: times({ cold: [100], first: [10], later: [1] }) }];
    const two = steady(0, 2, [], { runs });
    const next = steady(0, 2, barrier(0), { runs });
    expect(timeOf(1, two, next)).toBe(100 + 1 + 10 + 1);
    expect(timeOf(2, two, next)).toBe(100 + 10);
  });

  it('gives work to the slot that was freed last, which is warm', () => {
    const runs = [{ slots: 1, times: times({ cold: [100], first: [10], later: [1] }) }];
    // One task, then one task, on ten slots: the second finds the slot of the first.
    expect(timeOf(10, steady(0, 1, [], { runs }), steady(0, 1, barrier(0), { runs }))).toBe(110);
  });

  it('waits the queueing time before each attempt', () => {
    expect(timeOf(1, steady(10, 3, [], { queueMs: [4] }))).toBe(42);
  });

  it('has none wait of the share that ride behind another', () => {
    // 2,000 tasks of 100 ms, each tenth of which waits for a second: 400 s of work and waits on 20 slots, not 2,200 s.
    const riding = steady(100, 2_000, [], { queueMs: [1_000], queuedShare: 0.1 });
    expect(timeOf(20, riding)).toBeGreaterThan(19_000);
    expect(timeOf(20, riding)).toBeLessThan(22_000);
  });

  it('runs a task that keeps failing four times, and no more', () => {
    expect(timeOf(1, steady(10, 1, [], { failureShare: 0.999999 }))).toBe(40);
  });

  it('draws each task’s time from the sample', () => {
    const spread = [{ slots: 1, times: times({ later: [10, 20, 30] }) }];
    const simulator = new RunSimulator(profile(steady(0, 1, [], { runs: spread })));
    const rng = createRng('draws');
    const seen = new Set(Array.from({ length: 100 }, () => simulator.run(1, rng)));
    expect([...seen].sort()).toEqual([10, 20, 30]);
  });

  it('is the same for the same seed, whatever ran before', () => {
    const spread = [{ slots: 1, times: times({ cold: [40, 50], later: [10, 20, 30] }) }];
    const stages = [steady(0, 20, [], { runs: spread }), steady(0, 20, barrier(0), { runs: spread })];
    const used = new RunSimulator(profile(...stages));
    for (const slots of [3, 50, 3]) used.run(slots, createRng('before'));
    const fresh = new RunSimulator(profile(...stages));
    expect(used.run(7, createRng('now'))).toBe(fresh.run(7, createRng('now')));
  });

  it('shows its looks what has ended by then', () => {
    const seen: (readonly [number, readonly number[]])[] = [];
    new RunSimulator(profile(steady(10, 3), steady(10, 1, barrier(0)))).run(2, createRng('a'), {
      everyMs: 8,
      visit: (atMs, finished) => seen.push([atMs, [...finished]]),
    });
    expect(seen).toEqual([
      [0, [0, 0]],
      [8, [0, 0]],
      [16, [2, 0]],
      [24, [3, 0]],
    ]);
  });

  // Tasks that become ready at one instant may start in any order: these graphs have no such tasks of two stages.
  it('takes as long as a plain list schedule, along any chain', () => {
    const chains = fc.array(
      fc.record({ ms, tasks: fc.integer({ min: 1, max: 6 }), isBarrier: fc.boolean() }),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(chains, fc.integer({ min: 1, max: 5 }), (drawn, slots) => {
        const stages = drawn.map(({ ms, tasks, isBarrier }, index) =>
          steady(unlike(ms, index), tasks, index === 0 ? [] : [{ stage: index - 1, isBarrier }]),
        );
        expect(timeOf(slots, ...stages)).toBeCloseTo(listScheduled(stages, slots), 6);
      }),
      { numRuns: 300 },
    );
  });

  it('takes as long as a plain list schedule, over any graph of single tasks', () => {
    const graphs = fc.array(
      fc.record({
        ms,
        reads: fc.array(fc.record({ stage: fc.nat(), isBarrier: fc.boolean() }), { maxLength: 3 }),
      }),
      { minLength: 1, maxLength: 7 },
    );
    fc.assert(
      fc.property(graphs, fc.integer({ min: 1, max: 4 }), (drawn, slots) => {
        const stages = drawn.map(({ ms, reads }, index) =>
          steady(
            unlike(ms, index),
            1,
            index === 0 ? [] : reads.map(({ stage, isBarrier }) => ({ stage: stage % index, isBarrier })),
          ),
        );
        expect(timeOf(slots, ...stages)).toBeCloseTo(listScheduled(stages, slots), 6);
      }),
      { numRuns: 300 },
    );
  });
});

const ms = fc.integer({ min: 1, max: 50 });
/** A time that no sum of other stages' is equal to. */
const unlike = (ms: number, stage: number): number =>
  ms + Math.sqrt([2, 3, 5, 7, 11, 13, 17][stage] ?? 19) * 1e-3;

/** The same by going over all tasks at each event: slow, and without any state but when each has ended. */
function listScheduled(stages: readonly StageProfile[], slots: number): number {
  const msOf = (stage: number): number => stages[stage]?.runs[0]?.times.later[0] ?? 0;
  const tasks = stages.flatMap(({ tasks }, stage) =>
    Array.from({ length: tasks }, (_, at) => ({ stage, at })),
  );
  const endsAt = new Map<string, number>();
  const readySince = new Map<string, number>();
  const order: string[] = [];
  const id = (stage: number, at: number): string => `${stage}/${at}`;
  const hasEnded = (key: string, now: number): boolean => (endsAt.get(key) ?? Infinity) <= now;
  const isReady = ({ stage, at }: { stage: number; at: number }, now: number): boolean =>
    (stages[stage]?.inputs ?? []).every((input) => {
      const parents = stages[input.stage]?.tasks ?? 0;
      const own = stages[stage]?.tasks ?? 1;
      return Array.from({ length: parents }, (_, parent) => parent)
        .filter(
          (parent) =>
            // Shares overlap where neither ends before the other begins.
            input.isBarrier || (parent * own < (at + 1) * parents && at * parents < (parent + 1) * own),
        )
        .every((parent) => hasEnded(id(input.stage, parent), now));
    });
  let now = 0;
  for (;;) {
    for (const task of tasks) {
      const key = id(task.stage, task.at);
      if (readySince.has(key) || !isReady(task, now)) continue;
      readySince.set(key, now);
      order.push(key);
    }
    const running = [...endsAt.values()].filter((end) => end > now).length;
    const stageOf = (key: string): number => Number(key.split('/')[0]);
    const waiting = order.filter((key) => !endsAt.has(key)).sort((a, b) => stageOf(a) - stageOf(b));
    for (const key of waiting.slice(0, slots - running)) endsAt.set(key, now + msOf(stageOf(key)));
    const next = [...endsAt.values()].filter((end) => end > now);
    if (next.length === 0) return now;
    now = Math.min(...next);
  }
}
