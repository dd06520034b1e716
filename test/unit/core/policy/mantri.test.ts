import { describe, expect, it } from 'vitest';
import type { PolicyConfigInput } from '../../../../src/contracts/policy-config.ts';
import { mantri } from '../../../../src/core/policy/mantri/mantri.ts';
import { outrider } from '../../../../src/core/policy/outrider/outrider.ts';
import type { PolicyView } from '../../../../src/core/policy/policy-set.ts';
import { runningTasks } from '../../../../src/core/policy/running-tasks.ts';
import { type RunningSpec, type TaskSpec, times, told, viewOf } from '../../../support/policy-views.ts';

const size = 1_000_000;
/** Enough finished tasks of 100 s that one more sample hardly moves their mean. */
const done = times(999, { doneMs: 100_000 });
const noRestart: PolicyConfigInput = { mantri: { restartsPerTask: 0 } };
const copyAt = (share: number, ranMs = 100_000): RunningSpec => ({ ranMs, bytesRead: share * size });

/** What is to be done, without what is left alone. */
const acts = (view: PolicyView): string[] =>
  told(mantri.propose(view).filter(({ kind }) => kind !== 'decline')).map((each) =>
    each.replace(/ -?\d+$/, ''),
  );
const contended = (
  running: readonly RunningSpec[],
  config: PolicyConfigInput = noRestart,
  more: TaskSpec = {},
): string[] => acts(viewOf([...done, { ...more, running }, {}], { config, free: 1 }));
const spare = (running: readonly RunningSpec[], more: TaskSpec = {}): string[] =>
  acts(viewOf([...done, { ...more, running }]));

describe('Mantri while tasks wait', () => {
  it('duplicates a task with one copy if a new one takes less than half of its time left', () => {
    expect(contended([copyAt(1 / 3)])).toEqual([]);
    expect(contended([copyAt(0.33)])).toEqual(['backup 999']);
  });

  it('duplicates a task with two copies if a new one takes less than two thirds', () => {
    expect(contended([copyAt(0.4), copyAt(0.4)])).toEqual([]);
    expect(contended([copyAt(0.39), copyAt(0.39)])).toEqual(['backup 999']);
  });

  it('restarts a task whose time left exceeds a new copy by Δ', () => {
    expect(contended([copyAt(0.47)], {})).toEqual(['restart 999']);
    expect(contended([copyAt(0.48)], {})).toEqual([]);
  });

  it('prefers duplicates where queueing is long', () => {
    expect(contended([copyAt(0.2)], { mantri: { prefer: 'duplicate' } })).toEqual(['backup 999']);
    expect(contended([copyAt(0.47)], { mantri: { prefer: 'duplicate' } })).toEqual(['restart 999']);
  });

  it('leaves a task alone for Δ after its last copy', () => {
    expect(contended([copyAt(0.1), { ranMs: 9_999, bytesRead: 1 }])).toEqual([]);
    expect(contended([copyAt(0.1), { ranMs: 10_000, bytesRead: 1 }])).toEqual(['backup 999']);
  });

  it('never kills a task that has read nothing: once it has run for twice a new copy it gets one beside it', () => {
    expect(contended([{ ranMs: 190_000, bytesRead: 0 }], {})).toEqual([]);
    expect(contended([{ ranMs: 210_000, bytesRead: 0 }], {})).toEqual(['backup 999']);
  });
});

describe('what Mantri leaves alone', () => {
  const waiting = (running: readonly RunningSpec[], config: PolicyConfigInput = {}): unknown =>
    mantri.propose(viewOf([...done, { running }, {}], { config, free: 1 }));
  const unhurried = (running: readonly RunningSpec[]): unknown =>
    mantri.propose(viewOf([...done, { running }]));

  it('says by which numbers another attempt of a slow task is not worth it', () => {
    // 100 s for 48 %: 108.3 s are left; a new attempt takes 100.1 s, the mean of 999 of 100 s and this one; Δ is 10 s.
    expect(waiting([copyAt(0.48)])).toMatchObject([
      {
        kind: 'decline',
        reason: 'not-worth-it',
        gainMs: 0,
        facts: { remMs: 108_333, newMs: 100_108, deltaMs: 10_000, copies: 1, restarts: 0 },
      },
    ]);
    // 127.3 s, which saves less than 3 Δ; how likely a copy saves slot time is not asked where slots are spare.
    const [alone] = unhurried([copyAt(0.44)]) as { facts: object }[];
    expect(alone).toMatchObject({ reason: 'not-worth-it', facts: { remMs: 127_273 } });
    expect(alone?.facts).not.toHaveProperty('probability');
  });

  it('says that it waits for what the last copy brings', () => {
    expect(waiting([copyAt(0.1), copyAt(0.01, 9_999)])).toMatchObject([
      { kind: 'decline', reason: 'recent-copy', facts: { sinceCopyMs: 9_999, deltaMs: 10_000, copies: 2 } },
    ]);
  });

  it('says that a task was restarted as often as it may be', () => {
    expect(waiting([copyAt(0.47)], noRestart)).toMatchObject([
      { kind: 'decline', reason: 'restart-limit', facts: { restarts: 0, probability: 0 } },
    ]);
  });

  it('says nothing of a task that a new attempt would not overtake', () => {
    expect(waiting([copyAt(0.9)])).toEqual([]);
    expect(unhurried([copyAt(0.9)])).toEqual([]);
  });
});

/** Whether copies of a slow task go before tasks that wait, `waiting` of them beside four slots of which none is free. */
const goBefore = (waiting: number): unknown[] =>
  [mantri, outrider].map((policy) =>
    policy
      .propose(
        viewOf(
          [
            ...done,
            ...times(3, { running: [copyAt(0.9)] }),
            { running: [copyAt(0.2)] },
            ...times(waiting, {}),
          ],
          {
            config: noRestart,
            free: 0,
          },
        ),
      )
      .map((each) => each.kind === 'backup' && each.urgent),
  );

describe('copies and tasks that wait', () => {
  it('go before them while a whole wave of them waits: each of the last would keep back the end by a whole task', () => {
    expect(goBefore(4)).toEqual([[true], [true]]);
    // By the combined rule before the last, too, where the task would outlast them and a copy after them.
    expect(goBefore(3)).toEqual([[false], [true]]);
  });

  it('has outrider kill nobody where all that wait get slots as it is', () => {
    const slow = { running: [copyAt(0.2)] };
    const kinds = (free: number): string[] =>
      outrider.propose(viewOf([...done, slow, {}, {}], { free })).map(({ kind }) => kind);
    expect(kinds(1)).toEqual(['restart']);
    expect(kinds(2)).not.toContain('restart');
  });
});

describe('a task of which two copies were pruned', () => {
  /** A slow task whose copies had read so much after 20 s, when they were told to stop. The original had read 10 % by then. */
  const after = (...shares: readonly number[]): string[] =>
    [mantri, outrider].flatMap((policy) => {
      const slow: RunningSpec = { ranMs: 100_000, bytesRead: 0.12 * size, before: [[20_000, 0.1 * size]] };
      const copies = shares.map((share) => copyAt(share, 20_000));
      const view = viewOf([...done, { running: [slow, ...copies] }]);
      for (const each of view.state.attempts.values())
        if (each.task === 999 && each.number > 0) each.state = 'cancelled';
      return policy
        .propose({ ...view, runs: runningTasks(view.state, new Set()) })
        .flatMap(({ kind }) => (kind === 'decline' ? [] : kind));
    });

  it('gets no other where both got on no faster than the one that runs', () => {
    expect(after(0.12, 0.12)).toEqual([]);
    expect(after(0.12)).toEqual(['backup', 'backup']);
    expect(after(0.12, 0.13)).toEqual(['backup', 'backup']);
  });
});

describe('copies that cost more than they bring, while tasks wait', () => {
  const silent = (ranMs: number): RunningSpec => ({ ranMs, bytesRead: 0 });
  const ordinary = times(4, { doneMs: 100_000 });
  const stopped = (running: readonly RunningSpec[], waiting = true): unknown[] =>
    [mantri, outrider].map((policy) =>
      policy
        .propose(viewOf([...ordinary, { running }, ...(waiting ? [{}] : [])], { free: 0 }))
        .flatMap((each) => (each.kind === 'prune' ? [each.attempt.number] : [])),
    );

  it('are stopped once a stage has lost a quarter of its slot time, the oldest kept where nothing tells', () => {
    // A quarter of 400 s and of 500 s: 225 s.
    expect(stopped([silent(500_000), silent(220_000)])).toEqual([[], []]);
    expect(stopped([silent(500_000), silent(230_000)])).toEqual([[1], [1]]);
    expect(stopped([silent(500_000), silent(230_000)], false)).toEqual([[], []]);
  });

  it('are stopped by what they have left where both tell it', () => {
    expect(stopped([copyAt(0.1, 500_000), copyAt(0.9, 230_000)])).toEqual([[0], [0]]);
    expect(stopped([copyAt(0.9, 500_000), copyAt(0.1, 230_000)])).toEqual([[1], [1]]);
  });
});

describe('Mantri with slots to spare', () => {
  it('duplicates what saves more than ρ Δ', () => {
    expect(spare([copyAt(0.43)])).toEqual(['backup 999']);
    expect(spare([copyAt(0.44)])).toEqual([]);
  });

  it('never acts on a task that is slow because it reads more', () => {
    const big = { bytes: 10 * size };
    expect(spare([copyAt(1)], big)).toEqual([]);
    expect(contended([copyAt(1)], {}, big)).toEqual([]);
  });

  it('acts when reports stop', () => {
    const quiet = (silentMs: number): string[] => spare([{ ranMs: 50_000, bytesRead: 0.5 * size, silentMs }]);
    expect(quiet(0)).toEqual([]);
    expect(quiet(85_000)).toEqual(['backup 999']);
  });

  it('keeps the two fastest of three copies that are old enough', () => {
    expect(spare([copyAt(0.1), copyAt(0.2), copyAt(0.3)])).toEqual(['prune 999']);
    const proposals = mantri.propose(viewOf([...done, { running: [copyAt(0.1), copyAt(0.2), copyAt(0.3)] }]));
    expect(proposals[0]).toMatchObject({ kind: 'prune', attempt: { id: 'map/999/0' } });
    expect(spare([copyAt(0.6), copyAt(0.6), copyAt(0.01, 9_000)])).toEqual([]);
  });

  it('keeps the oldest of copies that have read nothing, and those that have read before them', () => {
    const silent = (ranMs: number): RunningSpec => ({ ranMs, bytesRead: 0 });
    const pruned = (running: readonly RunningSpec[]): unknown[] =>
      mantri
        .propose(viewOf([...done, { running }]))
        .flatMap((each) => (each.kind === 'prune' ? [each.attempt.number] : []));
    expect(pruned([silent(300_000), silent(40_000), silent(20_000)])).toEqual([2]);
    expect(pruned([silent(300_000), copyAt(0.01, 200_000), silent(20_000)])).toEqual([2]);
    expect(pruned([silent(300_000), copyAt(0.1), copyAt(0.2)])).toEqual([0]);
  });

  it('spares a copy that no worker has taken up yet, or none would begin where workers are slow to start', () => {
    const view = viewOf([...done, { running: [copyAt(0.1), copyAt(0.2), copyAt(0.3)] }]);
    const slowest = view.runs[0]?.tasks[0]?.copies[0];
    if (slowest === undefined) throw new Error('nothing runs');
    slowest.state = 'launched';
    delete slowest.claimedAt;
    expect(mantri.propose(view).filter(({ kind }) => kind === 'prune')).toEqual([]);
  });

  it('declines nodes known to be slow', () => {
    const view = viewOf([...done, ...times(3, { doneMs: 300_000, node: 'bad' }), { running: [copyAt(0.1)] }]);
    expect(mantri.propose(view)).toMatchObject([{ kind: 'backup', avoidNodes: ['bad'] }]);
  });
});

describe('outrider', () => {
  it('says that more input explains a slow task', () => {
    const view = viewOf([...done, { bytes: 10 * size, running: [copyAt(1)] }]);
    expect(outrider.propose(view)).toMatchObject([
      { kind: 'decline', reason: 'input-explained', facts: { remMs: 900_000, slownessForInput: 1 } },
    ]);
  });

  it('finds no excuse in the input of a task that reads no more than others', () => {
    // 3,000 s in all against the ordinary 1,000 s; ranked by the time left, 2,800 s.
    const long = times(999, { doneMs: 1_000_000 });
    const slow = { running: [{ ranMs: 200_000, bytesRead: (200 / 3_000) * size }] };
    expect(told(outrider.propose(viewOf([...long, slow])))).toEqual(['backup 999 2800000']);
    const slight = { running: [{ ranMs: 200_000, bytesRead: (200 / 1_150) * size }] };
    expect(told(outrider.propose(viewOf([...long, slight])))).toEqual([]);
    const larger = { bytes: 3 * size, running: [{ ranMs: 200_000, bytesRead: 0.2 * size }] };
    expect(told(outrider.propose(viewOf([...long, larger])))).toEqual(['decline 999 0']);
  });

  it('copies a slow task away from where it runs', () => {
    const view = viewOf([...done, { running: [{ ...copyAt(0.2), node: 'here' }] }]);
    expect(outrider.propose(view)).toMatchObject([{ kind: 'backup', avoidNodes: ['here'] }]);
  });

  it('kills in the first wave where it gains four times what it throws away and takes', () => {
    // Three of 100 s, and one that has run for 130 s: a quarter of that, 107.5 s, may be lost. 4 × (100 + 130) = 920 s.
    const proposed = (share: number): unknown[] => {
      const slow = { running: [{ ranMs: 130_000, bytesRead: share * size }] };
      const view = viewOf([...times(3, { doneMs: 100_000 }), slow, ...times(8, {})], { free: 1 });
      return outrider.propose(view).map((each) => [each.kind, 'lossMs' in each ? each.lossMs : undefined]);
    };
    // Of 1,444 s and of 1,398 s in all, the error of the estimate (e^-0.3) leaves 940 s and 906 s to go at least.
    expect(proposed(0.09)).toEqual([['restart', 0]]);
    expect(proposed(0.093)).toEqual([['backup', 100_000]]);
  });

  it('kills in a first wave on two slots, once, where those that wait bear it, unless the task has more to read', () => {
    // Of 1,000 s in all at least 541 s are left, beside two of 100 s; 1,600 s with the nine that wait.
    const proposed = (bytes: number, others: readonly TaskSpec[] = []): unknown[] => {
      const slow = { bytes, running: [{ ranMs: 200_000, bytesRead: 0.2 * bytes }] };
      const view = viewOf([...times(2, { doneMs: 100_000 }), slow, ...others, ...times(9, {})], { free: 1 });
      return outrider.propose({ ...view, losesAhead: true }).map(({ kind, task }) => [kind, task.index]);
    };
    expect(proposed(size)).toEqual([['restart', 2]]);
    expect(proposed(3 * size).flat()).not.toContain('restart');
    const copied = { running: [copyAt(0.5, 50_000), copyAt(0.5, 50_000)] };
    expect(proposed(size, [copied]).flat()).not.toContain('restart');
  });

  it('acts on nothing before it has samples', () => {
    expect(outrider.propose(viewOf([{ doneMs: 100_000 }, { running: [copyAt(0.01)] }]))).toEqual([]);
    expect(outrider.propose(viewOf([{}, { running: [copyAt(0)] }]))).toEqual([]);
  });

  it('copies what runs on in a stage of two or three tasks, whatever it has read, once it is late beyond doubt', () => {
    const proposed = (finished: number, ranMs: number, share: number): readonly string[] =>
      outrider
        .propose(viewOf([...times(finished, { doneMs: 100_000 }), { running: [copyAt(share, ranMs)] }]))
        .map(({ kind }) => kind);
    for (const share of [0, 0.01, 1]) {
      // One has taken 100 s, where e^2 times that would be no wonder; two have, and e^1.4 times that.
      expect(proposed(1, 730_000, share)).toEqual([]);
      expect(proposed(1, 750_000, share)).toEqual(['backup']);
    }
    for (const share of [0, 1]) {
      expect(proposed(2, 400_000, share)).toEqual([]);
      expect(proposed(2, 410_000, share)).toEqual(['backup']);
    }
  });
});
