import { describe, expect, it } from 'vitest';
import {
  dispose,
  launchOwed,
  type Ledger,
  openLedger,
  type Terms,
} from '../../../../src/core/policy/arbitrate.ts';
import type { PolicyView, Proposal } from '../../../../src/core/policy/policy-set.ts';
import { times, type TaskSpec, viewOf } from '../../../support/policy-views.ts';

const facts = { leftMs: 5 };
const one: TaskSpec = { running: [{ ranMs: 10, bytesRead: 1, node: 'a' }] };
const two: TaskSpec = {
  running: [
    { ranMs: 10, bytesRead: 1, node: 'a' },
    { ranMs: 10, bytesRead: 1, node: 'b' },
  ],
};
const three: TaskSpec = { running: [...(two.running ?? []), { ranMs: 10, bytesRead: 1, node: 'c' }] };

function ledgerOf(view: PolicyView, terms: Partial<Terms> = {}): Ledger {
  return openLedger({ ...view.state }, view, {
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
    return kind === 'restart' ? [{ kind, ...common, attempt, avoidNodes }] : [{ kind, ...common, attempt }];
  });
}

const summary = ({ decisions, refusals }: Ledger): string[] => [
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
      const ledger = ledgerOf(view);
      // Nothing but the original runs still.
      for (const task of ledger.live.keys()) ledger.live.set(task, 1);
      dispose(ledger, proposals(view, [['backup', 0]]));
      return summary(ledger);
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
      const ledger = ledgerOf(view);
      for (const task of ledger.live.keys()) ledger.live.set(task, 1);
      dispose(ledger, proposals(view, [['backup', 0]]));
      return summary(ledger);
    };
    expect(after('cancelled')).toEqual(['refuse map/0 copy-limit']);
    expect(after('lost')).toEqual(['launch map/0/4 backup']);
  });

  it('gives slots to the largest gains and counts what was short', () => {
    const view = viewOf(times(4, one), { free: 2 });
    const ledger = ledgerOf(view);
    dispose(
      ledger,
      proposals(view, [
        ['backup', 3],
        ['backup', 1],
        ['backup', 0],
        ['backup', 2],
      ]).toReversed(),
    );
    expect(summary(ledger)).toEqual([
      'launch map/3/1 backup',
      'launch map/1/1 backup',
      'refuse map/0 no-slot',
      'refuse map/2 no-slot',
    ]);
    expect(ledger.slotsShort).toBe(2);
    expect(ledger.decisions[0]).toMatchObject({ facts: { leftMs: 5 } });
  });

  it('keeps to the cap on copies, those running included', () => {
    const view = viewOf([two, one, one]);
    const ledger = ledgerOf(view, { copyCap: 2 });
    dispose(
      ledger,
      proposals(view, [
        ['backup', 1],
        ['backup', 2],
      ]),
    );
    expect(summary(ledger)).toEqual(['launch map/1/1 backup', 'refuse map/2 copy-cap']);
  });

  it('allows three copies of a task', () => {
    const view = viewOf([two, three]);
    const ledger = ledgerOf(view);
    dispose(
      ledger,
      proposals(view, [
        ['backup', 0],
        ['backup', 0],
        ['backup', 1],
        ['restart', 1],
      ]),
    );
    expect(summary(ledger)).toEqual([
      'launch map/0/2 backup',
      'cancel map/1/0 restarted',
      'launch map/1/3 restart',
      'refuse map/0 copy-limit',
      'refuse map/1 copy-limit',
    ]);
  });

  it('never prunes the last live copy', () => {
    const view = viewOf([one, three]);
    const ledger = ledgerOf(view);
    dispose(
      ledger,
      proposals(view, [
        ['prune', 0],
        ['prune', 1, 0],
        ['prune', 1, 1],
        ['prune', 1, 2],
      ]),
    );
    expect(summary(ledger)).toEqual([
      'cancel map/1/0 pruned',
      'cancel map/1/1 pruned',
      'refuse map/0 last-live-copy',
      'refuse map/1 last-live-copy',
    ]);
  });

  it('restarts by a cancel and a launch together or not at all', () => {
    const view = viewOf([one, one], { free: 1 });
    const ledger = ledgerOf(view);
    dispose(
      ledger,
      proposals(view, [
        ['restart', 0],
        ['restart', 1],
      ]),
    );
    expect(summary(ledger)).toEqual([
      'cancel map/0/0 restarted',
      'launch map/0/1 restart',
      'refuse map/1 no-slot',
    ]);
    const full = ledgerOf(view, { room: 1 });
    dispose(full, proposals(view, [['restart', 0]]));
    expect(summary(full)).toEqual(['refuse map/0 tick-full']);
  });

  it('restarts without a free slot where a kill frees one', () => {
    const view = viewOf([one], { free: 0 });
    const ledger = ledgerOf(view, { killFreesSlot: true });
    dispose(ledger, proposals(view, [['restart', 0]]));
    expect(summary(ledger)).toEqual(['cancel map/0/0 restarted', 'launch map/0/1 restart']);
  });

  it('waits where only nodes to be avoided are free, and names those that are', () => {
    const view = viewOf([one, one]);
    const slow = proposals(view, [
      ['backup', 0, 0, ['x', 'y']],
      ['backup', 1, 0, ['x', 'y']],
    ]);
    const waiting = ledgerOf(view, { freeNodes: new Map([['x', 2]]) });
    dispose(waiting, slow);
    expect(summary(waiting)).toEqual(['refuse map/0 slow-node', 'refuse map/1 slow-node']);
    const ledger = ledgerOf(view, {
      freeNodes: new Map([
        ['x', 1],
        ['fast', 1],
      ]),
    });
    dispose(ledger, slow);
    expect(summary(ledger)).toEqual(['launch map/0/1 backup', 'refuse map/1 slow-node']);
    expect(ledger.decisions[0]).toMatchObject({ avoidNodes: ['x'] });
  });

  it('leaves alone what is backing off or has ended', () => {
    const view = viewOf([one, { doneMs: 5 }]);
    const ledger = ledgerOf(view, { isReady: () => false });
    dispose(
      ledger,
      proposals(view, [
        ['backup', 0],
        ['backup', 1],
      ]),
    );
    expect(summary(ledger)).toEqual(['refuse map/0 backing-off', 'refuse map/1 task-done']);
  });

  it('logs why a slow task is left alone', () => {
    const view = viewOf([one]);
    const task = view.state.stages[0]?.tasks[0];
    const ledger = ledgerOf(view);
    if (task !== undefined)
      dispose(ledger, [{ kind: 'decline', task, reason: 'input-explained', gainMs: 0, facts }]);
    expect(ledger.refusals).toEqual([
      { kind: 'refuse', taskId: 'map/0', reason: 'input-explained', facts: { leftMs: 5 } },
    ]);
  });

  it('numbers owed launches after copies of the same tick', () => {
    const view = viewOf([one], { free: 3 });
    const ledger = ledgerOf(view);
    dispose(ledger, proposals(view, [['backup', 0]]));
    const task = view.state.stages[0]?.tasks[0];
    launchOwed(ledger, () => (task === undefined ? [] : [{ task, reason: 'retry' }]));
    expect(summary(ledger)).toEqual(['launch map/0/1 backup', 'launch map/0/2 retry']);
  });

  it('does not restart where the only place for it is a node to be avoided', () => {
    const view = viewOf([one], { free: 0 });
    const ledger = ledgerOf(view, { killFreesSlot: true, freeNodes: new Map() });
    dispose(ledger, proposals(view, [['restart', 0, 0, ['a']]]));
    expect(summary(ledger)).toEqual(['refuse map/0 slow-node']);
    const inPlace = ledgerOf(view, { killFreesSlot: true, freeNodes: new Map() });
    dispose(inPlace, proposals(view, [['restart', 0, 0, ['b']]]));
    expect(summary(inPlace)).toEqual(['cancel map/0/0 restarted', 'launch map/0/1 restart']);
  });

  it('keeps owed launches off declined nodes, but not where nothing runs', () => {
    const owed = (view: PolicyView, index: number) => () => {
      const task = view.state.stages[0]?.tasks[index];
      return task === undefined ? [] : [{ task, reason: 'first' as const }];
    };
    const busy = viewOf([one, {}], { free: 1 });
    const waiting = ledgerOf(busy, { freeNodes: new Map([['slow', 1]]) });
    launchOwed(waiting, owed(busy, 1), ['slow']);
    expect(summary(waiting)).toEqual(['refuse map/1 slow-node']);
    const idle = viewOf([{}], { free: 1 });
    const begun = ledgerOf(idle, { freeNodes: new Map([['slow', 1]]) });
    launchOwed(begun, owed(idle, 0), ['slow']);
    expect(summary(begun)).toEqual(['launch map/0/0 first']);
  });
});
