import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobId } from '../../src/contracts/ids.ts';
import { type Claim, fairShares } from '../../src/core/capacity/fair-shares.ts';

const idOf = (index: number): JobId => `job-${index.toString().padStart(12, '0')}` as JobId;

/** Slot by slot: the next one goes to whoever has least per weight of those that want more, the oldest first. */
function bySlot(totalSlots: number, claims: readonly Claim[]): ReadonlyMap<JobId, number> {
  const shares = new Map(claims.map(({ jobId, floor = 0 }) => [jobId, floor]));
  const of = (claim: Claim): number => shares.get(claim.jobId) ?? 0;
  const kept = claims.reduce((sum, { floor = 0 }) => sum + floor, 0);
  for (let slot = kept; slot < totalSlots; slot++) {
    const asking = claims.filter((claim) => of(claim) < claim.wanted);
    asking.sort(
      (a, b) => of(a) / a.weight - of(b) / b.weight || a.since - b.since || (a.jobId < b.jobId ? -1 : 1),
    );
    const [next] = asking;
    if (next === undefined) break;
    shares.set(next.jobId, of(next) + 1);
  }
  return shares;
}

const arbClaims = (weight: fc.Arbitrary<number>) =>
  fc
    .array(fc.record({ wanted: fc.nat(30), weight, since: fc.nat(5) }), { maxLength: 12 })
    .map((claims) => claims.map((claim, index): Claim => ({ ...claim, jobId: idOf(index) })));

describe('shares of slots', () => {
  it('are those of giving slot by slot to whoever has least', () => {
    fc.assert(
      fc.property(fc.nat(150), arbClaims(fc.constant(1)), (totalSlots, claims) => {
        expect(fairShares(totalSlots, claims)).toEqual(bySlot(totalSlots, claims));
      }),
      { numRuns: 2_000 },
    );
  });

  it('are those of giving slot by slot above what each keeps', () => {
    const arbKept = fc
      .array(fc.record({ wanted: fc.nat(30), weight: fc.constant(1), since: fc.nat(5), floor: fc.nat(20) }), {
        maxLength: 12,
      })
      .map((claims) => claims.map((claim, index): Claim => ({ ...claim, jobId: idOf(index) })));
    fc.assert(
      fc.property(fc.nat(150), arbKept, (totalSlots, claims) => {
        expect(fairShares(totalSlots, claims)).toEqual(bySlot(totalSlots, claims));
      }),
      { numRuns: 2_000 },
    );
  });

  it('with weights are whole, spend what there is, and leave nobody a slot behind another that could give', () => {
    fc.assert(
      fc.property(fc.nat(150), arbClaims(fc.constantFrom(1, 2, 3, 5)), (totalSlots, claims) => {
        const shares = fairShares(totalSlots, claims);
        const wanted = claims.reduce((sum, claim) => sum + claim.wanted, 0);
        const given = [...shares.values()].reduce((sum, share) => sum + share, 0);
        expect(given).toBe(Math.min(totalSlots, wanted));
        for (const poor of claims) {
          const has = shares.get(poor.jobId) ?? 0;
          expect(Number.isInteger(has) && has >= 0 && has <= poor.wanted).toBe(true);
          if (has === poor.wanted) continue;
          for (const rich of claims) {
            const other = shares.get(rich.jobId) ?? 0;
            // One slot less for the other would still not put it below.
            expect((other - 1) / rich.weight).toBeLessThanOrEqual((has + 1) / poor.weight + 1e-9);
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('give the oldest one each where there are more jobs than slots', () => {
    const claims = Array.from({ length: 1_000 }, (_, index): Claim => ({
      jobId: idOf(index),
      wanted: 5,
      weight: 1,
      since: 1_000 - index,
    }));
    const shares = fairShares(900, claims);
    expect(shares.get(idOf(999))).toBe(1);
    expect(shares.get(idOf(100))).toBe(1);
    expect(shares.get(idOf(99))).toBe(0);
  });
});
