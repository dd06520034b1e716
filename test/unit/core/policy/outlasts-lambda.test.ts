import { describe, expect, it } from 'vitest';
import { durationMs, epochMs } from '../../../../src/contracts/units.ts';
import { applyDecisions, decideTick } from '../../../../src/core/decide-tick.ts';
import {
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../src/core/model/job-state.ts';
import type { JobState, StageShape } from '../../../../src/core/model/job-view.ts';
import type { TickBudget, TickConfig } from '../../../../src/core/model/tick-config.ts';
import { createRng } from '../../../../src/lib/rng.ts';
import { attemptRecord, failure, resultOf, tickConfig } from '../../../support/job-states.ts';

const at = epochMs;
const minute = 60_000;
const lambdaMs = durationMs(15 * minute);
const onFargate = { kind: 'fargate', size: 'medium' };

/** A stage whose tasks read so many bytes, with the rule by which it is treated. */
class StageOfTest {
  readonly state: JobState;
  private readonly config: TickConfig;

  constructor(
    sourceBytes: readonly number[],
    more: Partial<StageShape> = {},
    config: Partial<TickConfig> = {},
  ) {
    const shape = { name: 'map', tasks: sourceBytes.length, upstream: [], sourceBytes, ...more };
    this.state = createJobState([shape], 'by-index');
    openStage(this.state, 0, [], at(0));
    // Longer than a task takes: none is taken for dead.
    const patient = { claimLeaseMs: durationMs(1e9), silenceMs: durationMs(1e9) };
    this.config = { ...tickConfig, ...patient, hasFargate: true, lambdaMs, ...config };
  }

  /** What is launched, on what, and with which numbers. */
  tick(now: number, slots: number, more: Partial<TickBudget> = {}): unknown[] {
    const budget = { slots, cancelRequested: false, ...more };
    const { decisions } = decideTick(this.state, at(now), this.config, budget, createRng('job'));
    applyDecisions(this.state, decisions, { now: at(now), openStage: () => undefined });
    return decisions.flatMap((each) =>
      each.kind === 'launch' ? [[each.attemptId, each.worker, each.facts]] : [],
    );
  }

  ends(task: number, ms: number): void {
    const id = `map/${String(task)}/0`;
    const times = { claimedAt: at(1), endedAt: at(1 + ms) };
    applyAttempt(this.state, attemptRecord(id, 'done', 1 + ms, times), at(1 + ms));
    applyResult(this.state, resultOf(id, 1 + ms), at(1 + ms));
  }

  runsOutOfTime(task: number, now: number, why: { readonly mayPass?: true } = {}): void {
    const more = { failure: { ...failure('timeout'), ...why } };
    applyAttempt(this.state, attemptRecord(`map/${String(task)}/0`, 'failed', now, more), at(now));
  }
}

describe('a task that will outlast Lambda', () => {
  it('goes to Fargate from the first, as the tasks that have ended foretell by what it reads', () => {
    // A minute for each hundred bytes.
    const sizes = [100, 200, 300, 400, 500, 600, 1_000, 2_000];
    const stage = new StageOfTest(sizes);
    expect(stage.tick(0, 6)).toHaveLength(6);
    sizes.slice(0, 6).forEach((bytes, task) => {
      stage.ends(task, (bytes / 100) * minute);
    });
    expect(stage.tick(7 * minute, 6)).toEqual([
      ['map/6/0', undefined, undefined],
      ['map/7/0', onFargate, { forecastMs: 20 * minute, ended: 6, lambdaMs, inputBytes: 2_000 }],
    ]);
  });

  it('is foretold by what it reads where the large tasks have ended first, which took longer', () => {
    const gb = 1e9;
    const sizes = [...Array<number>(12).fill(20 * gb), ...Array<number>(2).fill(3_000), 20 * gb];
    const stage = new StageOfTest(sizes);
    expect(stage.tick(0, 12, { earlierMs: [20 * minute] })).toHaveLength(12);
    for (let task = 0; task < 12; task++) stage.ends(task, 25 * minute);
    const facts = { forecastMs: 25 * minute, ended: 12, lambdaMs, inputBytes: 20 * gb };
    const launches = stage.tick(26 * minute, 12);
    expect(launches).toHaveLength(3);
    expect(launches).toEqual(
      expect.arrayContaining([
        ['map/12/0', undefined, undefined],
        ['map/13/0', undefined, undefined],
        ['map/14/0', onFargate, facts],
      ]),
    );
  });

  it('is taken for its like where those that took longer read hardly more, and nobody knows what an input costs', () => {
    const stage = new StageOfTest([105, 105, 105, 105, 100, 60, 20]);
    stage.tick(0, 4);
    for (let task = 0; task < 4; task++) stage.ends(task, 20 * minute);
    const told = expect.anything() as unknown;
    expect(stage.tick(21 * minute, 4)).toEqual([
      ['map/4/0', onFargate, told],
      ['map/5/0', onFargate, told],
      ['map/6/0', undefined, undefined],
    ]);
  });

  it('goes there where tasks that read nothing took longer', () => {
    const stage = new StageOfTest([0, 0, 0, 0, 0]);
    stage.tick(0, 4);
    for (let task = 0; task < 4; task++) stage.ends(task, 25 * minute);
    expect(stage.tick(26 * minute, 4)).toEqual([
      ['map/4/0', onFargate, { forecastMs: 25 * minute, ended: 4, lambdaMs, inputBytes: 0 }],
    ]);
  });

  it('goes there after one that reads no more has run out of time, and the smaller ones do not', () => {
    const stage = new StageOfTest([500, 500, 499, 900]);
    stage.tick(0, 1);
    stage.runsOutOfTime(0, 15 * minute);
    expect(stage.tick(16 * minute, 4)).toEqual([
      ['map/0/1', onFargate, undefined],
      ['map/1/0', onFargate, { timedOutBytes: 500, lambdaMs, inputBytes: 500 }],
      ['map/2/0', undefined, undefined],
      ['map/3/0', onFargate, { timedOutBytes: 500, lambdaMs, inputBytes: 900 }],
    ]);
  });

  it('stays where one that reads as much has ended in time: who ran out of it was held up', () => {
    const stage = new StageOfTest([500, 500, 500]);
    stage.tick(0, 2);
    stage.ends(1, minute);
    stage.runsOutOfTime(0, 15 * minute);
    expect(stage.tick(16 * minute, 4)).toEqual([
      ['map/0/1', onFargate, undefined],
      ['map/2/0', undefined, undefined],
    ]);
  });

  it('stays where what kept another from its end need not come again, as a store that was slow', () => {
    const stage = new StageOfTest([500, 500, 900]);
    stage.tick(0, 1);
    stage.runsOutOfTime(0, 15 * minute, { mayPass: true });
    expect(stage.tick(16 * minute, 3)).toEqual([
      ['map/0/1', onFargate, undefined],
      ['map/1/0', undefined, undefined],
      ['map/2/0', undefined, undefined],
    ]);
  });

  it('goes there by earlier runs of the job, until its own tasks tell better', () => {
    const stage = new StageOfTest([500, 500, 500, 500, 500]);
    const earlierMs = [20 * minute];
    const numbers = { earlierMs: 20 * minute, lambdaMs, inputBytes: 500 };
    expect(stage.tick(0, 4, { earlierMs })).toEqual(
      [0, 1, 2, 3].map((task) => [`map/${String(task)}/0`, onFargate, numbers]),
    );
    for (const task of [0, 1, 2, 3]) stage.ends(task, minute);
    expect(stage.tick(2 * minute, 4, { earlierMs })).toEqual([['map/4/0', undefined, undefined]]);
    const usual = new StageOfTest([500]);
    expect(usual.tick(0, 1, { earlierMs: [15 * minute] })).toEqual([['map/0/0', undefined, undefined]]);
  });

  it.each([
    ['its stage may not leave Lambda', { mayUseFargate: false }, {}],
    ['there is no Fargate', {}, { hasFargate: false }],
  ])('stays where %s', (_, shape, config) => {
    const stage = new StageOfTest([500], shape, config);
    expect(stage.tick(0, 1, { earlierMs: [20 * minute] })).toEqual([['map/0/0', undefined, undefined]]);
  });
});
