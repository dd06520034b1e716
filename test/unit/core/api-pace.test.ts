import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationMs, type EpochMs, epochMs, later } from '../../../src/contracts/units.ts';
import {
  afterCall,
  afterRefusal,
  type ApiPace,
  paceAt,
  startPace,
  takeCall,
} from '../../../src/core/capacity/api-pace.ts';

const start = epochMs(1_700_000_000_000);
const at = (ms: number): EpochMs => epochMs(start + ms);

/** Takes as many calls as may be made at a time; answers how many, and the pace after them. */
function takeAll(pace: ApiPace, now: EpochMs): { readonly taken: number; readonly pace: ApiPace } {
  let left = pace;
  for (let taken = 0; ; taken++) {
    const next = takeCall(left, now);
    if (next === undefined) return { taken, pace: left };
    left = next;
  }
}

const arbRate = fc.record({
  perS: fc.integer({ min: 1, max: 100 }),
  burst: fc.integer({ min: 1, max: 200 }),
});
/** Steps of a clock that also runs back and jumps by an hour, and what the service made of the calls then. */
const arbSteps = fc.array(
  fc.record({
    ms: fc.oneof(fc.integer({ min: -2_000, max: 5_000 }), fc.constantFrom(-3_600_000, 3_600_000)),
    isRefused: fc.boolean(),
  }),
  { maxLength: 60 },
);

describe('the pace of an API', () => {
  it('lets a burst through at once, and then so many a second', () => {
    const first = takeAll(startPace({ perS: 20, burst: 100 }, start), start);
    expect(first.taken).toBe(100);
    const second = takeAll(first.pace, at(1_000));
    expect(second.taken).toBe(20);
    expect(takeAll(second.pace, at(1_040)).taken).toBe(0);
    expect(takeAll(second.pace, at(1_050)).taken).toBe(1);
    // A rest adds up to one burst, however long it is.
    expect(takeAll(second.pace, at(3_600_000)).taken).toBe(100);
  });

  it('is halved by refusals once a second, and given back by calls that are taken', () => {
    const refused = afterRefusal(startPace({ perS: 20, burst: 100 }, start), start);
    expect(refused).toMatchObject({ perS: 10, tokens: 0 });
    // Calls that were under way together are refused together.
    expect(afterRefusal(refused, at(999)).perS).toBe(10);
    const again = afterRefusal(refused, at(1_000));
    expect(again.perS).toBe(5);
    let pace = again;
    for (let calls = 0; calls < 74; calls++) pace = afterCall(pace);
    expect(pace.perS).toBeCloseTo(19.8, 6);
    for (let calls = 0; calls < 10; calls++) pace = afterCall(pace);
    expect(pace.perS).toBe(20);
  });

  it('never comes to a stop, whatever is refused', () => {
    let pace = startPace({ perS: 20, burst: 100 }, start);
    for (let second = 0; second < 600; second++) pace = afterRefusal(pace, at(second * 1_000));
    expect(pace.perS).toBe(0.5);
    expect(takeAll(pace, at(599_000 + 1_999)).taken).toBe(0);
    expect(takeAll(pace, at(599_000 + 2_000)).taken).toBe(1);
  });

  it('is held in every window of time, by a clock that runs as it likes', () => {
    fc.assert(
      fc.property(arbRate, arbSteps, (rate, steps) => {
        let [pace, now, latest, passedMs, taken] = [startPace(rate, start), start, start, 0, 0];
        for (const { ms, isRefused } of steps) {
          now = ms < 0 ? epochMs(now + ms) : later(now, durationMs(ms));
          passedMs += Math.max(0, now - latest);
          latest = epochMs(Math.max(latest, now));
          const all = takeAll(pace, now);
          taken += all.taken;
          pace = all.taken === 0 ? all.pace : isRefused ? afterRefusal(all.pace, now) : afterCall(all.pace);
          // What was let through since the beginning, by the time that has passed, back and forth counted once.
          expect(taken).toBeLessThanOrEqual(rate.burst + (rate.perS * passedMs) / 1_000 + 1e-6);
          expect(pace.perS).toBeGreaterThanOrEqual(0.5);
          expect(pace.perS).toBeLessThanOrEqual(rate.perS);
          expect(pace.tokens).toBeGreaterThanOrEqual(0);
        }
        // Whatever happened before: two seconds after the clock is where it was, something may be called.
        expect(takeAll(pace, later(latest, durationMs(2_000))).taken).toBeGreaterThan(0);
      }),
    );
  });

  it('does not run back with the clock', () => {
    const empty = takeAll(startPace({ perS: 20, burst: 100 }, start), at(10_000)).pace;
    expect(paceAt(empty, start)).toEqual(empty);
    expect(takeAll(paceAt(empty, start), at(10_000)).taken).toBe(0);
  });
});
