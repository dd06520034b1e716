import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Ill, illKinds } from '../support/hard-process.ts';
import { hardJob } from '../support/hard-jobs.ts';

const hourMs = 3_600_000;
/** Who may be hit: of each task its first attempt, so that no task fails for good. */
const victims = [
  'scheduler 1',
  'scheduler 2',
  'scheduler 3',
  'plan 1',
  'finish 1',
  ...['tokenize/0/0 1', 'tokenize/1/0 1', 'count/0/0 1', 'count/1/0 1'],
];
const arbIll: fc.Arbitrary<Ill> = fc.record({
  kind: fc.constantFrom(...illKinds),
  call: fc.integer({ min: 1, max: 60 }),
  ms: fc.constantFrom(6_000, 60_000, 90_000, 20 * 60_000),
});
const arbIlls = fc.dictionary(
  fc.constantFrom(...victims),
  fc.array(arbIll, { minLength: 1, maxLength: 3 }).map((ills) => ills.toSorted((a, b) => a.call - b.call)),
  { maxKeys: 4 },
);
/**
 * A call of a reducer that takes longer than Lambda lets the worker live fails its job by right, which has no Fargate to
 * go to, and whose operator cannot be gone on with: one that is frozen for as long is given up by its silence, and its task is
 * done by another.
 */
const withinWorkersTime = (ills: Readonly<Record<string, Ill[]>>): Record<string, Ill[]> =>
  Object.fromEntries(
    Object.entries(ills).map(([victim, each]) => [
      victim,
      each.map((ill) =>
        victim.startsWith('count/') && ill.kind === 'slow' ? { ...ill, ms: Math.min(ill.ms, 90_000) } : ill,
      ),
    ]),
  );

/** A clock for each process, by its number among all. */
const arbClocks = fc.array(fc.constantFrom(-hourMs, -20_000, 0, 20_000, hourMs), {
  minLength: 4,
  maxLength: 12,
});
const arbDeliveries = fc.array(
  fc.record({
    afterMs: fc.constantFrom(300, 5_000, 45_000),
    againMs: fc.option(fc.constantFrom(400, 30_000, 20 * 60_000), { nil: undefined }),
  }),
  { minLength: 1, maxLength: 5 },
);
const arbTaskMs = fc.constantFrom(500, 5_000, 40_000);

describe('a job whose processes freeze, die and err by the clock, and whose calls come late, twice or never', () => {
  it('ends well and exact, each launch explained by a failure or a copy', async () => {
    await fc.assert(
      fc.asyncProperty(
        arbIlls,
        arbClocks,
        arbDeliveries,
        arbTaskMs,
        async (ills, clocks, launches, taskMs) => {
          let processes = 0;
          let delivered = 0;
          const { complaints } = await hardJob({
            ...{ ills: withinWorkersTime(ills), taskMs, deathToldMs: 2_000 },
            offMs: () => clocks[processes++ % clocks.length] ?? 0,
            delivery: () => {
              const { afterMs, againMs } = launches[delivered++ % launches.length] ?? { afterMs: 300 };
              return { afterMs, ...(againMs === undefined ? {} : { againMs }) };
            },
          });
          expect(complaints).toEqual([]);
        },
      ),
      { numRuns: 120 },
    );
  }, 900_000);

  // Behind a clock two hours before its own, the lease of whoever serves the job looks as if it had run out long ago.
  it('gives up nobody who is well where a scheduler slept on its way into the job', async () => {
    for (let call = 1; call <= 24; call++) {
      const { complaints } = await hardJob({
        ...{ ills: { 'scheduler 1': [{ kind: 'freeze-before', call, ms: 90_000 }] }, taskMs: 40_000 },
        offMs: (name) => (name === 'scheduler 1' ? hourMs : -hourMs),
      });
      expect(complaints, `call ${String(call)}`).toEqual([]);
    }
  }, 300_000);

  it.each([-hourMs, hourMs])('ends well where each other clock is %i ms off', async (offMs) => {
    for (const parity of [0, 1]) {
      let processes = 0;
      const { complaints, verdict } = await hardJob({
        taskMs: 20_000,
        offMs: () => (processes++ % 2 === parity ? offMs : 0),
      });
      expect(complaints).toEqual([]);
      expect(verdict?.launched).toHaveLength(5);
    }
  });
});
