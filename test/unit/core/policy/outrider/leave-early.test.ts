import { describe, expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../../../src/contracts/units.ts';
import { applyDecisions, decideTick } from '../../../../../src/core/decide-tick.ts';
import {
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../../src/core/model/job-state.ts';
import type { JobState, StageShape } from '../../../../../src/core/model/job-view.ts';
import type { TickBudget, TickConfig } from '../../../../../src/core/model/tick-config.ts';
import { createRng } from '../../../../../src/lib/rng.ts';
import { attemptRecord, progressOf, resultOf, tickConfig } from '../../../../support/job-states.ts';

const second = 1_000;
const size = 1_000_000;
/** Of these, an attempt may work for 880 s. */
const lambdaMs = durationMs(900 * second);

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
      ...{ reportMs: durationMs(10 * second), ...config },
    };
  }

  /** What is decided so many seconds after the begin: launches with what they run on, and stops with why. */
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
      return each.kind === 'cancel' ? [[each.attemptId, each.reason]] : [];
    });
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

describe('an attempt on Lambda that cannot be done when that ends it', () => {
  it('is stopped as soon as its progress says so, and its task begins anew on Fargate', () => {
    const stage = new Stage(1);
    expect(stage.tick(0)).toEqual([['map/0/0', 'first', 'lambda']]);
    stage.reports('map/0/0', even(3_000, 20));
    expect(stage.tick(20)).toEqual([['map/0/0', 'outlasts-lambda']]);
    expect(stage.tick(25)).toEqual([]);
    stage.reports('map/0/0', [[30, 0.01]], { state: 'cancelled' });
    expect(stage.tick(31)).toEqual([['map/0/1', 'retry', 'fargate']]);
  });

  it('frees the slots that those of its stage need which begin anew, where none is free', () => {
    const stage = new Stage(3);
    stage.tick(0, { slots: 3 });
    for (const task of [0, 1, 2]) stage.reports(`map/${String(task)}/0`, even(3_000, 20));
    expect(stage.tick(20, { slots: 3 })).toHaveLength(3);
    stage.reports('map/1/0', [[30, 0.01]], { state: 'cancelled' });
    expect(stage.tick(31, { slots: 3 })).toEqual([['map/1/1', 'retry', 'fargate']]);
  });

  it('goes on where it can hand on what it has done, or nobody says that it cannot', () => {
    const stage = new Stage(1);
    stage.tick(0);
    stage.reports('map/0/0', even(3_000, 100), { handsOn: true });
    expect(stage.tick(100)).toEqual([]);
    const record = attemptRecord('map/0/0', 'running', 200 * second, {
      ...{ claimedAt: epochMs(0), progress: progressOf(0.06 * size, size, 0, 200 * second), beat: 1_000 },
    });
    applyAttempt(stage.state, record, epochMs(200 * second));
    expect(stage.tick(200)).toEqual([]);
  });

  it('goes on where it may yet be done in time, for all that the estimate may be wrong', () => {
    const stage = new Stage(1);
    stage.tick(0);
    stage.reports('map/0/0', even(1_000, 60));
    expect(stage.tick(60)).toEqual([]);
    // So steady as it has been since, it has at least 0.95 of 700 s to go.
    stage.reports('map/0/0', even(1_000, 300).slice(6));
    expect(stage.tick(300)).toEqual([['map/0/0', 'outlasts-lambda']]);
  });

  it('goes on where it was slow at first and is fast enough since', () => {
    const stage = new Stage(1);
    stage.tick(0);
    // Half of the time for a hundredth; at its mean rate it would take 1,000 s, at the present one 621 s.
    const course: Report[] = [[50, 0.005], [100, 0.01], [150, 0.1], [200, 0.2]]; // prettier-ignore
    stage.reports('map/0/0', course);
    expect(stage.tick(200)).toEqual([]);
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
      stage.reports('map/0/0', even(3_000, 100));
      expect(stage.tick(100, budget)).toEqual([]);
    }
  });

  it('begins anew on Lambda where others of its stage were done there in half of the time', () => {
    const stage = new Stage(5);
    stage.tick(0);
    for (const task of [1, 2, 3, 4]) stage.ends(task, 300);
    stage.reports('map/0/0', even(3_000, 300));
    const stops = stage.tick(300).filter(([, reason]) => reason === 'outlasts-lambda');
    expect(stops).toEqual([['map/0/0', 'outlasts-lambda']]);
    stage.reports('map/0/0', [[310, 0.1]], { state: 'cancelled' });
    expect(stage.tick(311)).toEqual([['map/0/1', 'retry', 'lambda']]);
  });

  it('is stopped no more than three times, wherever its task is sent', () => {
    const stage = new Stage(5);
    stage.tick(0);
    for (const task of [1, 2, 3, 4]) stage.ends(task, 300);
    const stops: unknown[] = [];
    for (let number = 0; number < 5; number++) {
      const id = `map/0/${String(number)}`;
      stage.reports(id, even(3_000, 300));
      const decided = stage.tick(300 + number);
      const isStopped = decided.some(([, reason]) => reason === 'outlasts-lambda');
      if (!isStopped) break;
      stops.push(id);
      stage.reports(id, [[310, 0.1]], { state: 'cancelled' });
      stage.tick(311 + number);
    }
    expect(stops).toEqual(['map/0/0', 'map/0/1', 'map/0/2']);
  });
});
