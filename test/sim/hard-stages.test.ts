import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import { metricsOf, type SimulationMetrics } from '../../src/sim/metrics.ts';
import type { ScenarioInput } from '../../src/sim/scenario.ts';
import { simulate } from '../../src/sim/simulate.ts';
import { scenarioOf } from './scenarios.ts';

async function measured(name: string, policy: PolicyName, seed = '1'): Promise<SimulationMetrics> {
  const path = new URL(`../fixtures/stages/${name}.json`, import.meta.url);
  const scenario = JSON.parse(readFileSync(path, 'utf8')) as ScenarioInput;
  const jobs = scenario.jobs.map((job) => ({ ...job, policy }));
  return metricsOf(await simulate(scenarioOf({ ...scenario, jobs }), { seed }));
}

const secondsOf = async (name: string, policy: PolicyName): Promise<number> =>
  (await measured(name, policy)).completionS.mean;

describe('a task of ten minutes among tasks of one', () => {
  it.each([
    ['straggler', 600, 121],
    ['straggler-and-empty', 600, 121],
    ['straggler-and-tiny', 600, 121],
    ['straggler-and-huge', 600, 300],
    ['mostly-empty', 600, 121],
  ])(
    '%s ends after %i s without copies, and after %i s under LATE, which knows a score by its report',
    async (name, none, late) => {
      expect([await secondsOf(name, 'none'), await secondsOf(name, 'late')]).toEqual([none, late]);
    },
  );

  it.each([
    ['straggler', 70],
    ['straggler-and-empty', 70],
    ['straggler-and-tiny', 70],
    ['straggler-and-huge', 300],
    ['mostly-empty', 70],
  ])('%s: empty, tiny and huge partitions hide it from nobody', async (name, atMost) => {
    for (const policy of ['mantri', 'outrider'] as const)
      expect(await secondsOf(name, policy)).toBeLessThanOrEqual(atMost);
  });
});

describe('tasks whose time hardly follows from what they read', () => {
  it('are copied once where one of them takes ten minutes', async () => {
    expect(await secondsOf('fixed-cost', 'none')).toBe(600);
    for (const policy of ['mantri', 'outrider'] as const) {
      const { completionS, copies } = await measured('fixed-cost', policy);
      expect(completionS.mean).toBeLessThanOrEqual(140);
      expect(copies).toEqual({ started: 1, won: 1 });
    }
  });

  it('are not copied where all are alike', async () => {
    for (const policy of ['mantri', 'outrider'] as const)
      expect((await measured('fixed-cost-even', policy)).copies.started).toBe(0);
  });
});

describe('tasks that have read everything early', () => {
  it.each([
    ['read-at-once', 600],
    ['read-at-once-stuck-after', 600],
    ['slow-write', 630],
  ])('%s ends after %i s without copies, and in three tasks with them', async (name, none) => {
    expect(await secondsOf(name, 'none')).toBe(none);
    for (const policy of ['mantri', 'outrider'] as const)
      expect(await secondsOf(name, policy)).toBeLessThanOrEqual(180);
  });
});

describe('tasks of three seconds, one of half a minute', () => {
  it.each(['seconds', 'seconds-cooperative'])('%s are helped at once, by one copy', async (name) => {
    expect(await secondsOf(name, 'none')).toBe(30);
    for (const policy of ['mantri', 'outrider'] as const) {
      const { completionS, copies } = await measured(name, policy);
      expect(completionS.mean).toBeLessThanOrEqual(5);
      expect(copies).toEqual({ started: 1, won: 1 });
    }
  });

  it('are left alone by rules with ages of a minute', async () => {
    for (const policy of ['late', 'hadoop'] as const) {
      const { completionS, copies } = await measured('seconds', policy);
      expect([completionS.mean, copies.started]).toEqual([30, 0]);
    }
  });
});

describe('a few short tasks among long ones', () => {
  it('do not have outrider kill the long ones in turn, each kill making the next look better', async () => {
    const [none, outrider] = [
      await measured('short-among-long', 'none'),
      await measured('short-among-long', 'outrider'),
    ];
    expect([none.completionS.mean, none.slotSeconds]).toEqual([8619, 162_355]);
    expect(outrider.completionS.mean).toBeLessThanOrEqual(none.completionS.mean);
    expect(outrider.slotSeconds).toBeLessThanOrEqual(1.02 * none.slotSeconds);
  });
});

describe('outrider on noisy tasks', () => {
  it.each([
    ['noisy-linear', '1'],
    ['noisy-linear', '2'],
    ['noisy-read-early', '1'],
    ['noisy-read-early', '2'],
    ['noisy-slow-start', '1'],
    ['noisy-slow-start', '2'],
    ['noisy-seconds', '1'],
    ['noisy-seconds', '2'],
  ])(
    '%s, seed %s: gains time and slot time by few copies, whatever the shape of progress',
    async (name, seed) => {
      const [none, outrider] = [await measured(name, 'none', seed), await measured(name, 'outrider', seed)];
      expect(outrider.completionS.mean).toBeLessThan(0.8 * none.completionS.mean);
      expect(outrider.slotSeconds).toBeLessThan(1.02 * none.slotSeconds);
      expect(outrider.copies.started).toBeLessThan(100);
    },
  );
});
