import { describe, expect, it } from 'vitest';
import { joinRatio, sampledRatio } from '../../support/shuffle-ratios.ts';

const mib = 1024 * 1024;

describe('what is moved for a byte of input', () => {
  it('is little more than a byte by a join of CSV, whose rows do not carry the names of their columns', async () => {
    // 2.59 once: 665 MB of shuffle for 257 MB of CSV.
    const ratio = await joinRatio(5_000);
    expect(ratio).toBeLessThanOrEqual(1.15);
    // Its key goes once and not twice, but nothing is lost.
    expect(ratio).toBeGreaterThan(0.9);
  });

  it.each([64, 256, 1_024])('is under a twentieth by the sampling of a sort of %d MiB', (size) => {
    expect(sampledRatio(size * mib)).toBeLessThanOrEqual(0.05);
    expect(sampledRatio(size * mib)).toBeGreaterThan(0);
  });
});
