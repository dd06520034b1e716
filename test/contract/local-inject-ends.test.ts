import { describe, expect, it } from 'vitest';
import { idler, injector, patience, workOf } from './local-inject-support.ts';

describe('injections of several ends', () => {
  it('end each work in one way alone, so that each has done what is told of it', async () => {
    const harm = injector('kill=1,memory-hog=1,spot=1');
    const idlers = ['a', 'b', 'c', 'd', 'e', 'f'].map((place) => ({ place, pid: idler().pid }));
    for (const { place, pid } of idlers)
      harm.onWork({ ...workOf(pid), place, exhaust: () => undefined, interrupt: () => true });
    await expect
      .poll(() => {
        const { killed, memoryHogs, interrupted } = harm.counts();
        return [killed, memoryHogs, interrupted];
      }, patience)
      .toEqual([1, 1, 1]);
    const { killed, memoryHogs, interrupted } = harm.counts().places;
    expect(new Set([...killed, ...memoryHogs, ...interrupted]).size).toBe(3);
  });

  it('leave alone a work that one of them has struck, though it seems to be under way', async () => {
    const harm = injector('kill=1,memory-hog=1,spot=1');
    const { pid } = idler();
    const ends: string[] = [];
    harm.onWork({
      ...workOf(pid),
      lose: () => void ends.push('lose'),
      exhaust: () => void ends.push('exhaust'),
      interrupt: () => ends.push('interrupt') > 0,
    });
    await expect.poll(() => ends, patience).toHaveLength(1);
    // All three would have struck within a second.
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(ends).toHaveLength(1);
  });

  it('counts none that was told to stop before: another is interrupted for it', async () => {
    const harm = injector('spot=1');
    const { pid } = idler();
    const asked: string[] = [];
    const work = (place: string, hears: boolean) => ({
      ...{ ...workOf(pid), place },
      interrupt: () => asked.push(place) > 0 && hears,
    });
    harm.onWork(work('stopping', false));
    await expect.poll(() => asked, patience).toEqual(['stopping']);
    expect(harm.counts()).toMatchObject({ interrupted: 0 });
    harm.onWork(work('working', true));
    await expect.poll(() => asked, patience).toEqual(['stopping', 'working']);
    expect(harm.counts()).toMatchObject({ interrupted: 1, places: { interrupted: ['working'] } });
  });
});
