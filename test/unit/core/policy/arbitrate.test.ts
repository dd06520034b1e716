import { describe, expect, it } from 'vitest';
import { dispose } from '../../../../src/core/policy/arbitrate.ts';
import { launchOwed } from '../../../../src/core/policy/launch-owed.ts';
import { openAccount } from '../../../../src/core/policy/spend-slots.ts';
import type { Account, Terms } from '../../../../src/core/policy/account.ts';
import type { PolicyView, Proposal } from '../../../../src/core/policy/policy-set.ts';
import { type RunningSpec, times, type TaskSpec, viewOf } from '../../../support/policy-views.ts';

const facts = { leftMs: 5 };
const one: TaskSpec = { running: [{ ranMs: 10, bytesRead: 1, node: 'a' }] };
const two: TaskSpec = {
  running: [
    { ranMs: 10, bytesRead: 1, node: 'a' },
    { ranMs: 10, bytesRead: 1, node: 'b' },
  ],
};
const three: TaskSpec = { running: [...(two.running ?? []), { ranMs: 10, bytesRead: 1, node: 'c' }] };

function accountOf(view: PolicyView, terms: Partial<Terms> = {}): Account {
  return openAccount({ ...view.state }, view, {
    room: 100,
    copyCap: 100,
    killFreesSlot: false,
    isReady: () => true,
    ...terms,
  });
}

/** Proposals by task and kind, the first with the largest gain. */
function proposals(
  view: PolicyView,
  wanted: readonly (readonly ['backup' | 'restart' | 'prune', number, number?, (readonly string[])?])[],
): Proposal[] {
  return wanted.flatMap(([kind, index, number = 0, avoidNodes = []], place): Proposal[] => {
    const task = view.state.stages[0]?.tasks[index];
    const attempt = task?.attempts[number];
    if (task === undefined || attempt === undefined) return [];
    const common = { task, gainMs: 100 - place, facts };
    if (kind === 'backup') return [{ kind, ...common, urgent: false, avoidNodes }];
    return kind === 'restart'
      ? [{ kind, ...common, attempt, lossMs: 0, avoidNodes }]
      : [{ kind, ...common, attempt }];
  });
}

const summary = ({ decisions, refusals }: Account): string[] => [
  ...decisions.map((each) =>
    each.kind === 'launch' || each.kind === 'cancel'
      ? `${each.kind} ${each.attemptId} ${each.reason}`
      : each.kind,
  ),
  ...refusals.map(({ taskId, reason }) => `refuse ${taskId} ${reason}`),
];

describe('the arbiter', () => {
  it('backs a task up so many times in its life and no more, whatever became of its backups', () => {
    const backedUp = (backups: number): string[] => {
      const ended = Array.from({ length: backups + 1 }, () => ({ ranMs: 10, bytesRead: 1, node: 'a' }));
      const view = viewOf([{ running: ended }], { config: { backupsPerTask: 3 } });
      const account = accountOf(view);
      // Nothing but the original runs still.
      for (const task of account.live.keys()) account.live.set(task, 1);
      dispose(account, proposals(view, [['backup', 0]]));
      return summary(account);
    };
    expect(backedUp(2)).toEqual(['launch map/0/3 backup']);
    expect(backedUp(3)).toEqual(['refuse map/0 copy-limit']);
  });

  it('counts backups that it told to stop before they began, and not those that were given up in the queue', () => {
    const after = (state: 'cancelled' | 'lost'): string[] => {
      const view = viewOf(
        [{ running: Array.from({ length: 4 }, () => ({ ranMs: 10, bytesRead: 1, node: 'a' })) }],
        {
          config: { backupsPerTask: 3 },
        },
      );
      for (const each of view.state.attempts.values()) {
        if (each.number === 0) continue;
        each.state = state;
        delete each.claimedAt;
      }
      const account = accountOf(view);
      for (const task of account.live.keys()) account.live.set(task, 1);
      dispose(account, proposals(view, [['backup', 0]]));
      return summary(account);
    };
    expect(after('cancelled')).toEqual(['refuse map/0 copy-limit']);
    expect(after('lost')).toEqual(['launch map/0/4 backup']);
  });

  it('gives slots to the largest gains and counts what was short', () => {
    const view = viewOf(times(4, one), { free: 2 });
    const account = accountOf(view);
    dispose(
      account,
      proposals(view, [
        ['backup', 3],
        ['backup', 1],
        ['backup', 0],
        ['backup', 2],
      ]).toReversed(),
    );
    expect(summary(account)).toEqual([
      'launch map/3/1 backup',
      'launch map/1/1 backup',
      'refuse map/0 no-slot',
      'refuse map/2 no-slot',
    ]);
    expect(account.slotsShort).toBe(2);
    expect(account.decisions[0]).toMatchObject({ facts: { leftMs: 5 } });
  });

  it('leaves a slot to each task that waits, ready or not, before copies that go after them', () => {
    const wanted = (free: number): string[] => {
      const view = viewOf([one, one, {}], { free });
      const account = accountOf(view);
      dispose(
        account,
        proposals(view, [
          ['backup', 0],
          ['backup', 1],
        ]),
      );
      return summary(account);
    };
    expect(wanted(1)).toEqual(['refuse map/0 no-slot', 'refuse map/1 no-slot']);
    expect(wanted(2)).toEqual(['launch map/0/1 backup', 'refuse map/1 no-slot']);
    expect(wanted(3)).toEqual(['launch map/0/1 backup', 'launch map/1/1 backup']);
  });

  it('risks no more slot time of a stage than a quarter of what its tasks have taken', () => {
    // 1,000 s of finished tasks, 400 s of running ones, of which a second copy has taken 100 s already: 250 s are left.
    const slow: RunningSpec = { ranMs: 150_000, bytesRead: 1, node: 'a' };
    const copied: TaskSpec = {
      running: [
        { ...slow, ranMs: 100_000 },
        { ...slow, ranMs: 100_000 },
      ],
    };
    const view = viewOf([
      copied,
      { running: [slow] },
      { running: [slow] },
      ...times(10, { doneMs: 100_000 }),
    ]);
    const risking = (lossMs: number): string[] => {
      const account = accountOf(view);
      dispose(
        account,
        proposals(view, [
          ['restart', 1],
          ['backup', 2],
        ]).map((each) => ({ ...each, lossMs })),
      );
      return summary(account);
    };
    expect(risking(125_000)).toEqual([
      'cancel map/1/0 restarted',
      'launch map/1/1 restart',
      'launch map/2/1 backup',
    ]);
    expect(risking(125_001)).toEqual([
      'cancel map/1/0 restarted',
      'launch map/1/1 restart',
      'refuse map/2 loss-limit',
    ]);
    expect(risking(250_001)).toEqual(['refuse map/1 loss-limit', 'refuse map/2 loss-limit']);
  });

  it('keeps to the cap on copies, those running included', () => {
    const view = viewOf([two, one, one]);
    const account = accountOf(view, { copyCap: 2 });
    dispose(
      account,
      proposals(view, [
        ['backup', 1],
        ['backup', 2],
      ]),
    );
    expect(summary(account)).toEqual(['launch map/1/1 backup', 'refuse map/2 copy-cap']);
  });

  it('allows three copies of a task', () => {
    const view = viewOf([two, three]);
    const account = accountOf(view);
    dispose(
      account,
      proposals(view, [
        ['backup', 0],
        ['backup', 0],
        ['backup', 1],
        ['restart', 1],
      ]),
    );
    expect(summary(account)).toEqual([
      'launch map/0/2 backup',
      'cancel map/1/0 restarted',
      'launch map/1/3 restart',
      'refuse map/0 copy-limit',
      'refuse map/1 copy-limit',
    ]);
  });

  it('never prunes the last live copy', () => {
    const view = viewOf([one, three]);
    const account = accountOf(view);
    dispose(
      account,
      proposals(view, [
        ['prune', 0],
        ['prune', 1, 0],
        ['prune', 1, 1],
        ['prune', 1, 2],
      ]),
    );
    expect(summary(account)).toEqual([
      'cancel map/1/0 pruned',
      'cancel map/1/1 pruned',
      'refuse map/0 last-live-copy',
      'refuse map/1 last-live-copy',
    ]);
  });

  it('restarts by a cancel and a launch together or not at all', () => {
    const view = viewOf([one, one], { free: 1 });
    const account = accountOf(view);
    dispose(
      account,
      proposals(view, [
        ['restart', 0],
        ['restart', 1],
      ]),
    );
    expect(summary(account)).toEqual([
      'cancel map/0/0 restarted',
      'launch map/0/1 restart',
      'refuse map/1 no-slot',
    ]);
    const full = accountOf(view, { room: 1 });
    dispose(full, proposals(view, [['restart', 0]]));
    expect(summary(full)).toEqual(['refuse map/0 tick-full']);
  });

  it('restarts without a free slot where a kill frees one', () => {
    const view = viewOf([one], { free: 0 });
    const account = accountOf(view, { killFreesSlot: true });
    dispose(account, proposals(view, [['restart', 0]]));
    expect(summary(account)).toEqual(['cancel map/0/0 restarted', 'launch map/0/1 restart']);
  });

  it('waits where only nodes to be avoided are free, and names those that are', () => {
    const view = viewOf([one, one]);
    const slow = proposals(view, [
      ['backup', 0, 0, ['x', 'y']],
      ['backup', 1, 0, ['x', 'y']],
    ]);
    const waiting = accountOf(view, { freeNodes: new Map([['x', 2]]) });
    dispose(waiting, slow);
    expect(summary(waiting)).toEqual(['refuse map/0 slow-node', 'refuse map/1 slow-node']);
    const account = accountOf(view, {
      freeNodes: new Map([
        ['x', 1],
        ['fast', 1],
      ]),
    });
    dispose(account, slow);
    expect(summary(account)).toEqual(['launch map/0/1 backup', 'refuse map/1 slow-node']);
    expect(account.decisions[0]).toMatchObject({ avoidNodes: ['x'] });
  });

  it('leaves alone what is backing off or has ended', () => {
    const view = viewOf([one, { doneMs: 5 }]);
    const account = accountOf(view, { isReady: () => false });
    dispose(
      account,
      proposals(view, [
        ['backup', 0],
        ['backup', 1],
      ]),
    );
    expect(summary(account)).toEqual(['refuse map/0 backing-off', 'refuse map/1 task-done']);
  });

  it('logs why a slow task is left alone', () => {
    const view = viewOf([one]);
    const task = view.state.stages[0]?.tasks[0];
    const account = accountOf(view);
    if (task !== undefined)
      dispose(account, [{ kind: 'decline', task, reason: 'input-explained', gainMs: 0, facts }]);
    expect(account.refusals).toEqual([
      { kind: 'refuse', taskId: 'map/0', reason: 'input-explained', facts: { leftMs: 5 } },
    ]);
  });

  it('numbers owed launches after copies of the same tick', () => {
    const view = viewOf([one], { free: 3 });
    const account = accountOf(view);
    dispose(account, proposals(view, [['backup', 0]]));
    const task = view.state.stages[0]?.tasks[0];
    launchOwed(account, () => (task === undefined ? [] : [{ task, reason: 'retry' }]));
    expect(summary(account)).toEqual(['launch map/0/1 backup', 'launch map/0/2 retry']);
  });

  it('does not restart where the only place for it is a node to be avoided', () => {
    const view = viewOf([one], { free: 0 });
    const account = accountOf(view, { killFreesSlot: true, freeNodes: new Map() });
    dispose(account, proposals(view, [['restart', 0, 0, ['a']]]));
    expect(summary(account)).toEqual(['refuse map/0 slow-node']);
    const inPlace = accountOf(view, { killFreesSlot: true, freeNodes: new Map() });
    dispose(inPlace, proposals(view, [['restart', 0, 0, ['b']]]));
    expect(summary(inPlace)).toEqual(['cancel map/0/0 restarted', 'launch map/0/1 restart']);
  });

  it('keeps owed launches off declined nodes, but not where nothing runs', () => {
    const owed = (view: PolicyView, index: number) => () => {
      const task = view.state.stages[0]?.tasks[index];
      return task === undefined ? [] : [{ task, reason: 'first' as const }];
    };
    const busy = viewOf([one, {}], { free: 1 });
    const waiting = accountOf(busy, { freeNodes: new Map([['slow', 1]]) });
    launchOwed(waiting, owed(busy, 1), ['slow']);
    expect(summary(waiting)).toEqual(['refuse map/1 slow-node']);
    const idle = viewOf([{}], { free: 1 });
    const begun = accountOf(idle, { freeNodes: new Map([['slow', 1]]) });
    launchOwed(begun, owed(idle, 0), ['slow']);
    expect(summary(begun)).toEqual(['launch map/0/0 first']);
  });
});
