import { describe, expect, it } from 'vitest';
import type { AttemptId } from '../../../../src/contracts/ids.ts';
import type { AttemptRecord } from '../../../../src/contracts/records.ts';
import { durationMs, type EpochMs, epochMs } from '../../../../src/contracts/units.ts';
import { isNews } from '../../../../src/core/model/attempt-news.ts';
import {
  addAttempt,
  applyAttempt,
  cancelAttempt,
  createJobState,
  openStage,
} from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import { dueReads, noteReads } from '../../../../src/core/policy/due-reads.ts';

const id = 'map/0/0' as AttemptId;
const tickMs = durationMs(1_000);
const reportMs = durationMs(10_000);
const at = (ms: number): EpochMs => epochMs(1_700_000_000_000 + ms);

const record = (beat: number, nextMs: number, state: AttemptRecord['state'] = 'running'): AttemptRecord => ({
  attemptId: id,
  state,
  order: 'continue',
  launchedAt: at(0),
  claimedAt: at(0),
  beat,
  nextMs: durationMs(nextMs),
});

/** A job of one task whose attempt was seen to work at 0. */
function running(nextMs: number): JobState {
  const state = createJobState([{ name: 'map', tasks: 1, upstream: [], sourceBytes: [1] }]);
  openStage(state, 0, [1], at(0));
  addAttempt(state, id, 'first', at(0));
  applyAttempt(state, record(1, nextMs), at(0));
  return state;
}

/** How often an attempt is read that writes at these times, each time telling when it writes next, by ticks so long. */
function reads(
  writes: readonly number[],
  everyMs: number,
): { readonly reads: number; readonly latestMs: number } {
  const until = writes.at(-1) ?? 0;
  const state = running(writes[0] ?? 0);
  let count = 0;
  let latestMs = 0;
  for (let now = everyMs; now < until + 2 * everyMs; now += everyMs) {
    const terms = { now: at(now), tickMs, reportMs };
    if (![...dueReads(state, terms).records].includes(id)) continue;
    count += 1;
    const written = writes.filter((write) => write <= now).length;
    const [last = 0, next = last + reportMs] = [writes[written - 1], writes[written]];
    const before = state.attempts.get(id)?.beat ?? 0;
    if (written + 1 > before) latestMs = Math.max(latestMs, now - last);
    applyAttempt(state, record(written + 1, next - last), at(now));
    noteReads(state, [id], at(now), 'records');
  }
  return { reads: count, latestMs };
}

describe('the reads of a running attempt', () => {
  it.each([0, 1, 137, 500, 731, 999])('are one for each report, %d ms after a tick', (offsetMs) => {
    const reports = Array.from({ length: 20 }, (_, index) => 10_000 * (index + 1) + offsetMs);
    const { reads: count, latestMs } = reads(reports, 1_000);
    // The first was told of by a claim that was seen at once.
    expect(count).toBeLessThanOrEqual(reports.length + 1);
    expect(latestMs).toBeLessThanOrEqual(1_500);
  });

  it('are at most three for two reports whose times have nothing to do with ticks', () => {
    const reports = Array.from({ length: 100 }, (_, index) => 3_137 * (index + 1));
    const { reads: count, latestMs } = reads(reports, 1_013);
    expect(count).toBeLessThanOrEqual(150);
    expect(latestMs).toBeLessThanOrEqual(1_600);
  });

  it('come every time once a report is late, until it is there', () => {
    const { reads: count } = reads([30_000], 1_000);
    const state = running(10_000);
    const due = [9_000, 10_000, 11_000, 14_000].map(
      (now) => dueReads(state, { now: at(now), tickMs, reportMs }).records.length,
    );
    expect(count).toBeGreaterThan(0);
    expect(due).toEqual([0, 1, 1, 0]);
    // By then its task's result is read with it, consistently.
    expect(dueReads(state, { now: at(14_000), tickMs, reportMs }).outputs).toEqual([id]);
  });
});

describe('the reads of an attempt that was told to stop', () => {
  it('are of the result of its task, too, as its reports are due', () => {
    const state = running(10_000);
    cancelAttempt(state, id, at(1_000), 'outlasts-lambda');
    expect(dueReads(state, { now: at(9_000), tickMs, reportMs })).toEqual({ records: [], outputs: [] });
    expect(dueReads(state, { now: at(10_000), tickMs, reportMs })).toEqual({ records: [], outputs: [id] });
  });
});

describe('a record that is older than what was seen', () => {
  it('is no news, whatever it says', () => {
    const state = running(10_000);
    applyAttempt(state, record(3, 10_000), at(2_000));
    const seen = state.attempts.get(id);
    expect(seen).toBeDefined();
    if (seen === undefined) return;
    for (const older of [
      record(1, 500),
      record(2, 500),
      record(0, 500, 'launched'),
      record(2, 500, 'lost'),
    ]) {
      expect(isNews(seen, older)).toBe(false);
      applyAttempt(state, older, at(3_000));
    }
    expect(state.attempts.get(id)).toMatchObject({
      state: 'running',
      beat: 3,
      seenAt: at(2_000),
      nextMs: 10_000,
    });
    // Others than its worker end it without counting.
    expect(isNews(seen, record(3, 500, 'lost'))).toBe(true);
  });
});
