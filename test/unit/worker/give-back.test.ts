import { expect, it } from 'vitest';
import { GiveBack } from '../../../functions/worker/give-back.ts';

const mb = 1024 * 1024;

/** A process that needs so much, and holds what its attempts have left until it collects. */
class Memory {
  neededMb: number;
  leftMb = 0;
  collections = 0;
  /** What a collection cannot give back. */
  stuckMb = 0;

  constructor(neededMb: number) {
    this.neededMb = neededMb;
  }

  residentBytes(): number {
    return (this.neededMb + this.leftMb) * mb;
  }

  collect(): void {
    this.collections++;
    this.leftMb = Math.min(this.leftMb, this.stuckMb);
  }
}

it('collects nothing between small attempts, however many, in a process that needs more than most', () => {
  const memory = new Memory(150);
  const giveBack = new GiveBack(memory);
  for (let attempt = 0; attempt < 1_000; attempt++) giveBack.run();
  // Once, since nobody knew what it needs.
  expect(memory.collections).toBe(1);
});

it('collects once some attempts have left 32 MB together', () => {
  const memory = new Memory(150);
  const giveBack = new GiveBack(memory);
  giveBack.run();
  for (let attempt = 1; attempt <= 100; attempt++) {
    memory.leftMb++;
    giveBack.run();
  }
  // After the first one, each 33rd: one that is not above the bound collects nothing.
  expect(memory.collections).toBe(1 + 3);
});

it('never begins an attempt with more than 32 MB above what is needed, or 128 MB', () => {
  for (const neededMb of [60, 100, 128, 150, 400]) {
    const memory = new Memory(neededMb);
    const giveBack = new GiveBack(memory);
    giveBack.run();
    for (const leftMb of [1, 30, 33, 64, 500, 0, 31, 32, 7]) {
      memory.leftMb += leftMb;
      giveBack.run();
      expect(memory.residentBytes() / mb).toBeLessThanOrEqual(Math.max(128, neededMb + 32));
    }
  }
});

it('takes what a collection does not give back for needed, until less is held', () => {
  const memory = new Memory(100);
  const giveBack = new GiveBack(memory);
  Object.assign(memory, { leftMb: 300, stuckMb: 200 });
  giveBack.run();
  giveBack.run();
  expect([memory.collections, memory.leftMb]).toEqual([1, 200]);
  // Given back late, by itself.
  memory.leftMb = 20;
  giveBack.run();
  Object.assign(memory, { leftMb: 60, stuckMb: 0 });
  giveBack.run();
  expect([memory.collections, memory.leftMb]).toEqual([2, 0]);
});

it('collects nothing in a process that holds little', () => {
  const memory = new Memory(50);
  const giveBack = new GiveBack(memory);
  for (memory.leftMb = 0; memory.leftMb <= 78; memory.leftMb++) giveBack.run();
  expect(memory.collections).toBe(0);
});
