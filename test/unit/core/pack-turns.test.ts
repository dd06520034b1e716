import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../src/contracts/units.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import {
  applyAttempt,
  applyResult,
  loseAttempt,
  resumeAttempt,
  withdrawAttempt,
} from '../../../src/core/model/job-state.ts';
import type { AttemptView, JobState } from '../../../src/core/model/job-view.ts';
import { meanMs } from '../../../src/core/model/stage-statistics.ts';
import { workerMsOf } from '../../../src/core/estimate/progress-rate.ts';
import { attempt, attemptRecord, carryOut, failure, resultOf } from '../../support/job-states.ts';
import { afterFirstWave, begin, finish, idsOf, mapOf, tick } from '../../support/packed-map.ts';

const at = epochMs;

function viewOf(state: JobState, id: string): AttemptView {
  const view = state.attempts.get(attempt(id));
  if (view === undefined) throw new Error(`no attempt ${id}`);
  return view;
}

/** The scheduler sees at a time that a worker has done an attempt from one time to another. */
function seen(state: JobState, id: string, [from, to]: readonly [number, number], now: number): void {
  applyResult(state, resultOf(id, to), at(now));
  applyAttempt(state, attemptRecord(id, 'done', to, { claimedAt: at(from) }), at(now));
}

const launch = (id: string, behind?: string): Decision => ({
  kind: 'launch',
  attemptId: attempt(id),
  reason: 'first',
  ...(behind === undefined ? {} : { behind: attempt(behind) }),
});

describe('what an attempt that rode has cost', () => {
  it('is all its time, where the end of the one before it was seen late, with its own or after it', () => {
    const state = afterFirstWave(24, 4);
    tick(state, 101, 4);
    seen(state, 'map/4/0', [110, 200], 290);
    seen(state, 'map/5/0', [200, 300], 310);
    expect(workerMsOf(viewOf(state, 'map/5/0'), at(310))).toBe(100);
    seen(state, 'map/9/0', [110, 210], 500);
    seen(state, 'map/10/0', [210, 330], 500);
    expect(workerMsOf(viewOf(state, 'map/10/0'), at(500))).toBe(120);
  });

  it('is the same for whoever takes the job over when all has ended', () => {
    const state = mapOf(4);
    carryOut(state, [launch('map/0/0'), launch('map/1/0', 'map/0/0')], 100);
    seen(state, 'map/0/0', [110, 210], 60_000);
    seen(state, 'map/1/0', [210, 330], 60_000);
    expect(workerMsOf(viewOf(state, 'map/1/0'), at(60_000))).toBe(120);
  });

  it('is so where it was launched by itself just as its worker had taken it up', () => {
    const state = afterFirstWave();
    tick(state, 101, 4);
    loseAttempt(state, attempt('map/4/0'), at(200));
    expect(tick(state, 290, 5)[0]).toBe('map/5/0');
    seen(state, 'map/5/0', [200, 300], 310);
    expect(workerMsOf(viewOf(state, 'map/5/0'), at(310))).toBe(100);
  });

  it('is no more than its worker can have had it, by the clock of whoever waited', () => {
    const state = mapOf(4);
    carryOut(state, [launch('map/0/0'), launch('map/1/0', 'map/0/0')], 100);
    // Its worker's clock is behind, and it was given up by another.
    const lost = attemptRecord('map/1/0', 'lost', 200, { claimedAt: at(-50_000), endedAt: at(400) });
    applyAttempt(state, lost, at(400));
    expect(workerMsOf(viewOf(state, 'map/1/0'), at(400))).toBe(300);
  });
});

describe('an attempt for whose own launch there was no room', () => {
  it('leaves its pack as it is, whose worker goes on', () => {
    const state = afterFirstWave(24, 4);
    tick(state, 101, 4);
    for (const head of [4, 9, 14, 19]) begin(state, `map/${String(head)}/0`, 102);
    expect(tick(state, 103, 5)).toEqual(['map/13/0']);
    withdrawAttempt(state, attempt('map/13/0'), at(1_103));
    expect(idsOf(state.riding)).toContain('map/13/0');
    // None of the others has lost its worker: without slots to spare nothing is launched.
    expect(tick(state, 104, 4)).toEqual([]);
    expect(tick(state, 105, 5)).not.toContain('map/10/0');
    finish(state, 'map/9/0', 202);
    expect(viewOf(state, 'map/10/0').place).toBe('carrier');
    expect(idsOf(state.live)).toContain('map/10/0');
    for (const [task, now] of [
      [10, 302],
      [11, 402],
      [12, 502],
    ] as const)
      finish(state, `map/${String(task)}/0`, now);
    expect(viewOf(state, 'map/13/0').place).toBe('carrier');
  });
});

describe('how long launches take', () => {
  it('is not told by an attempt that the worker of its pack took up before its own launch did', () => {
    const state = afterFirstWave(24, 4);
    tick(state, 101, 4);
    for (const head of [4, 9, 14, 19])
      applyAttempt(
        state,
        attemptRecord(`map/${String(head)}/0`, 'running', 151, {
          claimedAt: at(151),
          node: `node-${String(head)}`,
        }),
        at(151),
      );
    const [stage] = state.stages;
    const lagMs = (): number => (stage === undefined ? 0 : meanMs(stage.statistics.lag));
    const before = lagMs();
    expect(before).toBeGreaterThan(0);
    expect(tick(state, 152, 5)).toEqual(['map/13/0']);
    const claimed = { claimedAt: at(153), node: 'node-9' };
    applyAttempt(state, attemptRecord('map/13/0', 'running', 153, claimed), at(153));
    expect(lagMs()).toBe(before);
    expect(tick(state, 154, 6)).toEqual(['map/18/0']);
    const fresh = { claimedAt: at(1_154), node: 'node-new' };
    applyAttempt(state, attemptRecord('map/18/0', 'running', 1_154, fresh), at(1_154));
    expect(lagMs()).toBeGreaterThan(before);
  });
});

describe('a pack', () => {
  it('passes its turn on where its head rode with another that was never launched, as the log tells', () => {
    const state = mapOf(4);
    carryOut(state, [launch('map/0/0'), launch('map/1/0', 'map/0/0'), launch('map/2/0', 'map/0/0')], 100);
    // There was no room for it, and they were shared out otherwise.
    carryOut(state, [launch('map/0/0'), launch('map/1/0'), launch('map/2/0', 'map/1/0')], 1_200);
    expect(idsOf(state.live)).toEqual(['map/0/0', 'map/1/0']);
    expect(idsOf(state.riding)).toEqual(['map/2/0']);
    finish(state, 'map/1/0', 1_400);
    expect(viewOf(state, 'map/2/0').place).toBe('carrier');
    expect(idsOf(state.live)).toEqual(['map/0/0', 'map/2/0']);
  });

  it('is over where that head ends before it began, and with it its worker', () => {
    const state = mapOf(4);
    carryOut(state, [launch('map/0/0'), launch('map/1/0', 'map/0/0'), launch('map/2/0', 'map/0/0')], 100);
    carryOut(state, [launch('map/0/0'), launch('map/1/0'), launch('map/2/0', 'map/1/0')], 1_200);
    loseAttempt(state, attempt('map/1/0'), at(1_400));
    expect(viewOf(state, 'map/2/0').place).toBeUndefined();
    expect(tick(state, 1_401, 3)).toContain('map/2/0');
  });

  it('goes on where its head was given up that a worker had taken up just before', () => {
    const state = afterFirstWave(24, 4);
    tick(state, 101, 4);
    loseAttempt(state, attempt('map/4/0'), at(150));
    expect(resumeAttempt(state, attempt('map/4/0'), at(151))).toBe(true);
    expect(tick(state, 152, 4)).toEqual([]);
    finish(state, 'map/4/0', 200);
    expect(viewOf(state, 'map/5/0').place).toBe('carrier');
  });

  it('is forgotten once none of it lives, also where one that was taken up in turn has failed', () => {
    const state = afterFirstWave(24, 4);
    tick(state, 101, 4);
    finish(state, 'map/4/0', 200);
    const failed = { claimedAt: at(200), failure: failure('user-code') };
    applyAttempt(state, attemptRecord('map/5/0', 'failed', 300, failed), at(300));
    expect(tick(state, 301, 7)).toEqual(expect.arrayContaining(['map/6/0', 'map/7/0', 'map/8/0']));
    expect(state.packs.has(attempt('map/4/0'))).toBe(false);
  });
});
