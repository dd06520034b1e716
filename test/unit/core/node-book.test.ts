import { describe, expect, it } from 'vitest';
import { type JobId } from '../../../src/contracts/ids.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { blockedNodes, mergeBooks, type NodeBook, saysMore } from '../../../src/core/model/node-book.ts';
import { addAttempt, applyAttempt, applyResult, loseAttempt } from '../../../src/core/model/job-state.ts';
import { nodeSigns } from '../../../src/core/policy/node-signs.ts';
import { attempt, attemptRecord, failure, resultOf } from '../../support/job-states.ts';
import { jobOf, type TaskSpec } from '../../support/policy-views.ts';

const jobId = 'words-0123456789ab' as JobId;
const now = epochMs(10_000_000);
const minute = 60_000;

/** A node with attempts that took so many times the usual, one a minute, the last of them now; 0: one that died. */
const entry = (node: string, ...slowdowns: readonly number[]): NodeBook[number] => ({
  node,
  zone: 'z',
  signs: slowdowns.map((slowdown, place) => ({
    of: `${node}/${String(place)}`,
    at: epochMs(now - minute * (slowdowns.length - 1 - place)),
    ...(slowdown === 0 ? {} : { slowdown }),
  })),
});

const blocked = (book: NodeBook, at = now): unknown[] =>
  blockedNodes(book, at).map(({ node, reason, slowdown, attempts }) => [node, reason, slowdown, attempts]);

describe('the book of nodes', () => {
  it('takes the word of a clock that is ahead a little, and none that would not be old for hours', () => {
    const book = [entry('slow', 3, 2.5)];
    const before = (minutes: number): typeof now => epochMs(now - minutes * minute);
    expect(blocked(book, before(14))).toHaveLength(1);
    expect(mergeBooks([], book, before(14))).toEqual(book);
    expect(blocked(book, before(17))).toEqual([]);
    expect(mergeBooks(book, book, before(17))).toEqual([]);
  });

  it('blocks a node on which nothing was fast, and one where nothing ended well, with why', () => {
    const book = [
      entry('slow', 3, 2.5),
      entry('once', 9),
      entry('unlucky', 9, 1.1),
      entry('failing', 0, 0),
      entry('failed-once', 0, 1),
    ];
    expect(blocked(book)).toEqual([
      ['failing', 'failing', 1_000, 2],
      ['slow', 'slow', 2.5, 2],
    ]);
    const [sign] = entry('once', 9).signs;
    if (sign === undefined) throw new Error('no sign');
    const shown = { node: 'once', zone: 'z', signs: [{ ...sign, contrasted: true as const }] };
    expect(blocked([shown])).toEqual([['once', 'slow', 9, 1]]);
  });

  it('forgets in a quarter of an hour', () => {
    const book = [entry('slow', 3, 3)];
    expect(blocked(book, epochMs(now + 14 * minute))).toEqual([['slow', 'slow', 3, 2]]);
    expect(blocked(book, epochMs(now + 15 * minute))).toEqual([]);
    expect(mergeBooks(book, [], epochMs(now + 16 * minute))).toEqual([]);
  });

  it('comes to the same in any order and however often it is put together, and keeps little', () => {
    const slow = entry('slow', 3, 3, 1, 1, 4);
    const early = { ...slow, signs: slow.signs.slice(0, 2) };
    const [a, b] = [
      [early, entry('fast', 1, 1)],
      [slow, entry('bad', 5)],
    ];
    const both = mergeBooks(a, b, now);
    expect(both.map(({ node, signs }) => [node, signs.length])).toEqual([
      ['bad', 1],
      ['slow', 4],
    ]);
    expect(mergeBooks(b, mergeBooks(both, a, now), now)).toEqual(both);
    expect(blocked(both)).toEqual([]);
    expect([saysMore(both, a), saysMore(both, both)]).toEqual([true, false]);
    const many = Array.from({ length: 100 }, (_, place) => entry(`node-${String(place)}`, 3, 3));
    expect(mergeBooks(many, many, now)).toHaveLength(32);
  });
});

describe('what a job tells of its nodes', () => {
  const done = (doneMs: number, node: string, bytes = 1_000_000): TaskSpec => ({ doneMs, node, bytes });
  const told = (tasks: readonly TaskSpec[]): unknown[] =>
    blocked(nodeSigns(jobId, jobOf(tasks), now, new Set()), epochMs(20_000));

  it('is of those that are slow for their input, and not of those that read more', () => {
    const usual = [1, 2, 3, 4].flatMap((node) => [
      done(1_000, `n${String(node)}`),
      done(1_000, `n${String(node)}`),
    ]);
    expect(told([...usual, done(4_000, 'slow'), done(5_000, 'slow')])).toEqual([['slow', 'slow', 4, 2]]);
    const larger = [done(4_000, 'n5', 4_000_000), done(4_000, 'n5', 4_000_000)];
    expect(told([...usual, ...usual, ...larger])).toEqual([]);
  });

  it('is nothing of a node whose tasks read far more than all others, up to what is in proportion to these', () => {
    // Empty ones of a first wave took long to begin: the line through all would have 2.8 s for six times the size.
    const cold = ['a', 'b', 'c', 'd'].map((node) => done(1_000, node, 0));
    const usual = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((node) => done(1_300, node));
    const larger = (ms: number): TaskSpec[] => [done(ms, 'n', 6_000_000), done(ms, 'n', 6_000_000)];
    expect(told([...cold, ...usual, ...larger(8_900)])).toEqual([]);
    expect(told([...cold, ...usual, ...larger(23_400)])).toEqual([['n', 'slow', 3, 2]]);
  });

  it('is of the job, and of no node, where many are as slow', () => {
    const tasks = ['a', 'b', 'c', 'd', 'e'].flatMap((node) => [done(1_000, node), done(1_000, node)]);
    const slow = ['x', 'y', 'z'].flatMap((node) => [done(5_000, node), done(5_000, node)]);
    expect(told([...tasks, ...slow])).toEqual([]);
  });

  /** A job of five tasks of so long, the last of `copyMs`, one whose copy was stopped after `ranMs` with so much read. */
  const withStopped = (doneMs: number, copyMs: number, ranMs: number, bytesRead: number): unknown[] => {
    const state = jobOf([...['a', 'b', 'c', 'd'].map((node) => done(doneMs, node)), done(copyMs, 'e')]);
    const id = attempt('map/4/1');
    addAttempt(state, id, 'backup', epochMs(1_000));
    const progress = {
      bytesRead,
      bytesTotal: 1_000_000,
      recordsIn: 0,
      recordsOut: 0,
      phase: 'compute' as const,
      phaseMs: { init: 0, read: 0, compute: 0, write: 0 },
      peakMemoryBytes: 0,
    };
    const stoppedAt = 1_000 + ranMs;
    const stopped = attemptRecord(id, 'cancelled', stoppedAt, {
      claimedAt: epochMs(1_000),
      node: 'slow',
      progress,
    });
    applyAttempt(state, stopped, epochMs(stoppedAt));
    return blocked(nodeSigns(jobId, state, epochMs(20_000), new Set()), epochMs(20_000));
  };

  it('is of a node whose attempt was overtaken by a copy elsewhere, once; not where that was as slow', () => {
    expect(withStopped(1_000, 1_000, 500, 100_000)).toEqual([['slow', 'slow', 5, 1]]);
    expect(withStopped(1_000, 4_000, 500, 100_000)).toEqual([]);
  });

  it('is nothing of a copy that was stopped young: most of what it ran went to its start', () => {
    // Of 10 s, half a second is the start: after 0.7 s one of the usual speed has read a fiftieth.
    expect(withStopped(10_000, 10_000, 700, 21_053)).toEqual([]);
    expect(withStopped(10_000, 10_000, 4_999, 100_000)).toEqual([]);
    expect(withStopped(10_000, 10_000, 5_000, 100_000)).toEqual([['slow', 'slow', 5, 1]]);
  });

  it('leaves out nodes of which nothing suspicious is told, unless they are known', () => {
    const tasks = ['a', 'b', 'c', 'd'].map((node) => done(1_000, node));
    const state = jobOf([...tasks, done(1_000, 'e'), done(4_000, 'e')]);
    const told = (known: readonly string[]): unknown[] =>
      nodeSigns(jobId, state, now, new Set(known)).map(({ node, signs }) => [
        node,
        signs.map(({ slowdown }) => slowdown),
      ]);
    expect(told([])).toEqual([['e', [1, 4]]]);
    expect(told(['b', 'never-met'])).toEqual([
      ['b', [1]],
      ['e', [1, 4]],
    ]);
  });

  it('is nothing where an attempt was given up for its silence, until another has brought its result', () => {
    const state = jobOf([{ running: [{ ranMs: 1_000, bytesRead: 1, node: 'n' }] }]);
    loseAttempt(state, attempt('map/0/0'), epochMs(2_000));
    const told = (): unknown[] =>
      nodeSigns(jobId, state, now, new Set()).map(({ node, signs }) => [node, signs.length]);
    expect(told()).toEqual([]);
    addAttempt(state, attempt('map/0/1'), 'retry', epochMs(2_000));
    applyAttempt(state, attemptRecord('map/0/1', 'done', 3_000, { node: 'm' }), epochMs(3_000));
    applyResult(state, resultOf('map/0/1', 3_000), epochMs(3_000));
    expect(told()).toEqual([['n', 1]]);
  });

  it('is nothing where launches were declined or code failed', () => {
    const state = jobOf([done(1_000, 'a'), done(1_000, 'b'), done(1_000, 'c'), {}]);
    for (const [number, cause] of (['declined', 'user-code', 'user-code'] as const).entries()) {
      const id = `map/3/${String(number)}`;
      addAttempt(state, attempt(id), 'first', epochMs(1_000));
      const record = attemptRecord(id, cause === 'declined' ? 'lost' : 'failed', 2_000, {
        failure: failure(cause),
        node: 'n',
      });
      applyAttempt(state, record, epochMs(2_000));
    }
    expect(
      nodeSigns(jobId, state, epochMs(9_000), new Set(['a', 'b', 'c', 'n'])).map(({ node }) => node),
    ).toEqual(['a', 'b', 'c']);
  });
});
