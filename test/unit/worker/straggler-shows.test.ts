import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { beatingAttempt } from '../../support/beating-attempt.ts';

const steps = 600;

/** When it showed of an attempt that goes on as its stage does up to a share of its work, and is stuck from then on. */
async function shownAfterMs(ordinaryMs: number, stuckAt: number): Promise<number> {
  const clock = new MemoryClock();
  const { attempts, space, claimedAt: began, meter, heart } = await beatingAttempt(clock, 10_000);
  meter.bytesTotal = 1_000_000;
  for (let step = 1; step <= steps; step++) {
    await clock.advance(ordinaryMs / steps);
    meter.bytesRead = Math.floor(meter.bytesTotal * Math.min(stuckAt, step / steps));
    const { notes } = await attempts.told(space);
    const [record] = (await attempts.all(space)).attempts;
    // By a note at once, or else by what a report says that was due: 2 % less than its age makes one expect.
    const share = (record?.progress?.bytesRead ?? 0) / meter.bytesTotal;
    const reportedMs = (record?.reportedAt ?? began) - began;
    if (notes.length > 0 || share < reportedMs / ordinaryMs - 0.02) {
      await heart.stop();
      return clock.now() - began;
    }
  }
  void heart.stop();
  return Infinity;
}

describe('an attempt that gets stuck', () => {
  it.each([
    [20_000, 0.4],
    [60_000, 0.2],
    [60_000, 0.5],
    [60_000, 0.85],
    [300_000, 0.5],
    [600_000, 0.3],
  ])('shows within a tenth of the %d ms that its stage takes, at %d of its work', async (ordinary, share) => {
    const late = (await shownAfterMs(ordinary, share)) - ordinary * share;
    expect(late).toBeGreaterThan(0);
    expect(late).toBeLessThanOrEqual(ordinary / 10);
  });
});
