import { describe, expect, it } from 'vitest';
import type { ResidentDeps } from '../../../src/app/resident-deps.ts';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { durationMs } from '../../../src/contracts/units.ts';
import { type AccountOptions, BusyAccount } from '../../support/busy-account.ts';

const oneTask = (name: string): JobSpecInput => ({
  name,
  stages: [{ name: 'map', operator: 'grep', options: { pattern: 'a' }, inputs: [{ s3: ['s3://data/in/'] }] }],
});

/** An account that was given jobs a second ago. */
async function account(jobs: number, options: Partial<AccountOptions>): Promise<BusyAccount> {
  const made = new BusyAccount({
    environments: 100,
    totalSlots: 50,
    taskMs: 5_000,
    seed: 'slow-looks',
    ...options,
  });
  await made.system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.from('one two three'));
  const submitted = Array.from({ length: jobs }, (_, index) =>
    made.submit(oneTask(`job-${index}`), `t-${index}`),
  );
  await made.system.clock.advance(1_000);
  await Promise.all(submitted);
  return made;
}

/** `deps` of which one call first takes as long as `pause` says. */
function slowed(
  deps: ResidentDeps,
  port: 'roster' | 'answers',
  call: string,
  pause: () => number,
): ResidentDeps {
  const slow = new Proxy<object>(deps[port], {
    get: (target, property) => {
      const method: unknown = Reflect.get(target, property, target);
      if (property !== call || typeof method !== 'function') return method;
      return async (...args: unknown[]): Promise<unknown> => {
        await deps.clock.sleep(durationMs(pause()));
        return Reflect.apply(method, target, args) as unknown;
      };
    },
  });
  return { ...deps, [port]: slow };
}

describe('a resident', () => {
  it.each([1.5, 2.5, 4.2])(
    'leaves by a look that finds nothing, where each takes %d ticks',
    async (ticks) => {
      const tookMs = ticks * 1_000;
      // Its job may end at any point of a look, as it was taken on at any.
      for (let phaseMs = 0; phaseMs < 2_000; phaseMs += 150) {
        const looks = { takeMs: phaseMs % 1_000 };
        const made = await account(1, {
          taskMs: phaseMs < 1_000 ? 5_000 : 6_000,
          wrap: (deps) => slowed(deps, 'roster', 'view', () => looks.takeMs),
        });
        await made.system.clock.advance(5_000);
        looks.takeMs = tookMs;
        await made.untilEnded(1, 120_000);
        // The look under way, one more and that of its farewell, with ticks between them.
        await made.system.clock.advance(3 * tookMs + 4_000);
        expect({ phaseMs, seated: made.seated.size }).toEqual({ phaseMs, seated: 0 });
        expect(made.running.get('schedule')).toBe(0);
        expect(made.counts.transitions).toBe(3);
      }
    },
  );

  it.each([
    ['answers', 'beat'],
    ['roster', 'take'],
  ] as const)('hands its jobs over when its time is up, though a call to %s.%s hangs', async (port, call) => {
    const hanging = { forMs: 0 };
    const made = await account(3, {
      stayMs: 60_000,
      taskMs: 5 * 60_000,
      wrap: (deps, number) => (number === 1 ? slowed(deps, port, call, () => hanging.forMs) : deps),
    });
    await made.system.clock.advance(45_000);
    hanging.forMs = 90_000;
    const submitted = made.submit(oneTask('late'), 'late');
    // It is up after a minute and three seconds, and whoever follows needs a few seconds more.
    await made.system.clock.advance(23_000);
    await submitted;
    expect(made.seated.size).toBe(1);
    expect(made.seated).not.toContain('request-1');
    const { jobs } = await made.roster.view(10);
    expect(jobs.map(({ resident }) => resident)).toEqual(
      Array.from({ length: 4 }, () => [...made.seated][0]),
    );
    await made.untilEnded(4, 20 * 60_000);
    expect(made.counts.executions.every(({ ended }) => ended === 'succeeded')).toBe(true);
    expect(made.launched.size).toBe(4);
    expect(made.counts.mostResidents).toBe(1);
  });
});
