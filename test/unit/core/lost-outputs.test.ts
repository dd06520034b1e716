import { beforeEach, describe, expect, it } from 'vitest';
import type { AttemptId } from '../../../src/contracts/ids.ts';
import type { LossKind } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { decideTick, type TickDecision } from '../../../src/core/decide-tick.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import {
  applyAttempt,
  applyReplica,
  applyResult,
  createJobState,
  stageAt,
  taskAt,
} from '../../../src/core/model/job-state.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { awaitsInputs, openSuspicions, refute } from '../../../src/core/model/lost-outputs.ts';
import type { FoundLoss } from '../../../src/core/model/tick-config.ts';
import { slotDemand } from '../../../src/core/policy/owed-launches.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { attempt, attemptRecord, carryOut, failure, resultOf, tickConfig } from '../../support/job-states.ts';

const at = epochMs;
const rng = createRng('job');
const config = { ...tickConfig, lossesPerTask: 2 };

/** Two tasks, two that each read one of them, and one that reads both. */
const shapes = [
  { name: 'map', tasks: 2, upstream: [], sourceBytes: [20, 50] },
  { name: 'mid', tasks: 2, upstream: [0], patterns: ['one-to-one'] as const, sourceBytes: [0, 0] },
  { name: 'end', tasks: 1, upstream: [1], sourceBytes: [0] },
];

let state: JobState;
let log: { readonly now: number; readonly decisions: readonly Decision[] }[];

function tick(now: number, losses: readonly FoundLoss[] = [], slots = 10): TickDecision {
  const budget = { slots, cancelRequested: false, losses };
  const decided = decideTick(state, at(now), config, budget, rng);
  log.push({ now, decisions: decided.decisions });
  carryOut(state, decided.decisions, now);
  return decided;
}

const launched = ({ decisions }: TickDecision): string[] =>
  decisions.flatMap((each) => (each.kind === 'launch' ? [`${each.attemptId} ${each.reason}`] : []));

function done(now: number, ...ids: string[]): void {
  for (const id of ids) {
    applyResult(state, resultOf(id, now), at(now));
    applyAttempt(state, attemptRecord(id, 'done', now), at(now));
  }
}

/** A reader fails, and says that it did not find these. */
function missed(now: number, reader: string, ...lost: string[]): void {
  const range = { offset: 0, length: 10, crc: 0 };
  const told = lost.map((id) => ({ attemptId: attempt(id), how: 'missing' as const, ...range }));
  const why = { ...failure('input-lost', 'output is gone'), lost: told };
  applyAttempt(state, attemptRecord(reader, 'failed', now, { failure: why }), at(now));
}

const gone = (id: string, by?: string, how: LossKind = 'missing'): FoundLoss => ({
  attemptId: attempt(id),
  how,
  ...(by === undefined ? {} : { by: attempt(by) }),
});

const suspects = (): AttemptId[] => openSuspicions(state).map(({ attemptId }) => attemptId);

beforeEach(() => {
  state = createJobState(shapes);
  log = [];
  tick(0);
  tick(1);
  done(5, 'map/0/0', 'map/1/0');
  tick(6);
  expect(launched(tick(7))).toEqual(['mid/0/0 first', 'mid/1/0 first']);
});

describe('a reader that does not find its input', () => {
  it('has the task done again whose output is gone, waits for it, and is no failure of its own', () => {
    missed(10, 'mid/0/0', 'map/0/0');
    expect(taskAt(state, 1, 0).failures).toBe(0);
    expect(suspects()).toEqual(['map/0/0']);
    expect(tick(11, [gone('map/0/0', 'mid/0/0')])).toMatchObject({
      decisions: [{ kind: 'lose-output', attemptId: 'map/0/0', how: 'missing', by: 'mid/0/0' }],
      outcome: { kind: 'continue' },
    });
    expect(stageAt(state, 0)).toMatchObject({ state: 'open', done: 1 });
    const again = tick(12);
    expect(launched(again)).toEqual(['map/0/1 recompute']);
    expect(slotDemand(state)).toBe(2); // The reader waits, and asks for no slot.
    applyResult(state, resultOf('map/0/1', 20), at(20));
    expect(tick(21).decisions).toEqual([{ kind: 'open-stage', stage: 1, revision: 1 }]);
    expect(launched(tick(22))).toEqual(['mid/0/1 retry']);
  });

  it('is launched no more before its input is there, nor copied, and nothing else is held up', () => {
    missed(10, 'mid/0/0', 'map/0/0');
    expect(awaitsInputs(state, stageAt(state, 1))).toBe(true);
    tick(11, [gone('map/0/0')]);
    for (let now = 12; now < 20; now++) expect(launched(tick(now)).join()).not.toContain('mid');
    done(20, 'mid/1/0');
    expect(stageAt(state, 1).done).toBe(1);
  });

  it('changes nothing by a second word, of itself or of another', () => {
    missed(10, 'mid/0/0', 'map/0/0');
    missed(10, 'mid/0/0', 'map/0/0');
    expect(state.suspects.size).toBe(1);
    tick(11, [gone('map/0/0'), gone('map/0/0')]);
    expect(log.at(-1)?.decisions).toHaveLength(1);
    missed(12, 'mid/1/0', 'map/0/0');
    expect(suspects()).toEqual([]);
    expect(taskAt(state, 1, 1).failures).toBe(0);
    expect(tick(13, [gone('map/0/0')]).decisions.filter(({ kind }) => kind === 'lose-output')).toEqual([]);
  });

  it('that speaks when the task was done again long ago speaks of what nobody reads', () => {
    missed(10, 'mid/0/0', 'map/0/0');
    tick(11, [gone('map/0/0')]);
    tick(12);
    done(20, 'map/0/1');
    tick(21);
    missed(30, 'mid/1/0', 'map/0/0');
    expect(suspects()).toEqual([]);
    expect(stageAt(state, 0)).toMatchObject({ state: 'done', done: 2 });
    expect(taskAt(state, 1, 1).failures).toBe(0);
  });

  it('has failed by itself where the output is there', () => {
    missed(10, 'mid/0/0', 'map/0/0');
    refute(state, attempt('map/0/0'));
    expect(taskAt(state, 1, 0).failures).toBe(1);
    expect(suspects()).toEqual([]);
    expect(stageAt(state, 0).done).toBe(2);
  });

  describe('and names four outputs at once', () => {
    const ids = ['map/0/0', 'map/1/0', 'map/2/0', 'map/3/0'] as const;

    beforeEach(() => {
      state = createJobState([
        { name: 'map', tasks: 4, upstream: [], sourceBytes: [1, 1, 1, 1] },
        { name: 'end', tasks: 1, upstream: [0], sourceBytes: [0] },
      ]);
      tick(0);
      tick(1);
      done(5, ...ids);
      tick(6);
      expect(launched(tick(7))).toEqual(['end/0/0 first']);
      missed(10, 'end/0/0', ...ids);
      expect(suspects()).toEqual(ids);
    });

    it('has failed once where all of them are there', () => {
      for (const id of ids) refute(state, attempt(id));
      expect(taskAt(state, 1, 0).failures).toBe(1);
      expect(suspects()).toEqual([]);
    });

    it('is no failure where one of them is gone, whichever is looked at first', () => {
      for (const id of ids.slice(0, 2)) refute(state, attempt(id));
      tick(11, [gone('map/2/0', 'end/0/0')]);
      refute(state, attempt('map/3/0'));
      expect(taskAt(state, 1, 0).failures).toBe(0);
      expect(suspects()).toEqual([]);
    });
  });

  it('has failed by itself where it names what nobody ever wrote, or nothing', () => {
    missed(10, 'mid/0/0', 'map/0/7');
    missed(10, 'mid/1/0');
    expect([taskAt(state, 1, 0).failures, taskAt(state, 1, 1).failures]).toEqual([1, 1]);
  });

  it('fails the job where S3 refuses what is there', () => {
    const lost = [{ attemptId: attempt('map/0/0'), how: 'denied' as const, offset: 0, length: 1, crc: 0 }];
    const why = { ...failure('input-lost', 's3:GetObject was denied'), lost };
    applyAttempt(state, attemptRecord('mid/0/0', 'failed', 10, { failure: why }), at(10));
    refute(state, attempt('map/0/0'));
    expect(tick(11).outcome).toEqual({
      kind: 'fail',
      message: 'stage mid, task 0: s3:GetObject was denied',
      cause: 'access-denied',
    });
  });
});

describe('an output that is gone', () => {
  it('is nobody’s loss where all who read it have ended', () => {
    missed(10, 'mid/0/0', 'map/0/0');
    applyResult(state, resultOf('mid/0/0', 11), at(11)); // It had committed all the same.
    expect(suspects()).toEqual([]);
    expect(tick(12, [gone('map/0/0')]).decisions.map(({ kind }) => kind)).not.toContain('lose-output');
  });

  it('is needed again where its reader is to be done again, which takes the one before along', () => {
    done(10, 'mid/0/0', 'mid/1/0');
    tick(11);
    expect(launched(tick(12))).toEqual(['end/0/0 first']);
    missed(13, 'end/0/0', 'mid/0/0');
    const found = [gone('mid/0/0', 'end/0/0'), gone('map/0/0'), gone('map/1/0')];
    expect(tick(14, found).decisions).toEqual([
      { kind: 'lose-output', attemptId: 'mid/0/0', how: 'missing', by: 'end/0/0' },
      { kind: 'lose-output', attemptId: 'map/0/0', how: 'missing' },
    ]);
    expect(launched(tick(15))).toEqual(['map/0/1 recompute']);
    done(20, 'map/0/1');
    tick(21);
    expect(launched(tick(22))).toEqual(['mid/0/1 recompute']);
    done(30, 'mid/0/1');
    expect(tick(31).decisions).toEqual([{ kind: 'open-stage', stage: 2, revision: 1 }]);
    expect(launched(tick(32))).toEqual(['end/0/1 retry']);
  });

  it('is read from a replica where there is one that is left', () => {
    applyReplica(state, resultOf('map/0/2', 8));
    applyReplica(state, resultOf('map/0/3', 8));
    missed(10, 'mid/0/0', 'map/0/0');
    expect(tick(11, [gone('map/0/0'), gone('map/0/2')]).decisions).toEqual([
      { kind: 'lose-output', attemptId: 'map/0/0', how: 'missing', use: 3 },
      { kind: 'lose-output', attemptId: 'map/0/2', how: 'missing' },
    ]);
    expect(taskAt(state, 0, 0)).toMatchObject({ result: { attemptId: 'map/0/3' }, replicas: [] });
    expect(stageAt(state, 0)).toMatchObject({ state: 'done', done: 2, replicated: [0, 0] });
    expect(tick(12).decisions).toContainEqual({ kind: 'open-stage', stage: 1, revision: 1 });
  });

  it.each([
    ['damaged' as const, undefined],
    ['short' as const, undefined],
    ['unreachable' as const, 1_000_000],
  ])('where it is %s, goes by a copy that was made of it only if that is good: %s', (how, use) => {
    applyReplica(state, resultOf('map/0/1000000', 8));
    missed(10, 'mid/0/0', 'map/0/0');
    const decision = {
      kind: 'lose-output',
      attemptId: 'map/0/0',
      how,
      ...(use === undefined ? {} : { use }),
    };
    expect(tick(11, [gone('map/0/0', undefined, how)]).decisions).toEqual([decision]);
    expect(launched(tick(12))).toEqual(use === undefined ? ['map/0/1 recompute'] : []);
  });

  it('stops who still worked on its task, since what that leaves comes too late', () => {
    state = createJobState(shapes);
    tick(0);
    tick(1);
    carryOut(state, [{ kind: 'launch', attemptId: attempt('map/0/1'), reason: 'backup' }], 2);
    applyAttempt(state, attemptRecord('map/0/1', 'running', 3), at(3));
    done(5, 'map/0/0', 'map/1/0');
    const decided = tick(6, [gone('map/0/0')]);
    expect(decided.decisions).toEqual([
      { kind: 'lose-output', attemptId: 'map/0/0', how: 'missing' },
      { kind: 'cancel', attemptId: 'map/0/1', reason: 'sibling-won' },
    ]);
    expect(launched(tick(7))).toEqual(['map/0/2 recompute']);
  });

  it('fails the job once it was lost too often, by name', () => {
    for (const [number, now] of [10, 30].entries()) {
      missed(now, `mid/0/${number}`, `map/0/${number}`);
      tick(now + 1, [gone(`map/0/${number}`)]);
      tick(now + 2);
      done(now + 3, `map/0/${number + 1}`);
      tick(now + 4);
      tick(now + 5);
    }
    missed(50, 'mid/0/2', 'map/0/2');
    expect(tick(51, [gone('map/0/2', 'mid/0/2', 'short')]).outcome).toEqual({
      kind: 'fail',
      message: 'the output of task map/0 was lost 3 times, at last that of attempt map/0/2 (short)',
    });
  });

  it('counts once with all its copies, and not at all where one of them is left', () => {
    let [number, now] = [0, 10];
    const idOf = (place: number): string => `map/0/${place}`;
    const copiesOf = (place: number): [string, string] => [
      idOf(1_000_000 + 2 * place),
      idOf(1_000_001 + 2 * place),
    ];
    /** All three copies of what the task has left are lost at once, and it is done again. */
    const loseAll = (): Decision[] => {
      const copies = copiesOf(number);
      for (const copy of copies) applyReplica(state, resultOf(copy, now));
      missed(now, `mid/0/${number}`, idOf(number));
      const found = [idOf(number), ...copies].map((id) => gone(id));
      const { outcome, decisions } = tick(now + 1, found);
      if (outcome.kind === 'fail') throw new Error(outcome.message);
      tick(now + 2);
      number += 1;
      done(now + 3, idOf(number));
      tick(now + 4);
      tick(now + 5);
      now += 10;
      return [...decisions];
    };
    expect(loseAll().map(({ kind }) => kind)).toEqual(['lose-output', 'lose-output', 'lose-output']);
    loseAll();
    // A copy that is left is enough, and a copy that is lost is nobody's loss.
    const [good, bad] = copiesOf(number);
    for (const copy of [good, bad]) applyReplica(state, resultOf(copy, now));
    expect(tick(now, [gone(bad)]).outcome).toEqual({ kind: 'continue' });
    expect(tick(now + 1, [gone(idOf(number))]).outcome).toEqual({ kind: 'continue' });
    expect(() => loseAll()).toThrow('the output of task map/0 was lost 3 times');
  });

  it('of the last stage is found by whoever publishes, who notes it on its attempt', () => {
    done(10, 'mid/0/0', 'mid/1/0');
    tick(11);
    tick(12);
    done(20, 'end/0/0');
    expect(tick(21).outcome).toEqual({ kind: 'finish' });
    applyAttempt(state, attemptRecord('end/0/0', 'done', 20, { outputLostAt: at(22) }), at(23));
    expect(suspects()).toEqual(['end/0/0']);
    expect(tick(24, [gone('end/0/0')]).outcome).toEqual({ kind: 'continue' });
    expect(launched(tick(25))).toEqual(['end/0/1 recompute']);
    done(30, 'end/0/1');
    expect(tick(31).outcome).toEqual({ kind: 'finish' });
    // Still noted, and dealt with.
    applyAttempt(state, attemptRecord('end/0/0', 'done', 20, { outputLostAt: at(22) }), at(32));
    expect(suspects()).toEqual([]);
  });
});

describe('whoever takes a job over', () => {
  /** What a scheduler comes to that knows results, then the log, then results and attempts once more. */
  function takenOver(results: readonly string[], records: readonly string[]): JobState {
    const fresh = createJobState(shapes);
    const know = (): void => {
      for (const id of results) applyResult(fresh, resultOf(id, 5), at(50));
    };
    know();
    for (const { now, decisions } of log) carryOut(fresh, decisions, now);
    know();
    for (const id of records) applyAttempt(fresh, attemptRecord(id, 'done', 5), at(50));
    return fresh;
  }

  it('knows what is lost, also before it was made again', () => {
    missed(10, 'mid/0/0', 'map/0/0');
    tick(11, [gone('map/0/0', 'mid/0/0')]);
    tick(12);
    const fresh = takenOver(['map/0/0', 'map/1/0'], ['map/0/0', 'map/1/0']);
    expect(stageAt(fresh, 0)).toMatchObject({ state: 'open', done: 1 });
    expect(taskAt(fresh, 0, 0)).toMatchObject({ recorded: 'map/0/0', since: 1, lostOutputs: [0] });
    expect(fresh.live.size).toBe(3);
    state = fresh;
    expect(tick(60).decisions).toEqual([]); // What is at work on it is told nothing.
    expect(awaitsInputs(fresh, stageAt(fresh, 1))).toBe(true);
  });

  it('finds in its place what was made again, and has the lists written anew', () => {
    missed(10, 'mid/0/0', 'map/0/0');
    tick(11, [gone('map/0/0', 'mid/0/0')]);
    tick(12);
    state = takenOver(['map/0/1', 'map/1/0'], ['map/0/0', 'map/0/1', 'map/1/0']);
    expect(taskAt(state, 0, 0)).toMatchObject({ recorded: 'map/0/1', result: { attemptId: 'map/0/1' } });
    expect(stageAt(state, 0)).toMatchObject({ state: 'done', done: 2 });
    expect(tick(60).decisions).toContainEqual({ kind: 'open-stage', stage: 1, revision: 1 });
  });

  it('goes by the replica that was chosen', () => {
    applyReplica(state, resultOf('map/0/2', 8));
    tick(11, [gone('map/0/0')]);
    const fresh = takenOver(['map/0/0', 'map/1/0'], []);
    expect(taskAt(fresh, 0, 0).result?.attemptId).toBe('map/0/2');
    expect(stageAt(fresh, 0)).toMatchObject({ state: 'done', done: 2 });
  });
});
