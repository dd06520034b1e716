import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../../../src/contracts/ids.ts';
import type { CloneRequest } from '../../../../../src/core/capacity/clone-admission.ts';
import {
  type CloneHolding,
  holdClones,
  keepClones,
  loseClones,
} from '../../../../../src/core/capacity/clone-holding.ts';
import { admitWithPreemption, type CloneHolder } from '../../../../../src/core/capacity/clone-preemption.ts';

/** β·C = 50 and τ·C = 800 of 1,000 slots. */
const terms = { totalSlots: 1_000, budgetSlots: 50, ceilingSlots: 800 };
/** A whole phase of a job of ten tasks. */
const phase = (unitSlots: number, more: Partial<CloneRequest> = {}): CloneRequest => ({
  phase: 'map',
  unitSlots,
  leastUnits: 1,
  mostUnits: 1,
  besideSlots: 0,
  jobTasks: 10,
  ...more,
});

type Held = readonly [id: string, jobTasks: number | undefined, clones: Readonly<Record<string, number>>];
/** Jobs that hold just their clones, two copies of each task. */
const holders = (...jobs: readonly Held[]): (readonly [string, CloneHolder])[] =>
  jobs.map(([id, jobTasks, clones]) => [
    id,
    {
      slots: Object.values(clones).reduce((sum, slots) => sum + slots, 0),
      clones,
      ...(jobTasks === undefined ? {} : { jobTasks }),
      addedSlots: Object.fromEntries(Object.entries(clones).map(([name, slots]) => [name, slots / 2])),
    },
  ]);

function admit(
  request: CloneRequest,
  held: (readonly [string, CloneHolder])[],
  usedSlots = 0,
): { units: number; victims: string[]; reason?: string } {
  const cloneSlots = held
    .flatMap(([, { clones }]) => Object.values(clones ?? {}))
    .reduce((sum, slots) => sum + slots, 0);
  const {
    units,
    reason,
    victims = [],
  } = admitWithPreemption({ usedSlots, cloneSlots }, terms, request, held);
  return {
    units,
    victims: victims.map(({ jobId, phase: name }) => `${jobId}/${name}`),
    ...(reason === undefined ? {} : { reason }),
  };
}

describe('admission with preemption', () => {
  it('takes from nobody while the budget suffices', () => {
    expect(admit(phase(20), holders(['a', 100, { map: 30 }]))).toEqual({ units: 1, victims: [] });
  });

  it('takes from the largest job first, and no more than it needs', () => {
    const held = holders(
      ['small', 20, { map: 16 }],
      ['large', 300, { map: 14 }],
      ['middle', 40, { map: 20 }],
    );
    expect(admit(phase(14), held)).toEqual({ units: 1, victims: ['large/map'] });
    expect(admit(phase(21), held)).toEqual({ units: 1, victims: ['large/map', 'middle/map'] });
    expect(admit(phase(34), held).victims).toEqual(['large/map', 'middle/map']);
    expect(admit(phase(37), held).victims).toEqual(['large/map', 'middle/map', 'small/map']);
  });

  it('spares a larger job whose clones alone would not do and are not needed beside those of a smaller one', () => {
    const held = holders(['large', 300, { map: 4 }], ['middle', 40, { map: 46 }]);
    expect(admit(phase(20), held).victims).toEqual(['middle/map']);
  });

  it('takes phases one by one, the most expensive of a job first', () => {
    const held = holders(['large', 300, { left: 20, right: 30 }]);
    expect(admit(phase(30), held).victims).toEqual(['large/right']);
    expect(admit(phase(31), held).victims).toEqual(['large/right', 'large/left']);
  });

  it('never takes from a job of the same size or a smaller one, nor from one without a size', () => {
    const held = holders(
      ['same', 10, { map: 20 }],
      ['smaller', 9, { map: 20 }],
      ['other', undefined, { map: 10 }],
    );
    expect(admit(phase(10), held)).toEqual({ units: 0, victims: [], reason: 'clone-budget' });
    expect(admit(phase(10, { jobTasks: 9 }), held)).toEqual({ units: 1, victims: ['same/map'] });
  });

  it('takes nothing for a request without a size', () => {
    const { jobTasks, ...unsized } = phase(10);
    expect(jobTasks).toBe(10);
    expect(admit(unsized, holders(['large', 300, { map: 50 }]))).toMatchObject({ units: 0, victims: [] });
  });

  it('takes nothing where even all would not suffice', () => {
    const held = holders(['large', 300, { map: 30 }], ['same', 10, { map: 20 }]);
    expect(admit(phase(31), held)).toEqual({ units: 0, victims: [], reason: 'clone-budget' });
    expect(admit(phase(51), holders(['large', 300, { map: 30 }]))).toMatchObject({ units: 0, victims: [] });
  });

  it('looks at the clones of ten phases, and gives up where these do not suffice', () => {
    const many = (count: number) =>
      holders(...Array.from({ length: count }, (_, job): Held => [`job-${job}`, 100 + job, { map: 2 }]));
    expect(admit(phase(20 + 50 - 22), many(11))).toMatchObject({ units: 1 });
    expect(admit(phase(21 + 50 - 22), many(11))).toMatchObject({ units: 0, victims: [] });
  });

  it('counts as freed what victims will give back: their copies beside one of each task', () => {
    const held = holders(['large', 300, { map: 40 }]);
    // U is 790 with the victim's forty, twenty of which stop: 770 + 30 = τ·C.
    expect(admit(phase(30), held, 790)).toEqual({ units: 1, victims: ['large/map'] });
    expect(admit(phase(30), held, 791)).toEqual({ units: 0, victims: [], reason: 'clone-budget' });
    expect(admit(phase(30, { besideSlots: 1 }), held, 790)).toMatchObject({ units: 0 });
    expect(admit(phase(10), held, 805)).toEqual({ units: 1, victims: ['large/map'] });
  });

  it('grants no slot that a victim still holds', () => {
    const few = { totalSlots: 100, budgetSlots: 50, ceilingSlots: 100 };
    const held = holders(['large', 300, { map: 40 }]);
    const units = (usedSlots: number): number =>
      admitWithPreemption({ usedSlots, cloneSlots: 40 }, few, phase(30), held).units;
    expect(units(70)).toBe(1);
    expect(units(71)).toBe(0);
  });
});

describe("a job's clones in the ledger", () => {
  const by = { by: 'small' as JobId, byTasks: 2, slots: 8 };
  const admitted = holdClones({}, phase(8, { addedUnitSlots: 4 }), 1);

  it('are charged, with the size of the job, of which as many slots are freed as come beside one of each task', () => {
    expect(admitted).toEqual({ clones: { map: 8 }, jobTasks: 10, addedSlots: { map: 4 } });
    expect(keepClones(admitted, 'map', { keepSlots: 5, addedSlots: 2 })).toEqual({
      clones: { map: 5 },
      jobTasks: 10,
      addedSlots: { map: 2 },
    });
    expect(keepClones(admitted, 'map', { keepSlots: 0 })).toEqual({});
  });

  it('have no size and nothing to give where the job does not preempt', () => {
    const { jobTasks, ...unsized } = phase(8);
    expect(jobTasks).toBe(10);
    expect(holdClones({}, unsized, 1)).toEqual({ clones: { map: 8 } });
  });

  it('leave a mark when they are taken away, until their scheduler says that they stop', () => {
    const taken = loseClones(admitted, 'map', by);
    expect(taken).toEqual({ preempted: { map: by } });
    // What comes late knows nothing of it, and changes nothing.
    expect(keepClones(taken, 'map', { keepSlots: 5 })).toBe(taken);
    expect(keepClones(taken, 'map', { keepSlots: 0 })).toEqual({});
  });

  it('lose one phase and keep the others', () => {
    const both: CloneHolding = holdClones(admitted, phase(6, { phase: 'reduce', addedUnitSlots: 3 }), 1);
    expect(loseClones(both, 'map', by)).toEqual({
      clones: { reduce: 6 },
      jobTasks: 10,
      addedSlots: { reduce: 3 },
      preempted: { map: by },
    });
  });

  it('forget that they were taken away when they are admitted anew', () => {
    const again = holdClones(loseClones(admitted, 'map', by), phase(8, { addedUnitSlots: 4 }), 1);
    expect(again).toEqual(admitted);
  });
});
