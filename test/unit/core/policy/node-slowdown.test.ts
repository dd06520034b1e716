import { describe, expect, it } from 'vitest';
import { nodesInSpell, nodeSlowdowns, slowNodesBy } from '../../../../src/core/policy/node-slowdown.ts';
import { recordFinish } from '../../../../src/core/model/stage-statistics.ts';
import { outrider } from '../../../../src/core/policy/outrider/outrider.ts';
import { applyAttempt, applyResult } from '../../../../src/core/model/job-state.ts';
import { runningTasks } from '../../../../src/core/policy/running-tasks.ts';
import { epochMs } from '../../../../src/contracts/units.ts';
import { attemptRecord, resultOf } from '../../../support/job-states.ts';
import { nowMs, type RunningSpec, type TaskSpec, times, viewOf } from '../../../support/policy-views.ts';

const size = 1_000_000;
const done = times(20, { doneMs: 100_000, node: 'ordinary' });

describe('slowness of nodes', () => {
  it('is the least that a node takes for a byte, so that one unlucky task does not convict it', () => {
    const view = viewOf([
      ...done,
      { doneMs: 1_000_000, node: 'unlucky' },
      { doneMs: 110_000, node: 'unlucky' },
      { doneMs: 300_000, node: 'slow' },
      { running: [{ ranMs: 100_000, bytesRead: 0.25 * size, node: 'slow' }] },
    ]);
    const slowdowns = nodeSlowdowns(view);
    expect(slowdowns.get('unlucky')).toBeCloseTo(1.1, 9);
    expect(slowdowns.get('slow')).toBeCloseTo(3, 9);
    expect(slowNodesBy(view, 2)).toEqual(['slow']);
  });

  it('is unknown from one task', () => {
    expect([...nodeSlowdowns(viewOf([...done, { doneMs: 900_000, node: 'new' }])).keys()]).toEqual([
      'ordinary',
    ]);
  });

  /** A task of which one attempt was told to stop on a node that nothing else tells of, and another runs, or has won. */
  const outrun = (stopped: RunningSpec, isWon: boolean): readonly string[] => {
    const view = viewOf([
      ...done,
      { running: [stopped, { ranMs: 90_000, bytesRead: 0.9 * size, node: 'other' }] },
    ]);
    const task = view.state.stages[0]?.tasks.at(-1);
    const [first, second] = task?.attempts ?? [];
    if (first !== undefined) first.cancelOrdered = true;
    if (isWon && second !== undefined) {
      const at = epochMs(nowMs + 10_000);
      applyAttempt(
        view.state,
        attemptRecord(second.id, 'done', at, { claimedAt: epochMs(nowMs - 90_000) }),
        at,
      );
      applyResult(view.state, resultOf(second.id, at), at);
    }
    return slowNodesBy({ ...view, runs: runningTasks(view.state, new Set()) }, 2);
  };

  it('is known from one attempt that was told to stop where another of its task got on, from then on', () => {
    const slow: RunningSpec = { ranMs: 120_000, bytesRead: 0.2 * size, node: 'slow' };
    expect([outrun(slow, false), outrun(slow, true)]).toEqual([['slow'], ['slow']]);
  });

  it('is not known from one that had merely begun, or was about as fast', () => {
    const young: RunningSpec = { ranMs: 20_000, bytesRead: 0.02 * size, node: 'slow' };
    expect([outrun(young, false), outrun(young, true)]).toEqual([[], []]);
    const even: RunningSpec = { ranMs: 90_000, bytesRead: 0.8 * size, node: 'slow' };
    expect([outrun(even, false), outrun(even, true)]).toEqual([[], []]);
  });

  it('goes by the last three tasks, whatever was before', () => {
    const tasks = [
      ...times(5, { doneMs: 500_000, node: 'mended' }),
      ...times(3, { doneMs: 100_000, node: 'mended' }),
    ];
    expect(slowNodesBy(viewOf([...done, ...tasks]), 2)).toEqual([]);
  });

  it('is the same from tick to tick as it is from all that has finished, whoever finishes where', () => {
    const nodes = ['a', 'b', 'c', 'd', 'b', 'a', 'c', 'c', 'c', 'a', 'd', 'b', 'd'];
    const specs = nodes.map((node, task) => ({ doneMs: 100_000 + 7_000 * ((task * 5) % 11), node }));
    const all = viewOf(specs);
    const { state } = viewOf(specs.slice(0, 1));
    for (const [place, task] of (all.state.stages[0]?.tasks ?? []).entries()) {
      const [stage] = state.stages;
      const [winner] = task.attempts;
      if (place > 0 && stage !== undefined && winner !== undefined)
        recordFinish(stage.statistics, state.nodes, task, winner);
      expect(nodeSlowdowns({ ...all, state })).toEqual(nodeSlowdowns(viewOf(specs.slice(0, place + 1))));
    }
    expect(nodeSlowdowns({ ...all, state }).size).toBe(4);
  });

  it('measures bytes, not tasks', () => {
    const big = times(2, { bytes: 10 * size, doneMs: 1_000_000, node: 'big' });
    expect(nodeSlowdowns(viewOf([...done, ...big])).get('big')).toBeCloseTo(1, 9);
  });

  it('shows a spell once two attempts of a node have slowed down', () => {
    const slowed = (node: string): RunningSpec => ({
      ranMs: 60_000,
      bytesRead: 0.52 * size,
      node,
      before: [
        [50_000, 0.5 * size],
        [55_000, 0.51 * size],
      ],
    });
    const fast: RunningSpec = { ...slowed('half'), bytesRead: 0.6 * size };
    const view = viewOf([
      ...done,
      { running: [slowed('spell')] },
      { running: [slowed('spell')] },
      { running: [slowed('alone')] },
      { running: [slowed('half')] },
      { running: [fast] },
    ]);
    expect(nodesInSpell(view, 2, 2)).toEqual(['spell']);
    expect(slowNodesBy(view, 2)).toEqual([]);
  });
});

describe('nodes that outrider declines for tasks that wait', () => {
  const slow = [
    ...times(3, { doneMs: 300_000, node: 'slow' }),
    ...times(3, { doneMs: 900_000, node: 'slower' }),
  ];
  const nodes = ['a', 'b'].flatMap((node) => times(3, { doneMs: 100_000, node }));
  const declined = (waiting: number): readonly string[] | undefined =>
    outrider.declinedNodes?.(viewOf([...done, ...nodes, ...slow, ...times(waiting, {})], { free: 10 }));

  it('are those on which a task would outlast all the waves that are left', () => {
    expect(declined(10)).toEqual(['slower', 'slow']);
    expect(declined(30)).toEqual(['slower']);
    expect(declined(90)).toEqual([]);
  });

  // Of 60 nodes with two tasks each, 2.4 have two slow ones by chance where a fifth of all tasks is slow; with three each 0.5.
  it('are none that chance makes look slow, where many a task takes as long on any node', () => {
    const nodesWith = (slowOn: (node: number, task: number) => boolean, tasks: number) =>
      Array.from({ length: 60 }, (_, node) =>
        Array.from({ length: tasks }, (_, task) => ({
          doneMs: slowOn(node, task) ? 250_000 : 100_000,
          node: `n${node}`,
        })),
      ).flat();
    const declinedOf = (specs: readonly TaskSpec[]) =>
      outrider.declinedNodes?.(viewOf([...specs, {}], { free: 10 }));
    expect(declinedOf(nodesWith((node, task) => node === 7 || (node % 3 === 0 && task === 0), 2))).toEqual(
      [],
    );
    expect(declinedOf(nodesWith((node, task) => node === 7 || (node % 3 === 0 && task === 0), 3))).toEqual([
      'n7',
    ]);
    // Where few are slow, two tell.
    expect(declinedOf(nodesWith((node) => node === 7, 2))).toEqual(['n7']);
  });

  it('are none where nothing waits, and at most half of all', () => {
    expect(declined(0)).toEqual([]);
    const mostly = viewOf([...times(20, { doneMs: 100_000, node: 'only' }), ...slow, {}], { free: 10 });
    expect(outrider.declinedNodes?.(mostly)).toEqual(['slower']);
  });
});
