import { describe, expect, it, onTestFinished } from 'vitest';
import { startBrake } from '../../src/local/inject/brake.ts';
import { expectFree, expectStopped, idler, injector, stateOf, workOf } from './local-inject-support.ts';

describe('pauses', () => {
  it('stop a process at work for a while, once, and let it go on', async () => {
    const { pid } = idler();
    const brake = startBrake();
    onTestFinished(() => brake.close());
    brake.freeze(pid, 700);
    await expectStopped(pid);
    await expectFree(pid);
  });

  it('befall their share of the works under way, and nobody is left stopped when the injection ends', async () => {
    const harm = injector('pause=0.5@60');
    const workers = Array.from({ length: 12 }, () => idler().pid);
    for (const pid of workers) harm.onWork(workOf(pid, () => pid !== workers[0]));
    const stopped = (): readonly string[] =>
      workers.filter((pid) => stateOf(pid) === 'T').map((pid) => `place-${pid}`);
    // All have been struck within a second, or are not at all.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(harm.counts().places.paused.length).toBeGreaterThan(2);
    expect(harm.counts().places.paused.length).toBeLessThan(10);
    expect(stopped()).toEqual([...harm.counts().places.paused].sort());
    expect(harm.counts().paused).toBe(stopped().length);
    await harm.close();
    expect(stopped()).toEqual([]);
  });

  it('leave alone what runs slowly anyway', async () => {
    const harm = injector('slow=8x1,pause=0.95@60');
    const { pid } = idler();
    for (let work = 0; work < 9; work++) harm.onWork(workOf(pid));
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(harm.counts()).toMatchObject({ slow: 1, paused: 0 });
  });
});
