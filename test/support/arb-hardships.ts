import fc from 'fast-check';
import { type Ill, illKinds } from './hard-process.ts';
import { harms, type Loss } from './lossy-jobs.ts';

/** A loss before one of the first workers begins, but for the very first. */
export const arbLossUpTo = (lastBefore: number): fc.Arbitrary<Loss> =>
  fc.record({
    before: fc.integer({ min: 2, max: lastBefore }),
    which: fc.nat({ max: 30 }),
    harm: fc.constantFrom(...harms),
  });

const illsOf = (kinds: readonly Ill['kind'][], calls: number): fc.Arbitrary<Ill[]> =>
  fc
    .array(
      fc.record({
        kind: fc.constantFrom(...kinds),
        call: fc.integer({ min: 1, max: calls }),
        ms: fc.constantFrom(6_000, 60_000, 20 * 60_000),
      }),
      { minLength: 1, maxLength: 2 },
    )
    .map((ills) => ills.toSorted((a, b) => a.call - b.call));

const coordinators = ['scheduler 1', 'scheduler 2', 'finish 1'];

/** Any ills of coordinators, and freezes and deaths of some of these workers. */
export const arbIllsOf = (workers: readonly string[]): fc.Arbitrary<Readonly<Record<string, Ill[]>>> =>
  fc
    .tuple(
      fc.dictionary(fc.constantFrom(...coordinators), illsOf(illKinds, 80), { maxKeys: 2 }),
      fc.dictionary(fc.constantFrom(...workers), illsOf(['freeze-before', 'freeze-after', 'dies'], 8), {
        maxKeys: 2,
      }),
    )
    .map(([steps, attempts]) => ({ ...steps, ...attempts }));
