import { describe, expect, it } from 'vitest';
import { ledgerWrites } from '../../../src/app/capacity-ledger.ts';
import { LedgerAtWork } from '../../support/ledger-at-work.ts';
import { freshJobId } from '../../contract/ports/builders.ts';

const hourMs = 3_600_000;

const atWork = (
  totalSlots: number,
  schedulers: number,
  more: { readonly clocksOffMs?: readonly number[]; readonly isAtOnce?: boolean } = {},
): LedgerAtWork =>
  new LedgerAtWork({
    totalSlots,
    writes: ledgerWrites(schedulers),
    clocksOffMs: Array.from({ length: schedulers }, () => 0),
    ...more,
  });

/** Jobs of four tasks of 20 s each, spread over the schedulers. */
function burst(world: LedgerAtWork, count: number): void {
  for (let index = 0; index < count; index++)
    world.add({
      jobId: freshJobId(),
      process: index % world.ledgers.length,
      taskS: 20,
      beginsS: 1,
      owed: 4,
    });
}

const unfinished = (world: LedgerAtWork) => world.jobs.filter(({ endedS }) => endedS === undefined);

async function untilEnded(world: LedgerAtWork, mostS: number): Promise<void> {
  for (let second = 0; second < mostS && unfinished(world).length > 0; second++) await world.second();
}

describe('what the ledger of slots asks of its key', () => {
  it.each([
    [1_000, 4, false],
    [1_000, 16, false],
    [200, 4, true],
  ])(
    'stays under 300 units a second where %i jobs come at once to %i schedulers',
    async (jobs, schedulers, isAtOnce) => {
      const world = atWork(jobs, schedulers, { isAtOnce });
      burst(world, jobs);
      await untilEnded(world, 400);
      expect(unfinished(world)).toEqual([]);
      expect(world.mostWrites).toBeLessThan(300);
      expect(world.mostLive).toBeLessThanOrEqual(jobs);
    },
    300_000,
  );

  it('stays so where 1,000 jobs ask for backups at once, of which all together run a tenth of the slots', async () => {
    const world = atWork(1_000, 4);
    for (let index = 0; index < 1_000; index++)
      world.add({ jobId: freshJobId(), process: index % 4, taskS: 90, beginsS: 1, owed: 1, backups: 2 });
    let most = 0;
    for (let second = 0; second < 60; second++) {
      await world.second();
      most = Math.max(
        most,
        world.jobs.reduce((sum, { running = 0 }) => sum + running, 0),
      );
    }
    expect(most).toBe(100);
    expect(world.mostWrites).toBeLessThan(300);
    // The head, which names the jobs that a round changes: fifty at most.
    expect(world.largestWrite).toBeLessThanOrEqual(8);
  }, 300_000);

  it('costs a newcomer as much beside 1,000 jobs as beside two', async () => {
    const largest: number[] = [];
    for (const others of [2, 1_000]) {
      const world = new LedgerAtWork({ totalSlots: 10_000, clocksOffMs: [0] });
      for (let index = 0; index < others; index++)
        world.add({ jobId: freshJobId(), process: 0, taskS: 1_000, beginsS: 1, owed: 2 });
      await world.seconds(60);
      expect(world.live).toBe(2 * others);
      world.add({ jobId: freshJobId(), process: 0, taskS: 1_000, beginsS: world.nowS + 1, owed: 50 });
      await world.second();
      largest.push(world.units.largest);
    }
    expect(largest).toEqual([1, 1]);
  }, 120_000);

  it('is next to nothing for jobs that are short of slots, and wait', async () => {
    const world = atWork(100, 4);
    for (let index = 0; index < 100; index++)
      world.add({ jobId: freshJobId(), process: index % 4, taskS: 20, beginsS: 1, owed: 1_000 });
    await world.seconds(120);
    expect(world.live).toBe(100);
    const before = world.writes;
    await world.seconds(120);
    // A sign of life of each job twice a minute, and nothing else.
    expect(world.writes - before).toBeLessThanOrEqual(100 * 5);
    expect(world.jobs.every(({ grant }) => grant === 1)).toBe(true);
  }, 120_000);

  it.each([
    ['right', [0, 0, 0]],
    ['an hour apart', [0, hourMs, -hourMs]],
  ])('shares alike with clocks that are %s', async (_, clocksOffMs) => {
    const world = atWork(90, 3, { clocksOffMs });
    for (let process = 0; process < 3; process++)
      world.add({ jobId: freshJobId(), process, taskS: 15, beginsS: 1 + process * 5, owed: 2_000 });
    await world.seconds(60);
    expect(world.jobs.map(({ grant }) => grant)).toEqual([30, 30, 30]);
    await world.seconds(300);
    expect(world.jobs.map(({ grant }) => grant)).toEqual([30, 30, 30]);
    expect(world.mostLive).toBe(90);
  });

  it('gives what a dead scheduler held to others after a minute of silence, and counts what runs when it comes back', async () => {
    const world = atWork(100, 2, { clocksOffMs: [0, hourMs] });
    const first = world.add({ jobId: freshJobId(), process: 0, taskS: 500, beginsS: 1, owed: 200 });
    await world.seconds(5);
    const second = world.add({ jobId: freshJobId(), process: 1, taskS: 500, beginsS: 6, owed: 200 });
    await world.seconds(8);
    expect([first.grant, second.grant]).toEqual([50, 0]);
    first.isDead = true;
    await world.seconds(50);
    expect(second.grant).toBe(0);
    await world.seconds(30);
    expect(second.grant).toBe(100);
    first.isDead = false;
    await world.second();
    // Its hundred run on: it launches nothing, and nobody gets more until some of all these have ended.
    expect(first.grant).toBe(50);
    expect(first.live).toHaveLength(100);
    expect(second.live).toHaveLength(100);
  });
});
