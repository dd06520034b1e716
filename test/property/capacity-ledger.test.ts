import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MemoryCapacityStore } from '../../src/adapters/memory/memory-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';

const totalSlots = 40;
const ceilings = { budgetSlots: 12, ceilingSlots: 32 };
const jobs = Array.from({ length: 6 }, (_, index) => `job-${index.toString().padStart(12, '0')}` as JobId);
const phases = ['map', 'reduce'];

const arbJob = fc.constantFrom(...jobs);
const arbPhase = fc.constantFrom(...phases);
const arbStep = fc.oneof(
  fc.record({ kind: fc.constant('resize' as const), job: arbJob, wanted: fc.nat(50) }),
  fc.record({
    kind: fc.constant('admit' as const),
    job: arbJob,
    phase: arbPhase,
    unitSlots: fc.integer({ min: 1, max: 9 }),
    mostUnits: fc.integer({ min: 1, max: 4 }),
    besideSlots: fc.nat(9),
  }),
  fc.record({ kind: fc.constant('end' as const), job: arbJob, phase: arbPhase, keep: fc.nat(9) }),
  fc.record({ kind: fc.constant('release' as const), job: arbJob }),
  // Whoever does nothing for so long has died: its grant runs out.
  fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(150) }),
);

it('keeps its sums and its ceilings, whatever schedulers do and whenever they die', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(arbStep, { maxLength: 60 }), async (steps) => {
      const ledger = new RuledCapacityLedger(new MemoryCapacityStore());
      let now = 0;
      const context = () => ({ totalSlots, now: epochMs(now), length: durationMs(100), ...ceilings });
      for (const step of steps) {
        const before = await ledger.view();
        if (step.kind === 'wait') now += step.ms;
        if (step.kind === 'resize') await ledger.resize(step.job, step.wanted, context());
        if (step.kind === 'end') await ledger.releaseClones(step.job, step.phase, step.keep);
        if (step.kind === 'release') await ledger.release(step.job);
        if (step.kind === 'admit') {
          const { units } = await ledger.admitClones(step.job, { ...step, leastUnits: 1 }, context());
          const charged = (await ledger.view()).grants[step.job]?.clones?.[step.phase] ?? 0;
          const held = before.grants[step.job]?.clones?.[step.phase] ?? 0;
          expect(charged).toBe(held > 0 ? held : units * step.unitSlots);
          if (held === 0 && units > 0) {
            const { usedSlots, cloneSlots } = await ledger.view();
            expect(usedSlots).toBeLessThanOrEqual(ceilings.ceilingSlots);
            expect(cloneSlots).toBeLessThanOrEqual(ceilings.budgetSlots);
          }
        }
        const { usedSlots, cloneSlots, grants } = await ledger.view();
        const all = Object.values(grants);
        expect(usedSlots).toBe(all.reduce((sum, { slots }) => sum + slots, 0));
        const charges = all.flatMap(({ clones }) => Object.values(clones ?? {}));
        expect(cloneSlots).toBe(charges.reduce((sum, slots) => sum + slots, 0));
        expect(usedSlots).toBeLessThanOrEqual(totalSlots);
        expect(cloneSlots).toBeLessThanOrEqual(ceilings.budgetSlots);
        expect(charges.every((slots) => slots > 0)).toBe(true);
      }
      for (const job of jobs) await ledger.release(job);
      expect(await ledger.view()).toMatchObject({ usedSlots: 0, cloneSlots: 0, grants: {} });
    }),
    { numRuns: 300 },
  );
});
