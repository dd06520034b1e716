import { describe, expect, it } from 'vitest';
import { untilNextTick } from '../../../src/app/await-news.ts';
import type { SchedulerDeps } from '../../../src/app/scheduler-deps.ts';
import type { Session } from '../../../src/app/scheduler-session.ts';
import { durationMs, type DurationMs, epochMs, type EpochMs } from '../../../src/contracts/units.ts';

const hourMs = 3_600_000;

/** A scheduler of one open stage whose attempts took `runMs`, by a clock that jumps by `jumpMs` at its first sleep. */
function waiting({ runMs, jumpMs = 0, toldAt }: { runMs: number; jumpMs?: number; toldAt?: number }) {
  const counts = { sleptMs: 0, looks: 0 };
  let time = 10 * hourMs;
  const clock = {
    now: (): EpochMs => epochMs(time),
    sleep: (length: DurationMs): Promise<void> => {
      if (counts.sleptMs === 0) time += jumpMs;
      time += length;
      counts.sleptMs += length;
      if (counts.sleptMs > hourMs) throw new Error('no tick within an hour');
      return Promise.resolve();
    },
  };
  const attempts = {
    told: () => {
      counts.looks += 1;
      return Promise.resolve({ notes: counts.looks === toldAt ? [{}] : [] });
    },
  };
  const statistics = { runMs: { buckets: [[runMs]], size: 1, sum: runMs } };
  const live = new Set([{ stage: 0, launchedAt: time, cancelOrdered: false }]);
  const state = { live, stages: [{ index: 0, state: 'open', statistics }] };
  const deps = { clock, attempts, config: { tickMs: durationMs(1_000) } } as unknown as SchedulerDeps;
  const session = {
    state,
    watch: { room: { jobs: 1 } },
    jobId: 'a-000000000000',
    plan: { shards: 1 },
    residency: {},
  } as unknown as Session;
  return { counts, ended: untilNextTick(deps, session) };
}

describe('the wait for the next tick', () => {
  it('lasts a tick where attempts take long, and asks for nothing', async () => {
    const { counts, ended } = waiting({ runMs: 60_000 });
    await ended;
    expect(counts).toEqual({ sleptMs: 1_000, looks: 0 });
  });

  it('looks every tenth of what attempts take, and ends with the first that has ended', async () => {
    const all = waiting({ runMs: 2_000 });
    await all.ended;
    expect(all.counts).toEqual({ sleptMs: 1_000, looks: 4 });
    const one = waiting({ runMs: 2_000, toldAt: 2 });
    await one.ended;
    expect(one.counts).toEqual({ sleptMs: 400, looks: 2 });
  });

  it.each([-hourMs, hourMs])(
    'lasts no longer than a tick where the clock is set by %d ms',
    async (jumpMs) => {
      const { counts, ended } = waiting({ runMs: 2_000, jumpMs });
      await ended;
      expect(counts.sleptMs).toBeLessThanOrEqual(1_000);
    },
  );
});
