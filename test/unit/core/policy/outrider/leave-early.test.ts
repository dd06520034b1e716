import { describe, expect, it } from 'vitest';
import type { AttemptId } from '../../../../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../../../../src/contracts/units.ts';
import { applyDecisions, decideTick } from '../../../../../src/core/decide-tick.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../../src/core/model/job-state.ts';
import type { JobState, StageShape } from '../../../../../src/core/model/job-view.ts';
import { applyObservation } from '../../../../../src/core/model/observation.ts';
import type { TickBudget, TickConfig } from '../../../../../src/core/model/tick-config.ts';
import { slotTimeOf } from '../../../../../src/core/estimate/slot-time.ts';
import { tasksElsewhere } from '../../../../../src/core/policy/leave-lambda.ts';
import { createRng } from '../../../../../src/lib/rng.ts';
import { attemptRecord, failure, progressOf, resultOf, tickConfig } from '../../../../support/job-states.ts';

const second = 1_000;
const size = 1_000_000;
/** An attempt may work for so long. */
const lambdaMs = durationMs(880 * second);

type Report = readonly [seconds: number, share: number];

/** A stage of tasks of a megabyte each, on Lambda beside Fargate. */
class Stage {
  readonly state: JobState;
  private readonly config: TickConfig;
  private readonly reported = new Map<string, number>();

  constructor(tasks: number, shape: Partial<StageShape> = {}, config: Partial<TickConfig> = {}) {
    const sourceBytes = Array.from({ length: tasks }, () => size);
    this.state = createJobState([{ name: 'map', tasks, upstream: [], sourceBytes, ...shape }], 'by-index');
    openStage(this.state, 0, [], epochMs(0));
    const patient = { claimLeaseMs: durationMs(1e9), silenceMs: durationMs(1e9) };
    this.config = {
      ...{ ...tickConfig, ...patient, policy: 'outrider', hasFargate: true, lambdaMs },
      ...{ reportMs: durationMs(10 * second), cancelMs: durationMs(25 * second), ...config },
    };
  }

  /** What is decided so many seconds after the begin: launches with what they run on, and what is stopped or given up, with why. */
  tick(atS: number, budget: Partial<TickBudget> = {}): string[][] {
    const { decisions } = decideTick(
      this.state,
      epochMs(atS * second),
      this.config,
      { slots: 50, cancelRequested: false, ...budget },
      createRng('job'),
    );
    applyDecisions(this.state, decisions, { now: epochMs(atS * second), openStage: () => undefined });
    return decisions.flatMap((each): string[][] => {
      if (each.kind === 'launch') return [[each.attemptId, each.reason, each.worker?.kind ?? 'lambda']];
      return each.kind === 'cancel' || each.kind === 'lose' ? [[each.attemptId, each.reason]] : [];
    });
  }

  /** The attempt of the first task was read, with the result of its task, after so many seconds; nothing new was found. */
  looks(atS: number): void {
    const ids = ['map/0/0' as AttemptId];
    applyObservation(this.state, { kind: 'read', ids, at: epochMs(atS * second), what: 'outputs' });
  }

  /** An attempt that was launched at 0 has read these shares of its input after so many seconds. */
  reports(
    id: string,
    course: readonly Report[],
    more: { handsOn?: boolean; state?: 'cancelled' } = {},
  ): void {
    const { handsOn = false, state = 'running' } = more;
    for (const [seconds, share] of course) {
      const progress = { ...progressOf(share * size, size, 0, seconds * second), handsOn };
      const record = attemptRecord(id, state, seconds * second, {
        claimedAt: epochMs(0),
        ...{
          progress,
          node: `node of ${id}`,
          ...(state === 'cancelled' ? { endedAt: epochMs(seconds * second) } : {}),
        },
      });
      const beat = (this.reported.get(id) ?? record.beat) + 1;
      this.reported.set(id, beat);
      applyAttempt(this.state, { ...record, beat }, epochMs(seconds * second));
    }
  }

  ends(task: number, seconds: number): void {
    const id = `map/${String(task)}/0`;
    const times = { claimedAt: epochMs(0), endedAt: epochMs(seconds * second) };
    const progress = progressOf(size, size, 0, seconds * second);
    applyAttempt(
      this.state,
      attemptRecord(id, 'done', seconds * second, { ...times, progress }),
      epochMs(seconds * second),
    );
    applyResult(this.state, resultOf(id, seconds * second), epochMs(seconds * second));
  }
}

/** Even progress, by which all takes so many seconds, as it is reported every ten seconds until then. */
const even = (wholeS: number, untilS: number): Report[] =>
  Array.from({ length: Math.floor(untilS / 10) }, (_, place) => [
    10 * (place + 1),
    (10 * (place + 1)) / wholeS,
  ]);

/** Has an attempt that takes 3,000 s stopped, alone, and end ten seconds later. */
function seeStopped(stage: Stage, id: string): void {
  stage.reports(id, even(3_000, 230));
  expect(stage.tick(230)).toEqual([[id, 'outlasts-lambda']]);
  stage.reports(id, [[240, 0.08]], { state: 'cancelled' });
}

describe('an attempt on Lambda that cannot be done when that ends it', () => {
  it('is stopped once its rates in a quarter of that time say so, and its task begins anew on Fargate', () => {
    const stage = new Stage(1);
    expect(stage.tick(0)).toEqual([['map/0/0', 'first', 'lambda']]);
    stage.reports('map/0/0', even(3_000, 210));
    expect(stage.tick(210)).toEqual([]);
    stage.reports('map/0/0', [[220, 220 / 3_000]]);
    expect(stage.tick(220)).toEqual([['map/0/0', 'outlasts-lambda']]);
    expect(stage.tick(225)).toEqual([]);
    // It got faster at last, and was stopped all the same.
    stage.reports('map/0/0', [[230, 0.5]], { state: 'cancelled' });
    expect(stage.tick(231)).toEqual([['map/0/1', 'retry', 'fargate']]);
  });

  it('frees the slots that those of its stage need which begin anew, where none is free', () => {
    const stage = new Stage(3);
    stage.tick(0, { slots: 3 });
    for (const task of [0, 1, 2]) stage.reports(`map/${String(task)}/0`, even(3_000, 230));
    expect(stage.tick(230, { slots: 3 })).toHaveLength(3);
    stage.reports('map/1/0', [[240, 0.08]], { state: 'cancelled' });
    expect(stage.tick(241, { slots: 3 })).toEqual([['map/1/1', 'retry', 'fargate']]);
  });

  it('goes on where it can hand on what it has done, or nobody says that it cannot', () => {
    const stage = new Stage(1);
    stage.tick(0);
    stage.reports('map/0/0', even(3_000, 230), { handsOn: true });
    expect(stage.tick(230)).toEqual([]);
    const record = attemptRecord('map/0/0', 'running', 240 * second, {
      ...{ claimedAt: epochMs(0), progress: progressOf(0.08 * size, size, 0, 240 * second), beat: 1_000 },
    });
    applyAttempt(stage.state, record, epochMs(240 * second));
    expect(stage.tick(240)).toEqual([]);
  });

  it('goes on where it may yet be done in time, for all that its rate may be wrong', () => {
    // In all 900 s, less a twentieth of what is left; then 1,000 s at the mean rate, and 747 s at the best of its quarters.
    const uneven: Report[] = [[60, 0.03], [120, 0.12], [180, 0.15], [240, 0.24]]; // prettier-ignore
    // The network was slow for 200 s: at the rate since then it takes 520 s.
    const late: Report[] = [[50, 0.005], [100, 0.01], [150, 0.015], [200, 0.02], [250, 0.17]]; // prettier-ignore
    // It has not got on for a while, which a copy is for.
    const stuck: Report[] = [[60, 0.02], [120, 0.02], [180, 0.04], [240, 0.06]]; // prettier-ignore
    for (const course of [even(900, 230), uneven, late, stuck]) {
      const stage = new Stage(1);
      stage.tick(0);
      stage.reports('map/0/0', course);
      expect(stage.tick(250)).toEqual([]);
    }
  });

  it('goes on where the rest of its time is little beside what it has done', () => {
    const stage = new Stage(1);
    stage.tick(0);
    stage.reports('map/0/0', even(1_000, 710));
    expect(stage.tick(710)).toEqual([]);
  });

  it('goes on without a Fargate that takes its task', () => {
    for (const [shape, config, budget] of [
      [{ mayUseFargate: false }, {}, {}],
      [{}, { hasFargate: false }, {}],
      [
        {},
        {},
        {
          room: {
            stages: new Set([0]),
            launches: 9,
            refused: { stages: new Set<number>(), launches: 0, beyond: 0 },
          },
        },
      ],
    ] as const) {
      const stage = new Stage(1, shape, config);
      stage.tick(0, budget);
      stage.reports('map/0/0', even(3_000, 230));
      expect(stage.tick(230, budget)).toEqual([]);
    }
  });

  it('goes on beside a copy on Lambda where others of its stage were done there in time', () => {
    const stage = new Stage(5);
    stage.tick(0);
    for (const task of [1, 2, 3, 4]) stage.ends(task, 300);
    stage.reports('map/0/0', even(3_000, 300));
    expect(stage.tick(300)).toEqual([['map/0/1', 'backup', 'lambda']]);
  });

  it('is stopped once in the life of its task, which stays on Fargate whatever becomes of it there', () => {
    const stage = new Stage(1);
    stage.tick(0);
    seeStopped(stage, 'map/0/0');
    expect(stage.tick(241)).toEqual([['map/0/1', 'retry', 'fargate']]);
    const failed = attemptRecord('map/0/1', 'failed', 250 * second, {
      ...{
        claimedAt: epochMs(245 * second),
        endedAt: epochMs(250 * second),
        failure: failure('interrupted'),
      },
    });
    applyAttempt(stage.state, failed, epochMs(250 * second));
    expect(stage.tick(1_000)).toEqual([['map/0/2', 'retry', 'fargate']]);
  });

  it('is waited for no longer than it takes to hear that, and costs its task no try', () => {
    const stage = new Stage(1);
    stage.tick(0);
    stage.reports('map/0/0', even(3_000, 230));
    expect(stage.tick(230)).toEqual([['map/0/0', 'outlasts-lambda']]);
    stage.looks(255);
    expect(stage.tick(255)).toEqual([]);
    stage.looks(256);
    expect(stage.tick(256)).toEqual([['map/0/0', 'unheard']]);
    expect(stage.tick(257)).toEqual([['map/0/1', 'retry', 'fargate']]);
    // What Lambda tells of it at last changes nothing.
    const died = { claimedAt: epochMs(0), failure: failure('exited'), beat: 1_000 };
    applyAttempt(stage.state, attemptRecord('map/0/0', 'lost', 900 * second, died), epochMs(900 * second));
    expect(stage.state.stages[0]?.tasks[0]?.failures).toBe(0);
    // If it was done after all, that counts, and whatever the other brings does not.
    applyResult(stage.state, resultOf('map/0/0', 901 * second), epochMs(901 * second));
    applyResult(stage.state, resultOf('map/0/1', 902 * second), epochMs(902 * second));
    expect(stage.state.stages[0]?.tasks[0]?.result?.attemptId).toBe('map/0/0');
  });

  it('has as long again to hear it where another scheduler takes over', () => {
    const stage = new Stage(1);
    stage.tick(0);
    stage.reports('map/0/0', even(3_000, 230));
    stage.tick(230);
    applyObservation(stage.state, { kind: 'taken-over', at: epochMs(250 * second) });
    stage.looks(275);
    expect(stage.tick(275)).toEqual([]);
    stage.looks(276);
    expect(stage.tick(276)).toEqual([['map/0/0', 'unheard']]);
  });

  it('has as long from when it was told, where its scheduler slept between the decision and the order', () => {
    const stage = new Stage(1);
    stage.tick(0);
    stage.reports('map/0/0', even(3_000, 230));
    stage.tick(230);
    const attemptId = 'map/0/0' as AttemptId;
    applyObservation(stage.state, { kind: 'cancel-ordered', attemptId, at: epochMs(255 * second) });
    stage.looks(280);
    expect(stage.tick(280)).toEqual([]);
    stage.looks(281);
    expect(stage.tick(281)).toEqual([['map/0/0', 'unheard']]);
  });

  it('is given up for what was read of it since then alone', () => {
    const stage = new Stage(1);
    stage.tick(0);
    stage.reports('map/0/0', even(3_000, 230));
    stage.tick(230);
    expect(stage.tick(300)).toEqual([]);
    stage.looks(250);
    expect(stage.tick(301)).toEqual([]);
    stage.looks(302);
    expect(stage.tick(302)).toEqual([['map/0/0', 'unheard']]);
  });

  it('is stopped beside others of its task as each comes to that age', () => {
    const both = new Stage(1);
    both.tick(0);
    addAttempt(both.state, 'map/0/1' as AttemptId, 'clone', epochMs(0));
    both.reports('map/0/0', even(3_000, 230));
    both.reports('map/0/1', even(2_000, 210));
    expect(both.tick(230)).toEqual([['map/0/0', 'outlasts-lambda']]);
    both.reports('map/0/1', even(2_000, 260).slice(21));
    expect(both.tick(260)).toEqual([['map/0/1', 'outlasts-lambda']]);
  });

  it('goes on in a job with a budget', () => {
    const stage = new Stage(1);
    stage.tick(0);
    stage.reports('map/0/0', even(3_000, 230));
    expect(stage.tick(230, { dollars: { capDollars: 100, onBudget: 'finish' } })).toEqual([]);
  });

  it('costs its stage nothing of what copies and kills may lose', () => {
    const stage = new Stage(8);
    stage.tick(0);
    for (let task = 0; task < 8; task++) stage.reports(`map/${String(task)}/0`, even(3_000, 230));
    stage.tick(230);
    for (const { attempts, ...task } of stage.state.stages[0]?.tasks ?? []) {
      expect(attempts.map(({ cancelReason }) => cancelReason)).toEqual(['outlasts-lambda']);
      expect(slotTimeOf({ attempts, ...task }, epochMs(230 * second))).toEqual({ ownMs: 0, othersMs: 0 });
    }
  });

  it('needs no room on Lambda for what begins anew, beside tasks that read as much and stay', () => {
    const stage = new Stage(4);
    stage.tick(0);
    seeStopped(stage, 'map/1/0');
    const terms = { hasFargate: true, lambdaMs };
    const then = tasksElsewhere(stage.state, new Set(['lambda']), { stages: new Set([0]) }, terms);
    expect([...then].map(({ index }) => index).toSorted()).toEqual([1]);
  });
});
