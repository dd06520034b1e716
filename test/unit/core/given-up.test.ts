import { describe, expect, it } from 'vitest';
import type { AttemptRecord, UnreadableRecord } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyUnreadable,
  createJobState,
  loseAttempt,
  openStage,
  resumeAttempt,
  taskAt,
} from '../../../src/core/model/job-state.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { dollarsSoFar } from '../../../src/core/policy/budget.ts';
import { workerMsOf } from '../../../src/core/estimate/progress-rate.ts';
import { attempt, attemptRecord, failure, progressOf } from '../../support/job-states.ts';

const at = epochMs;
const id = attempt('map/0/0');
/** When the attempt was given up. */
const lostAt = at(600_000);
/** When another scheduler reads what there is. */
const laterOn = at(700_000);

/** What is known from the log before the attempt was given up: a launch. */
function launchedJob(): JobState {
  const state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [10] }]);
  openStage(state, 0, [], at(0));
  addAttempt(state, id, 'first', at(0));
  return state;
}

const apply = (state: JobState, record: AttemptRecord, now: number): void => {
  applyAttempt(state, record, at(now));
};

const requests = { writeUnits: 400_000 };
const progress = { ...progressOf(5, 10), requests };
/** As the worker has told it, half a minute before it fell silent. */
const running = attemptRecord(id, 'running', 300_000, { claimedAt: at(1_000), progress });
const ended = (state: AttemptRecord['state'], more: Partial<AttemptRecord> = {}): AttemptRecord => ({
  ...running,
  ...{ state, order: 'cancel', endedAt: lostAt },
  ...more,
});

/** A scheduler that has seen it all, until it gave the attempt up for its silence. */
function seen(): JobState {
  const state = launchedJob();
  apply(state, running, 300_000);
  loseAttempt(state, id, lostAt);
  return state;
}

/** One that takes the job over knows from the log that the attempt was given up, and then reads its record. */
function takenOver(record: AttemptRecord): JobState {
  const state = launchedJob();
  loseAttempt(state, id, lostAt);
  apply(state, record, laterOn);
  return state;
}

const facts = (state: JobState): object => {
  const view = state.attempts.get(id);
  return {
    failures: taskAt(state, 0, 0).failures,
    workerMs: view === undefined ? undefined : workerMsOf(view, laterOn),
    dollars: dollarsSoFar(state, laterOn).toFixed(6),
    state: view?.state,
    nodes: [...state.nodes.keys()],
  };
};

/** 599 s of a medium worker, at $0.0000133334 a GB second, and 400,000 writes at $0.625 a million. */
const spent = { workerMs: 599_000, dollars: ((599 * 1769 * 0.0000133334) / 1024 + 0.25).toFixed(6) };
const known = { ...spent, nodes: ['node'] };

describe('an attempt that was at work and was given up for its silence', () => {
  it('is a failure of its task and has cost what it ran, also to who takes the job over', () => {
    expect(facts(seen())).toEqual({ failures: 1, state: 'lost', ...known });
    expect(facts(takenOver(ended('lost')))).toEqual({ failures: 1, state: 'lost', ...known });
  });

  it('counts once, however often its record is read', () => {
    const [state, other] = [seen(), takenOver(ended('lost'))];
    for (const each of [state, other])
      for (let time = 0; time < 2; time++) apply(each, ended('lost'), 700_000);
    expect([facts(state), facts(other)]).toEqual([facts(seen()), facts(seen())]);
  });

  it('is none where the platform tells of a death that is no fault of the task', () => {
    const record = ended('lost', { failure: failure('out-of-memory') });
    const state = seen();
    apply(state, record, 700_000);
    expect(facts(state)).toEqual({ failures: 0, state: 'lost', ...known });
    expect(facts(takenOver(record))).toEqual({ failures: 0, state: 'lost', ...known });
  });

  it('is judged by why it died', () => {
    const record = ended('lost', { failure: failure('bad-record', 'line 3') });
    const state = seen();
    apply(state, record, 700_000);
    const fatal = { stage: 'map', task: 0, failure: { cause: 'bad-record', message: 'line 3' } };
    expect([state.fatal, takenOver(record).fatal]).toEqual([fatal, fatal]);
  });

  it('is none, nor dear, where nobody had begun it', () => {
    const record = attemptRecord(id, 'launched', 0, { state: 'lost', order: 'cancel', endedAt: lostAt });
    const free = { workerMs: 0, dollars: '0.000000', nodes: [] };
    expect(facts(takenOver(record))).toEqual({ failures: 0, state: 'lost', ...free });
  });
});

describe('an attempt that had begun just before it was given up', () => {
  const beganAt = { ...running, claimedAt: at(599_000), reportedAt: at(599_000) };

  it.each([
    ['failed', 1, failure('user-code')],
    ['failed', 0, failure('out-of-memory')],
    ['cancelled', 0, undefined],
  ] as const)('and %s then counts %s', (state, failures, why) => {
    const end = {
      ...beganAt,
      ...{ state, beat: 600_001, endedAt: at(650_000), reportedAt: at(650_000) },
      ...(why === undefined ? {} : { failure: why }),
    };
    const live = launchedJob();
    loseAttempt(live, id, lostAt);
    expect(resumeAttempt(live, id, lostAt)).toBe(true);
    apply(live, beganAt, 600_001);
    apply(live, end, 650_000);
    expect(facts(live)).toMatchObject({ failures, state, workerMs: 51_000 });
    expect(facts(takenOver(end))).toMatchObject({ failures, state, workerMs: 51_000 });
  });
});

describe('an attempt that was given up since its record cannot be read', () => {
  const unreadable: UnreadableRecord = {
    ...{ key: 'A#map/0/0', kind: 'attempt', attemptId: id },
    ...{ why: 'beat must be a number', mayWork: false },
  };

  it('is a failure of its task, also to who takes the job over', () => {
    const live = launchedJob();
    applyUnreadable(live, unreadable);
    loseAttempt(live, id, lostAt);
    const over = launchedJob();
    loseAttempt(over, id, lostAt);
    for (let time = 0; time < 2; time++) applyUnreadable(over, unreadable);
    const why = {
      cause: 'unreadable',
      message: 'the record A#map/0/0 cannot be read: beat must be a number',
    };
    for (const state of [live, over]) {
      expect(taskAt(state, 0, 0).failures).toBe(1);
      expect(state.attempts.get(id)?.failure).toEqual(why);
    }
  });
});
