import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { reportsIn } from '../../../src/core/model/progress-history.ts';
import { beatingAttempt } from '../../support/beating-attempt.ts';

describe('an attempt of two seconds that begins slowly', () => {
  it('tells by its looks how it began, which its one or two reports do not', async () => {
    const clock = new MemoryClock();
    const { meter, heart } = await beatingAttempt(clock, 10_000);
    meter.bytesTotal = 1_000;
    for (let ms = 50; ms <= 2_000; ms += 50) {
      await clock.advance(50);
      // A twentieth in the first 0.8 s, the rest in 1.2.
      meter.bytesRead = ms <= 800 ? Math.floor(ms / 16) : 50 + Math.floor(((ms - 800) * 950) / 1_200);
    }
    await heart.stop();
    const { history, looks } = meter.progress();
    expect(reportsIn(history, 1_000).length).toBeLessThanOrEqual(2);
    const seen = reportsIn(looks, 1_000);
    // Each quarter of a second.
    expect(seen.length).toBeGreaterThanOrEqual(7);
    for (const [place, { workedMs }] of seen.entries())
      expect(workedMs - (seen[place - 1]?.workedMs ?? 0)).toBeLessThanOrEqual(300);
    const early = seen.filter(({ workedMs }) => workedMs <= 800);
    expect(early.length).toBeGreaterThanOrEqual(2);
    for (const { bytesRead } of early) expect(bytesRead).toBeLessThanOrEqual(51);
  });
});
