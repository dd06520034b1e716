import fc from 'fast-check';
import { expect, it } from 'vitest';
import { MemoryCapacityStore } from '../../src/adapters/memory/memory-capacity-store.ts';
import { RuledCapacityLedger } from '../../src/app/capacity-ledger.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import type { CloneAdmission, CloneRequest } from '../../src/core/capacity/clone-admission.ts';
import type { CapacityGrant, CapacityView } from '../../src/app/capacity-ledger.ts';

const totalSlots = 40;
const ceilings = { budgetSlots: 12, ceilingSlots: 32 };
/** Tasks of each job, by its place. The last says nothing of its size: it neither takes nor gives. */
const sizes = [2, 5, 5, 20, 90, undefined] as const;
const jobs = sizes.map((_, index) => `job-${index.toString().padStart(12, '0')}` as JobId);
const sizeOf = (jobId: string): number | undefined => sizes[jobs.indexOf(jobId as JobId)];

const arbJob = fc.constantFrom(...jobs);
const arbPhase = fc.constantFrom('map', 'reduce');
const arbAdmission = fc.record({
  kind: fc.constant('admit' as const),
  job: arbJob,
  phase: arbPhase,
  tasks: fc.integer({ min: 1, max: 4 }),
  copies: fc.integer({ min: 2, max: 3 }),
  besideSlots: fc.nat(6),
});
const arbStep = fc.oneof(
  { weight: 5, arbitrary: arbAdmission },
  fc.record({ kind: fc.constant('resize' as const), job: arbJob, wanted: fc.nat(20) }),
  fc.record({ kind: fc.constant('end' as const), job: arbJob, phase: arbPhase, keep: fc.nat(9) }),
  fc.record({ kind: fc.constant('release' as const), job: arbJob }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.nat(20) }),
);

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
const chargesOf = ({ clones = {} }: CapacityGrant): number => sum(Object.values(clones));

function expectSound({ usedSlots, cloneSlots, grants }: CapacityView): void {
  const all = Object.values(grants);
  expect(usedSlots).toBe(sum(all.map(({ slots }) => slots)));
  expect(cloneSlots).toBe(sum(all.map(chargesOf)));
  expect(usedSlots).toBeLessThanOrEqual(totalSlots);
  expect(cloneSlots).toBeLessThanOrEqual(ceilings.budgetSlots);
  for (const { clones = {}, addedSlots = {}, preempted = {} } of all) {
    for (const [phase, slots] of Object.entries(clones)) {
      expect(slots).toBeGreaterThan(0);
      expect(addedSlots[phase] ?? 0).toBeLessThanOrEqual(slots);
      expect(preempted[phase]).toBeUndefined();
    }
  }
}

/** The ledger as it is for a job that asks: without its own. */
const othersOf = ({ grants }: CapacityView, jobId: JobId): (readonly [string, CapacityGrant])[] =>
  Object.entries(grants).filter(([id]) => id !== jobId);

/** What must be true of an admission, by what the ledger was before and is after. */
function expectRightVictims(
  asked: { readonly jobId: JobId; readonly request: CloneRequest },
  { units, victims = [] }: CloneAdmission,
  before: CapacityView,
  after: CapacityView,
): void {
  const { jobId, request } = asked;
  const others = othersOf(before, jobId);
  const larger = others.flatMap(([id, grant]) =>
    (sizeOf(id) ?? 0) > (request.jobTasks ?? Infinity)
      ? Object.entries(grant.clones ?? {}).map(([phase, slots]) => ({
          id,
          phase,
          slots,
          freed: grant.addedSlots?.[phase] ?? 0,
        }))
      : [],
  );
  // A job gives back no more slots than it has, of however many phases its clones are taken.
  const freedBy = (taken: typeof larger): number =>
    sum(
      others.map(([id, { slots }]) =>
        Math.min(slots, sum(taken.filter((each) => each.id === id).map(({ freed }) => freed))),
      ),
    );
  const own = before.grants[jobId];
  const cloneSlots =
    sum(others.map(([, grant]) => chargesOf(grant))) + (own === undefined ? 0 : chargesOf(own));
  const usedSlots = sum(others.map(([, { slots }]) => slots)) + request.besideSlots;
  const fits = (taken: typeof larger): boolean =>
    cloneSlots - sum(taken.map(({ slots }) => slots)) + request.unitSlots <= ceilings.budgetSlots &&
    usedSlots - freedBy(taken) + request.unitSlots <= ceilings.ceilingSlots &&
    usedSlots + (taken.length === 0 ? 0 : request.unitSlots) <= totalSlots;
  const taken = larger.filter(({ id, phase }) =>
    victims.some((victim) => victim.jobId === id && victim.phase === phase),
  );
  expect(taken).toHaveLength(victims.length);
  expect(units).toBe(fits([]) || fits(larger) ? 1 : 0);
  expect(units === 0 || fits(taken)).toBe(true);
  // Just as many as needed.
  for (const victim of taken) expect(fits(taken.filter((each) => each !== victim))).toBe(false);
  for (const [id, grant] of units === 0 ? Object.entries(before.grants) : others) {
    for (const [phase, slots] of Object.entries(grant.clones ?? {})) {
      const isTaken = taken.some((each) => each.id === id && each.phase === phase);
      expect(after.grants[id]?.clones?.[phase]).toBe(isTaken ? undefined : slots);
      const mark = { by: jobId, byTasks: request.jobTasks, slots };
      expect(after.grants[id]?.preempted?.[phase]).toEqual(isTaken ? mark : undefined);
    }
    expect(after.grants[id]?.slots).toBe(grant.slots);
  }
}

it('takes from larger jobs alone, as many as needed, and keeps its sums, whoever dies', async () => {
  let preemptions = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(arbStep, { minLength: 10, maxLength: 60, size: 'max' }), async (steps) => {
      const ledger = new RuledCapacityLedger(new MemoryCapacityStore());
      let now = 0;
      const context = () => ({ totalSlots, now: epochMs(now), length: durationMs(1_000_000), ...ceilings });
      for (const step of steps) {
        const before = await ledger.view();
        if (step.kind === 'wait') now += step.ms;
        if (step.kind === 'resize') await ledger.resize(step.job, step.wanted, context());
        if (step.kind === 'end')
          await ledger.releaseClones(step.job, step.phase, step.keep, {
            addedSlots: Math.floor(step.keep / 2),
          });
        if (step.kind === 'release') await ledger.release(step.job);
        if (step.kind === 'admit') {
          const jobTasks = sizeOf(step.job);
          const request = {
            phase: step.phase,
            unitSlots: step.tasks * step.copies,
            addedUnitSlots: step.tasks * (step.copies - 1),
            leastUnits: 1,
            mostUnits: 1,
            besideSlots: step.besideSlots,
            ...(jobTasks === undefined ? {} : { jobTasks }),
          };
          const wasHeld = (before.grants[step.job]?.clones?.[step.phase] ?? 0) > 0;
          const admission = await ledger.admitClones(step.job, request, context());
          const after = await ledger.view();
          preemptions += admission.victims?.length ?? 0;
          if (wasHeld) expect(admission.victims).toBeUndefined();
          else expectRightVictims({ jobId: step.job, request }, admission, before, after);
        }
        expectSound(await ledger.view());
      }
      for (const job of jobs) await ledger.release(job);
      expect(await ledger.view()).toMatchObject({ usedSlots: 0, cloneSlots: 0, grants: {} });
    }),
    { numRuns: 500 },
  );
  expect(preemptions).toBeGreaterThan(100);
});
