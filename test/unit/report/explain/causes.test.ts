import { describe, expect, it } from 'vitest';
import type { AttemptRecord } from '../../../../src/contracts/records.ts';
import { causeSentences, failureText } from '../../../../src/report/explain/cause-sentences.ts';
import { attemptRuns } from '../../../../src/report/explain/attempt-runs.ts';
import { causesOfSlowness } from '../../../../src/report/explain/slowness-causes.ts';
import { usualOf } from '../../../../src/report/explain/usual-run.ts';
import { attempt, explained, told as at, usualTasks } from './explained-attempts.ts';

/** Kinds of causes, and the time of each; waits of 100 ms, which every attempt has, are left out. */
const causesOf = (...of: Parameters<typeof explained>) =>
  explained(...of)
    .causes.filter(({ kind, ms }) => kind !== 'host-wait' || ms !== 100)
    .map(({ kind, ms }) => [kind, ms]);

const siblings = usualTasks(8);
const slow = { ended: 16_100 };

describe('the cause of a slow attempt', () => {
  it('is none where it took as long as others, and where too few have won to say', () => {
    expect(causesOf(8, [...siblings, attempt('map/8/0', { ended: 3_000 })])).toEqual([]);
    expect(causesOf(8, [...siblings.slice(0, 1), attempt('map/8/0', slow)])).toEqual([]);
  });

  it('asks what others tell of the attempts that were slow alone', () => {
    const runs = attemptRuns([...siblings, attempt('map/8/0', slow)], { waitedUntil: 0 });
    const asked: string[] = [];
    const ask = (id: string) => ({ othersCount: asked.push(id) });
    for (const run of runs) causesOfSlowness(run, usualOf(runs), () => ask(run.attempt.attemptId));
    expect(asked).toEqual(['map/8/0']);
  });

  it('is more input where it read and took eight times as much', () => {
    const big = attempt('map/8/0', { ...slow, read: 8_000, total: 8_000, phases: { compute: 15_400 } });
    const all = [...siblings, big];
    expect(causesOf(8, all)).toEqual([['more-input', 14_000]]);
    expect(causeSentences(explained(8, all))).toEqual([
      'map/8/0 had more to read than its siblings: 7.8 KiB against 1000 B. That explains 14.0s of 16.0s.',
    ]);
  });

  it('is more records where its input is packed, and has no more bytes than others', () => {
    const packed = attempt('map/8/0', { ...slow, records: 8, phases: { compute: 15_400 } });
    expect(causesOf(8, [...siblings, packed])).toEqual([['more-input', 14_000]]);
    expect(causeSentences(explained(8, [...siblings, packed]))).toEqual([
      'map/8/0 had more to read than its siblings: 8 records against 1. That explains 14.0s of 16.0s.',
    ]);
  });

  it('is more input in part where it took far longer than that explains', () => {
    const big = attempt('map/8/0', { ...slow, read: 2_000, total: 2_000, phases: { read: 14_000 } });
    expect(causesOf(8, [...siblings, big])).toEqual([
      ['more-input', 2_000],
      ['slow-read', 12_000],
    ]);
  });

  it('is more input for no more than in proportion, however slow those are that read as much', () => {
    const half = { read: 1_500, total: 1_500 };
    const late = { ...half, ended: 9_100, phases: { read: 7_400 } };
    const all = [...siblings, ...[8, 9, 10, 11].map((task) => attempt(`map/${String(task)}/0`, late))];
    expect(causesOf(8, all)).toEqual([
      ['more-input', 1_000],
      ['slow-read', 6_000],
    ]);
    expect(causeSentences(explained(8, all))).toEqual([
      'map/8/0 had more to read than its siblings: 1.5 KiB against 1000 B. That explains 1.0s of 9.0s.',
      'map/8/0 read slowly: 7.4s against 0.5s; in all, it took 3.0 times what is usual for its input (9.0s against 3.0s).',
    ]);
  });

  it('is more input up to in proportion where it reads far more than those whose sizes tell what a byte costs', () => {
    // A quarter to read and nearly as long: by that line eight times as much would take 3.9 s.
    const small = [9, 10, 11].map((task) =>
      attempt(`map/${String(task)}/0`, { read: 250, total: 250, ended: 1_900 }),
    );
    const big = attempt('map/8/0', { read: 8_000, total: 8_000, ended: 15_600, phases: { compute: 14_900 } });
    expect(causesOf(8, [...siblings.slice(0, 5), ...small, big])).toEqual([['more-input', 13_500]]);
  });

  it('is not more input where it read more and took as long as others', () => {
    expect(causesOf(8, [...siblings, attempt('map/8/0', { read: 8_000, total: 8_000 })])).toEqual([]);
  });

  it('is its node where its start, which reads nothing, was slowed down as all else', () => {
    const everywhere = { init: 1_600, read: 2_400, compute: 11_200, write: 800 };
    const all = [
      ...siblings,
      attempt('map/8/0', { ...slow, phases: everywhere, node: 'x/[$LATEST]0123456789abcdef' }),
    ];
    expect(causesOf(8, all)).toEqual([['slow-node', 14_000]]);
    expect(explained(8, all).causes.at(-1)).toMatchObject({ evidence: ['every-phase'] });
    expect(causeSentences(explained(8, all))).toEqual([
      'map/8/0 ran on a slow node (0123456789a…): it took 8.0 times what is usual for its input (16.0s against 2.0s); its start, which reads no input, took 8.0 times the usual, and the rest 8.0 times.',
    ]);
  });

  it('is not its node where less than a third of a second was lost', () => {
    const short = (task: number, times: number): AttemptRecord =>
      attempt(`map/${String(task)}/0`, {
        ended: 100 + 200 * times,
        phases: { init: 20 * times, read: 20 * times, compute: 140 * times, write: 20 * times },
      });
    const usual = Array.from({ length: 8 }, (_, task) => short(task, 1));
    expect(causesOf(8, [...usual, short(8, 2.2)])).toEqual([['slow-compute', 240]]);
    expect(causesOf(8, [...usual, short(8, 3)])).toEqual([['slow-node', 400]]);
  });

  it('is not its node where its start and its reads waited for storage, and it computed as others do', () => {
    const waited = { init: 7_200, read: 7_300 };
    expect(causesOf(8, [...siblings, attempt('map/8/0', { ...slow, phases: waited })])).toEqual([
      ['unexplained', 14_000],
    ]);
    // Nor where a start that is over in no time took so much longer than all else did.
    const began = { init: 12_000, read: 900, compute: 2_800, write: 300 };
    expect(causesOf(8, [...siblings, attempt('map/8/0', { ...slow, phases: began })])).toEqual([
      ['slow-start', 14_000],
    ]);
  });

  it('is its node where other tasks were slow there, and not where they were not', () => {
    const compute = { compute: 15_400 };
    const victim = attempt('map/8/0', { ...slow, phases: compute, node: 'n' });
    const slowToo = attempt('map/7/0', { ended: 12_100, node: 'n', phases: compute });
    const all = [...siblings.slice(0, 7), slowToo, victim];
    expect(causesOf(8, all)).toEqual([['slow-node', 14_000]]);
    expect(explained(8, all).causes.at(-1)).toMatchObject({
      evidence: ['other-tasks'],
      facts: { otherTasks: 1, otherTasksSlowness: 6 },
    });
    const ordinary = attempt('map/7/0', { node: 'n' });
    expect(causesOf(8, [...siblings.slice(0, 7), ordinary, victim])).toEqual([['slow-compute', 14_000]]);
    // Nor where it computed as usual itself, and waited for storage there as the other did.
    const beside = (phases: object) =>
      causesOf(8, [...siblings.slice(0, 7), slowToo, attempt('map/8/0', { ...slow, phases, node: 'n' })]);
    expect(beside({ init: 14_200 })).toEqual([['slow-start', 14_000]]);
    expect(beside({ read: 13_300, compute: 2_400 })).toEqual([['slow-read', 14_000]]);
  });

  it('is one phase where nothing shows the node', () => {
    const of = (phases: object) => causesOf(8, [...siblings, attempt('map/8/0', { ...slow, phases })]);
    expect(of({ read: 14_300 })).toEqual([['slow-read', 14_000]]);
    expect(of({ write: 14_100 })).toEqual([['slow-write', 14_000]]);
    expect(of({ init: 14_200 })).toEqual([['slow-start', 14_000]]);
    expect(of({ compute: 15_400 })).toEqual([['slow-compute', 14_000]]);
    expect(of({ read: 7_300, compute: 8_400 })).toEqual([['unexplained', 14_000]]);
  });

  it('says of slow computing that it may be the records or the node', () => {
    const all = [...siblings, attempt('map/8/0', { ...slow, phases: { compute: 15_400 } })];
    expect(causeSentences(explained(8, all))).toEqual([
      'map/8/0 computed for long: 15.4s against 1.4s; in all, it took 8.0 times what is usual for its input (16.0s against 2.0s). Whether its records are dearer or its node was slow, the records do not tell.',
    ]);
  });

  it('is that its worker stood still where that took most of the time, whatever else speaks', () => {
    const compute = { compute: 15_400 };
    const slowToo = attempt('map/7/0', { ended: 12_100, node: 'n', phases: compute });
    const of = (stalled: number) => [
      ...siblings.slice(0, 7),
      slowToo,
      attempt('map/8/0', { ...slow, phases: compute, stalled, node: 'n' }),
    ];
    expect(causesOf(8, of(12_000))).toEqual([['stood-still', 14_000]]);
    expect(causeSentences(explained(8, of(12_000)))).toEqual([
      'The worker of map/8/0 (n) stood still for 12.0s, and went on: it took 8.0 times what is usual for its input (16.0s against 2.0s).',
    ]);
    expect(causesOf(8, of(6_000))).toEqual([['slow-node', 14_000]]);
  });

  /** Warm attempts of two quick nodes, with what the first attempt on either took. */
  const quick = (claimed: number, task: number, node: string, first = false): AttemptRecord =>
    attempt(`map/${String(task)}/0`, {
      ...{ claimed, node, ended: claimed + (first ? 400 : 150) },
      phases: first
        ? { init: 80, read: 60, compute: 160, write: 70 }
        : { init: 4, read: 16, compute: 92, write: 37 },
    });
  const quickNodes = [
    quick(100, 0, 'a', true),
    ...[1, 2, 3, 4].map((task) => quick(600 * task, task, 'a')),
    quick(100, 5, 'b', true),
    ...[6, 7].map((task) => quick(600 * task, task, 'b')),
  ];

  it('is its node where its first attempt there took long beside the first ones on other nodes', () => {
    const phases = { init: 1_052, read: 861, compute: 1_082, write: 339 };
    const all = [...quickNodes, attempt('map/8/0', { node: 'slow', ended: 4_300, phases })];
    expect(causesOf(8, all)).toEqual([['slow-node', 4_050]]);
    expect(explained(8, all).causes.at(-1)).toMatchObject({
      evidence: ['every-phase'],
      facts: { startFactor: 263, firstStartFactor: 13.15 },
    });
    expect(causeSentences(explained(8, all))).toEqual([
      'map/8/0 ran on a slow node (slow): it took 28 times what is usual for its input (4.2s against 0.2s); its start, which reads no input, took 13 times as long as that of first attempts on other nodes, and the rest 7.9 times.',
    ]);
    // A first attempt that took as long as first ones do, or not much longer, shows no node.
    const ordinary = { init: 150, read: 100, compute: 300, write: 120 };
    const cold = [...quickNodes, attempt('map/8/0', { node: 'new', ended: 800, phases: ordinary })];
    expect(causesOf(8, cold)).toEqual([['unexplained', 550]]);
  });

  it('is its node, and not that it stood still, where it was slowed down so much that its stops look like that', () => {
    const phases = { init: 1_052, read: 861, compute: 1_082, write: 339 };
    const first = { node: 'slow', ended: 4_300, phases, stalled: 2_600 };
    expect(causesOf(8, [...quickNodes, attempt('map/8/0', first)])).toEqual([['slow-node', 4_050]]);
    const later = {
      ...{ node: 'slow', launched: 4_900, ended: 8_000, stalled: 2_400 },
      phases: { init: 90, read: 700, compute: 1_400, write: 700 },
    };
    const both = [...quickNodes, attempt('map/8/0', first), attempt('map/9/0', later)];
    expect(causesOf(9, both)).toEqual([['slow-node', 2_850]]);
    // One pause is in one phase: it says so itself, also where that was the first attempt on its node.
    const paused = { node: 'new', ended: 4_300, stalled: 3_700 };
    for (const stood of [
      { init: 80, read: 3_760, compute: 160, write: 70 },
      { init: 80, read: 60, compute: 3_860, write: 70 },
      { init: 3_780, read: 60, compute: 160, write: 70 },
    ])
      expect(causesOf(8, [...quickNodes, attempt('map/8/0', { ...paused, phases: stood })])).toEqual([
        ['stood-still', 4_050],
      ]);
  });

  it('is its own work where it was as slow on another node', () => {
    const phases = { compute: 15_400 };
    const all = [
      ...siblings,
      attempt('map/8/0', { ...slow, phases }),
      attempt('map/8/1', { launched: 4_000, ended: 19_000, state: 'done', phases }),
    ];
    expect(causesOf(8, all)).toEqual([['own-work', 14_000]]);
  });
});

describe('what held a task up', () => {
  it('is the wait for its first launch, by what the log says of it', () => {
    const late = [...siblings, attempt('map/8/0', { launched: 5_000 })];
    const opened = at(0, 'stage-opened', 'map');
    expect(causesOf(8, late)).toEqual([]);
    expect(causesOf(8, late, [opened])).toEqual([['before-launch', 5_000]]);
    expect(causeSentences(explained(8, late, [opened]))[0]).toBe(
      '5.0s went by from the opening of its stage to the launch of map/8/0.',
    );
    const short = [opened, at(10, 'refused', 'map/6', { reason: 'no-slot' })];
    expect(causeSentences(explained(8, late, short))[0]).toBe(
      '5.0s went by from the opening of its stage to the launch of map/8/0, while the job had no slot free.',
    );
    const renewed = at(4_000, 'inputs-renewed', 'map', { times: 1 });
    expect(causeSentences(explained(8, late, [opened, renewed]))[0]).toBe(
      '5.0s went by from the opening of its stage to the launch of map/8/0, while what it reads was gone and was made again.',
    );
    expect(causeSentences(explained(8, late, [...short, renewed]))[0]).toBe(
      '5.0s went by from the opening of its stage to the launch of map/8/0, while the job had no slot free, or what it reads was gone and was made again.',
    );
    const elsewhere = [at(4_000, 'inputs-renewed', 'other'), at(6_000, 'inputs-renewed', 'map')];
    expect(causeSentences(explained(8, late, [opened, ...elsewhere]))[0]).toBe(
      '5.0s went by from the opening of its stage to the launch of map/8/0.',
    );
    // Of one before the stage, and one after the launch, nothing is told.
    const refused = [-10, 20, 30, 6_000].map((ms) =>
      at(ms, 'throttled', `map/${String(Math.abs(ms) % 7)}/0`),
    );
    expect(causeSentences(explained(8, late, [...short, ...refused]))[0]).toBe(
      "5.0s went by from the opening of its stage to the launch of map/8/0, while the job had no slot free: the host's limits had refused 2 launches, and fewer were tried.",
    );
  });

  it('tells what a host said without a full stop of its own', () => {
    const told = (message: string) =>
      failureText({ end: 'lost', failure: { cause: 'interrupted', message } });
    expect(told('Your Spot Task was interrupted.')).toBe(
      'was lost (interrupted: Your Spot Task was interrupted)',
    );
    expect(told('waiting for it...')).toBe('was lost (interrupted: waiting for it...)');
  });

  it('is an attempt before that was lost, whose failure it tells', () => {
    const failure = { cause: 'exited', message: 'its worker exited: killed' } as const;
    const all = [
      ...siblings,
      attempt('map/8/0', { state: 'lost', claimed: undefined, failure }),
      attempt('map/8/1', { launched: 6_000 }),
    ];
    expect(causesOf(8, all)).toEqual([['earlier-failed', 6_000]]);
    expect(causeSentences(explained(8, all))).toEqual([
      '6.0s went by before map/8/1 was launched, since map/8/0 was lost (exited: its worker exited: killed).',
    ]);
  });

  it('is an attempt that lagged, and why it did, where its copy won', () => {
    const stopped = {
      state: 'cancelled',
      order: 'cancel',
      ended: 6_100,
      read: 500,
      phases: { init: 1_600, read: 600, compute: 3_800, write: 0 },
    } as const;
    const all = [...siblings, attempt('map/8/0', stopped), attempt('map/8/1', { launched: 4_000 })];
    expect(causesOf(8, all)).toEqual([
      ['copied', 4_000],
      ['slow-node', undefined],
    ]);
    const [, node] = explained(8, all).causes;
    expect(node).toMatchObject({
      attemptId: 'map/8/0',
      evidence: ['every-phase', 'same-task'],
      facts: { slowness: 5.2, readShare: 0.5, startFactor: 8, elsewhereSlowness: 1 },
    });
    expect(explained(8, all).attempts.map(({ end }) => end)).toEqual(['stopped', 'won']);
  });

  it('is a launch that the host refused after it was tried, until it was made again, and not the time before it', () => {
    const opened = at(-5_000, 'stage-opened', 'map');
    const short = at(-4_000, 'refused', 'map/8', { reason: 'no-slot' });
    const events = [
      ...[opened, short, at(0, 'launched', 'map/8/0', { reason: 'first' }), at(500, 'throttled', 'map/8/0')],
      at(6_000, 'launched', 'map/8/0', { reason: 'first' }),
    ];
    const waited = [...siblings, attempt('map/8/0', { claimed: 7_000 })];
    expect(causeSentences(explained(8, waited, events))).toEqual([
      '5.0s went by from the opening of its stage to the launch of map/8/0, while the job had no slot free.',
      "map/8/0 waited 6.0s for its launch, which the host's limits refused 1 time, to be made again.",
    ]);
    expect(causesOf(8, waited, events)).toEqual([
      ['before-launch', 5_000],
      ['launch-refused', 6_000],
      ['host-wait', 1_000],
    ]);
    const lagged = attempt('map/8/0', { state: 'cancelled', order: 'cancel', claimed: 7_000, ended: 20_000 });
    const copied = [...siblings, lagged, attempt('map/8/1', { launched: 16_000 })];
    expect(causesOf(8, copied, events).slice(0, 3)).toEqual([
      ['before-launch', 5_000],
      ['copied', 16_000],
      ['launch-refused', undefined],
    ]);
    expect(causeSentences(explained(8, copied, events))[2]).toBe(
      "map/8/0 waited 6.0s for its launch, which the host's limits refused 1 time, to be made again.",
    );
  });

  it('is an attempt that failed and one that lagged after it, each by its name, where a copy of that won', () => {
    const failure = { cause: 'exited', message: 'its worker exited: killed' } as const;
    const all = [
      ...siblings,
      attempt('map/8/0', { state: 'lost', ended: 2_000, failure }),
      attempt('map/8/1', { launched: 3_000, state: 'cancelled', order: 'cancel', ended: 20_000 }),
      attempt('map/8/2', { launched: 16_000 }),
    ];
    expect(causeSentences(explained(8, all))[0]).toBe(
      '16.0s went by before its copy map/8/2 was launched, since map/8/0 was lost (exited: its worker exited: killed), and map/8/1 lagged.',
    );
  });

  it('is its wait for the host, which a node that ran before does not spend on a start', () => {
    const waited = (node: string) => [
      ...siblings,
      attempt('map/8/0', { launched: 2_200, claimed: 9_200, node }),
    ];
    expect(causesOf(8, waited('fresh'))).toEqual([['host-wait', 7_000]]);
    expect(causeSentences(explained(8, waited('fresh')))).toEqual([
      "map/8/0 waited 7.0s for its worker, in the host's queue or for its start: the job had not used it before.",
    ]);
    expect(causeSentences(explained(8, waited('node-map/0/0')))).toEqual([
      "map/8/0 waited 7.0s for its worker, which had run before: in the host's queue, not for a start.",
    ]);
  });

  it('is the tasks that rode before it in the same worker', () => {
    const all = [
      ...siblings.slice(0, 7),
      attempt('map/7/0', { invocation: 'pack', node: 'n' }),
      attempt('map/8/0', { invocation: 'pack', node: 'n', claimed: 2_150 }),
    ];
    expect(explained(8, all).causes.map(({ kind, ms }) => [kind, ms])).toEqual([
      ['ride', 2_100],
      ['host-wait', 50],
    ]);
  });
});
