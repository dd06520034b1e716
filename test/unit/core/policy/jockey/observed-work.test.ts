import { describe, expect, it } from 'vitest';
import { defaultPolicyConfig } from '../../../../../src/contracts/policy-config.ts';
import type { StoredForecast } from '../../../../../src/contracts/forecast.ts';
import { attemptIdOf } from '../../../../../src/contracts/ids.ts';
import { epochMs } from '../../../../../src/contracts/units.ts';
import { predictorOf } from '../../../../../src/core/forecast/predictor.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../../src/core/model/job-view.ts';
import { applyObservation } from '../../../../../src/core/model/observation.ts';
import { lookAhead } from '../../../../../src/core/policy/jockey/look-ahead.ts';
import { isForecastWrong, observedWork } from '../../../../../src/core/policy/jockey/observed-work.ts';
import { attemptRecord, resultOf } from '../../../../support/job-states.ts';
import { profile, steady, times } from '../../forecast/profiles.ts';

/** A stage of a run: when its tasks were begun, and how long those took that have ended by `now`. */
interface Seen {
  readonly tasks: number;
  readonly begun: readonly { readonly atMs: number; readonly ms: number }[];
  readonly lagMs?: number;
}

/** What of a job's state the estimate reads, where clocks of workers are ahead by so much. */
function stateOf(stages: readonly Seen[], now: number, aheadMs = 0): JobState {
  const live: {
    stage: number;
    claimedAt: number;
    reportedAt: number;
    seenAt: number;
    cancelOrdered: boolean;
  }[] = [];
  const seenOf = (atMs: number, seenAt: number) => ({
    claimedAt: atMs + aheadMs,
    reportedAt: seenAt + aheadMs,
    seenAt,
  });
  const views = stages.map(({ tasks, begun, lagMs = 0 }, index) => {
    const ended = begun.filter(({ atMs, ms }) => atMs + ms <= now);
    for (const { atMs, ms } of begun)
      if (atMs + ms > now)
        live.push({ stage: index, ...seenOf(atMs, (atMs + now) / 2), cancelOrdered: false });
    return {
      index,
      done: ended.length,
      tasks: Array.from({ length: tasks }),
      statistics: {
        samples: ended.map(({ atMs, ms }) => ({ task: { attempts: [seenOf(atMs, atMs + ms)] }, ms })),
        lag: { sumMs: lagMs * begun.length, count: begun.length },
      },
    };
  });
  return { stages: views, live: new Set(live) } as unknown as JobState;
}

const even = (count: number, ms: (index: number) => number) =>
  Array.from({ length: count }, (_, index) => ({ atMs: 0, ms: ms(index) }));

/**
 * The state of whoever has taken the job over at `atMs`: all that had ended by then it read at once, and sees at its time what
 * ends until `now`. Launches waited `turnMs` for their turn before they were made, and `lagMs` until they were claimed.
 */
function takenOver(
  { tasks, begun, lagMs = 0 }: Seen,
  { atMs, now, turnMs }: { readonly atMs: number; readonly now: number; readonly turnMs: number },
): JobState {
  const sourceBytes = Array.from({ length: tasks }, () => 100);
  const state = createJobState([{ name: 'map', tasks, upstream: [], sourceBytes }]);
  openStage(state, 0, [], epochMs(0));
  const idOf = (task: number) => attemptIdOf('map', task, 0);
  const take = (task: number, seenAt: number): void => {
    const { atMs: claimedMs, ms } = begun[task] ?? { atMs: 0, ms: 0 };
    const isEnded = claimedMs + ms <= seenAt;
    const untilMs = isEnded ? claimedMs + ms : seenAt;
    if (isEnded) applyResult(state, resultOf(idOf(task), untilMs), epochMs(seenAt));
    const record = attemptRecord(idOf(task), isEnded ? 'done' : 'running', untilMs, {
      claimedAt: epochMs(claimedMs),
      launchedAt: epochMs(claimedMs - lagMs),
    });
    applyAttempt(state, record, epochMs(seenAt));
  };
  for (const [task, { atMs: claimedMs }] of begun.entries())
    addAttempt(state, idOf(task), 'first', epochMs(claimedMs - lagMs - turnMs));
  for (const task of begun.keys()) take(task, atMs);
  applyObservation(state, { kind: 'taken-over', at: epochMs(atMs) });
  for (const [task, { atMs: claimedMs, ms }] of begun.entries())
    if (claimedMs + ms > atMs && claimedMs + ms <= now) take(task, claimedMs + ms);
  return state;
}

/** Its tasks take 10, 20, …, 100 s, as many each. */
const msOf = (index: number): number => 10_000 * (1 + ((index * 7) % 10));
const later = Array.from({ length: 10 }, (_, index) => msOf(index)).sort((a, b) => a - b);
const spread = profile(
  steady(0, 200, [], { runs: [{ slots: 10, times: times({ later }) }], queueMs: [1_000] }),
);
const predictor = predictorOf({ profile: spread as StoredForecast['profile'] }, 'simulator');
const of = (seen: Seen, now: number) => observedWork(stateOf([seen], now), predictor, epochMs(now));

describe('the work of a run beside what was learned', () => {
  it('is as learned, and as uncertain as runs of a job are, before anything has ended', () => {
    expect(of({ tasks: 200, begun: even(50, () => 100_000) }, 5_000)).toEqual({
      ...{ factor: 1, weight: 0, tasks: 0 },
      spread: expect.closeTo(0.28, 9) as number,
      queueFactor: expect.closeTo(20 / 70, 9) as number,
    });
  });

  it('is not taken for little because short tasks end first', () => {
    // As learned: of 100 that began together the shorter half has ended.
    const seen = of({ tasks: 200, begun: even(100, msOf) }, 50_000);
    expect(seen.factor).toBeCloseTo(1, 2);
    expect(seen.spread).toBeLessThan(0.28);
  });

  it.each([0.6, 1, 1.5, 2])('is seen to be %f times as much while tasks run still', (more) => {
    const begun = even(200, (at) => more * msOf(at)).map(({ ms }, at) => ({
      atMs: 1_000 * at,
      ms,
    }));
    const { factor, weight } = of({ tasks: 400, begun }, 200_000);
    // One stage alone does not outweigh all that runs vary by.
    expect(Math.abs(factor / more - 1)).toBeLessThan(0.2);
    expect(weight).toBeGreaterThan(0.7);
  });

  it.each([-3_600_000, -60_000, 60_000, 3_600_000])(
    'is the same where the clocks of workers are off by %i ms',
    (aheadMs) => {
      const begun = even(200, (at) => msOf(at)).map(({ ms }, at) => ({ atMs: 1_000 * at, ms }));
      const skewed = stateOf([{ tasks: 400, begun }], 200_000, aheadMs);
      expect(observedWork(skewed, predictor, epochMs(200_000))).toEqual(of({ tasks: 400, begun }, 200_000));
    },
  );

  it.each([
    [0.6, 0],
    [1, 0],
    [2, 0],
    // Of what has ended since, the ends were seen.
    [0.6, 30_000],
    [1, 30_000],
    [2, 30_000],
  ])('%f times as much is seen by who took the job over %i ms ago as by who saw all of it', (more, agoMs) => {
    const now = 220_000;
    const begun = even(200, (at) => more * msOf(at))
      .map(({ ms }, at) => ({ atMs: 20_000 + 1_000 * at, ms }))
      .filter(({ atMs }) => atMs < now - agoMs);
    const seen = { tasks: 400, begun, lagMs: 2_000 };
    const state = takenOver(seen, { atMs: now - agoMs, now, turnMs: 10_000 });
    const [after, before] = [observedWork(state, predictor, epochMs(now)), of(seen, now)];
    expect(after.factor).toBeCloseTo(before.factor, 6);
    expect(after.weight).toBeCloseTo(before.weight, 6);
  });

  it('is known the better the more has ended, and never beyond doubt by one stage', () => {
    const after = (count: number) => of({ tasks: 200, begun: even(count, () => 55_000) }, 60_000).spread;
    expect(after(100)).toBeLessThan(after(10));
    expect(after(200)).toBeGreaterThan(0.09);
  });

  it('tells of longer starts by themselves', () => {
    const { queueFactor, factor } = of({ tasks: 200, begun: even(200, msOf), lagMs: 2_000 }, 200_000);
    // 20 as learned, 200 twice as long.
    expect(queueFactor).toBeCloseTo(420 / 220, 6);
    expect(factor).toBeCloseTo(1, 6);
  });

  it('makes a forecast wrong where it is beyond reason', () => {
    expect(isForecastWrong(of({ tasks: 200, begun: even(200, () => 55_000) }, 200_000))).toBe(false);
    expect(isForecastWrong(of({ tasks: 200, begun: even(200, () => 400_000) }, 400_000))).toBe(true);
  });
});

describe('a look ahead', () => {
  const hour = 3_600_000;
  const outlook = (seen: Seen, now: number, before: number | undefined, deadlineMs = hour) =>
    lookAhead({
      ...{
        state: stateOf([seen], now),
        now: epochMs(now),
        since: epochMs(0),
        deadlineAt: epochMs(deadlineMs),
      },
      ...{ kind: 'soft', predictor, config: defaultPolicyConfig.jockey, totalSlots: 100, before },
    });
  const at = (...args: Parameters<typeof outlook>) => outlook(...args).step;

  it('asks for more in a run whose tasks take longer, at once', () => {
    const seen = (more: number): Seen => ({
      tasks: 200,
      begun: even(40, (index) => more * (index % 2 ? 10_000 : 100_000)),
    });
    const [usual, more] = [at(seen(1), 300_000, 4), at(seen(2), 300_000, 4)];
    expect(more.slots).toBeGreaterThan(usual.slots);
    expect(more.slots).toBe(more.raw);
  });

  it('asks for no more slots than there are tasks left', () => {
    expect(at({ tasks: 200, begun: even(197, () => 10_000) }, 4_000_000, 50).slots).toBe(3);
  });

  it('takes on a job that is foretold to end in time, though it asks for all there is while little is known', () => {
    // On all slots 100 s for its longest task and 112 s for the rest, by Amdahl's law, a fifth more, and a 20th of the time.
    const { needed, step } = outlook({ tasks: 200, begun: [] }, 0, undefined, 300_000);
    expect(step.slots).toBe(100);
    expect(needed).toBeLessThan(100);
  });
});
