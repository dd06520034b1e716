import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationMs, epochMs, type EpochMs, later } from '../../../src/contracts/units.ts';
import {
  lateAfterMs,
  type LaunchesSeen,
  type ObservedConcurrency,
  observeConcurrency,
  startConcurrency,
} from '../../../src/core/capacity/observed-concurrency.ts';
import { createRng, type Rng } from '../../../src/lib/rng.ts';

const start = epochMs(1_700_000_000_000);
const tickMs = 1_000;

/** How many more may be launched by what was learned. */
const launchRoom = (
  { known, trial }: ObservedConcurrency,
  { running, starting }: Pick<LaunchesSeen, 'running' | 'starting'>,
): number => Math.max(0, known + trial - running - starting);

interface Waiting {
  readonly launchedAt: EpochMs;
  triedAt: number;
  tries: number;
  wasLate: boolean;
}

/** Environments of an account, of which others may leave now more and now fewer. */
class Account {
  free: number;
  now: EpochMs = start;
  constructor(free: number) {
    this.free = free;
  }
}

/** One job behind Lambda's queue: what it launches waits there, with ever longer pauses, until an environment is free. */
class Job {
  concurrency: ObservedConcurrency;
  readonly running: number[] = [];
  waiting: Waiting[] = [];
  launched = 0;
  mostRun = 0;
  private readonly account: Account;
  private readonly taskMs: number;
  private readonly rng: Rng;
  private readonly grant: number;

  constructor(account: Account, options: { taskMs: number; seed: string; grant: number }) {
    this.account = account;
    this.taskMs = options.taskMs;
    this.grant = options.grant;
    this.rng = createRng(options.seed);
    this.concurrency = startConcurrency(0, account.now);
  }

  /** Ends what is done, and lets what waits try again; answers how long those waited that were taken up. */
  advance(): number[] {
    const { now } = this.account;
    const before = this.running.length;
    const left = this.running.filter((until) => until > now);
    this.running.splice(0, before, ...left);
    this.account.free += before - left.length;
    const lags: number[] = [];
    for (const each of this.waiting) {
      if (each.triedAt > now) continue;
      if (this.account.free > 0) {
        this.account.free -= 1;
        this.running.push(now + this.taskMs);
        lags.push(now - each.launchedAt);
        each.triedAt = -1;
      } else {
        const pauseMs = Math.min(300_000, 1_000 * 2 ** each.tries);
        each.tries += 1;
        each.triedAt = now + pauseMs * (0.5 + this.rng.next());
      }
    }
    this.waiting = this.waiting.filter(({ triedAt }) => triedAt >= 0);
    this.mostRun = Math.max(this.mostRun, this.running.length);
    return lags;
  }

  tick(claimLagsMs: readonly number[], throttled = 0): LaunchesSeen {
    const { now } = this.account;
    const patienceMs = lateAfterMs({ lagsMs: [...this.concurrency.lagsMs, ...claimLagsMs] });
    const late = this.waiting.filter(({ launchedAt }) => now - launchedAt > patienceMs);
    const turnedLate = late.filter(({ wasLate }) => !wasLate).length;
    for (const each of late) each.wasLate = true;
    const seen: LaunchesSeen = {
      ...{ now, running: this.running.length, starting: this.waiting.length - late.length },
      ...{ late: late.length, turnedLate, claimLagsMs, throttled },
    };
    this.concurrency = observeConcurrency(this.concurrency, seen);
    const room = launchRoom(this.concurrency, seen);
    const granted = Math.max(0, this.grant - this.running.length - this.waiting.length);
    for (let begun = 0; begun < Math.min(room, granted); begun++) {
      this.waiting.push({ launchedAt: now, triedAt: now, tries: 0, wasLate: false });
      this.launched += 1;
    }
    return seen;
  }
}

/** Runs jobs side by side for so many ticks; `onTick` may change the account, and looks at each tick. */
function run(account: Account, jobs: readonly Job[], ticks: number, onTick?: (tick: number) => void): void {
  for (let tick = 0; tick < ticks; tick++) {
    onTick?.(tick);
    for (const job of tick % 2 === 0 ? jobs : jobs.toReversed()) job.tick(job.advance());
    account.now = later(account.now, durationMs(tickMs));
  }
}

const arbSeen: fc.Arbitrary<Omit<LaunchesSeen, 'now'>> = fc.record({
  running: fc.integer({ min: 0, max: 2_000 }),
  starting: fc.integer({ min: 0, max: 2_000 }),
  late: fc.integer({ min: 0, max: 2_000 }),
  turnedLate: fc.integer({ min: 0, max: 50 }),
  claimLagsMs: fc.array(fc.integer({ min: 0, max: 900_000 }), { maxLength: 40 }),
  throttled: fc.integer({ min: 0, max: 3 }),
});
const arbLooks = fc.array(fc.tuple(arbSeen, fc.integer({ min: 0, max: 120_000 })), { maxLength: 80 });

describe('what a scheduler learns of its concurrency', () => {
  it('is never more than what was seen to run, and tries at most as many again', () => {
    fc.assert(
      fc.property(arbLooks, fc.integer({ min: 0, max: 100 }), (looks, running) => {
        let [now, most] = [start, running];
        let learnt = startConcurrency(running, now);
        for (const [seen, passedMs] of looks) {
          now = later(now, durationMs(passedMs));
          most = Math.max(most, seen.running);
          learnt = observeConcurrency(learnt, { ...seen, now });
          expect(learnt.known).toBeLessThanOrEqual(most);
          expect(learnt.known).toBeGreaterThanOrEqual(0);
          expect(learnt.trial).toBeGreaterThanOrEqual(0);
          expect(learnt.trial).toBeLessThanOrEqual(Math.max(10, learnt.known, 1));
          expect(Number.isInteger(learnt.known) && Number.isInteger(learnt.trial)).toBe(true);
          expect(learnt.lagsMs.length).toBeLessThanOrEqual(33);
          expect(learnt.pauseMs).toBeLessThanOrEqual(60_000);
          expect(lateAfterMs(learnt)).toBeGreaterThanOrEqual(3_000);
          expect(lateAfterMs(learnt)).toBeLessThanOrEqual(30_000);
        }
      }),
    );
  });

  it('never comes to rest at nothing: where nothing runs and nothing waits, something is tried within a minute', () => {
    fc.assert(
      fc.property(arbLooks, (looks) => {
        let now = start;
        let learnt = startConcurrency(0, now);
        for (const [seen, passedMs] of looks) {
          now = later(now, durationMs(passedMs));
          learnt = observeConcurrency(learnt, { ...seen, now });
        }
        const idle = { running: 0, starting: 0, late: 0, turnedLate: 0, claimLagsMs: [], throttled: 0 };
        let room = 0;
        for (let second = 0; second <= 60 && room === 0; second++) {
          now = later(now, durationMs(tickMs));
          learnt = observeConcurrency(learnt, { ...idle, now });
          room = launchRoom(learnt, idle);
        }
        expect(room).toBeGreaterThan(0);
      }),
    );
  });

  describe('gives up of what is known', () => {
    const known = { ...startConcurrency(100, start), trial: 0, lagsMs: [1_000] };
    const at = (ms: number): EpochMs => later(start, durationMs(ms));
    const look = (claimed: number, turnedLate: number, running: number, now = start): LaunchesSeen => ({
      ...{ now, running, starting: 0, late: turnedLate, turnedLate, throttled: 0 },
      claimLagsMs: Array.from({ length: claimed }, () => 1_000),
    });
    const after = (...looks: readonly LaunchesSeen[]): number[] => {
      const learnt = [];
      let last: ObservedConcurrency = known;
      for (const seen of looks) {
        last = observeConcurrency(last, seen);
        learnt.push(last.known);
      }
      return learnt;
    };

    it('nothing where all of it runs', () => {
      expect(after(look(0, 5, 100))).toEqual([100]);
    });

    it('a fifth where most launches come in time', () => {
      expect(after(look(95, 5, 60))).toEqual([80]);
    });

    it('as much as the share of launches that came late, and nothing of what runs', () => {
      expect(after(look(15, 15, 40))).toEqual([50]);
      expect(after(look(1, 29, 1))).toEqual([3]);
      expect(after(look(0, 30, 7))).toEqual([7]);
    });

    it('once for each time that a launch takes to be late, by all that came late in it', () => {
      // Nine of ten come in time, then one of two in all; what comes later was launched later.
      const looks = [
        look(9, 1, 10),
        look(0, 8, 10, at(2_000)),
        look(9, 1, 10, at(2_999)),
        look(9, 1, 10, at(9_000)),
      ];
      expect(after(...looks)).toEqual([80, 50, 50, 40]);
    });

    it('by what was launched with what is late, and not by what was claimed before', () => {
      expect(after(look(90, 0, 90), look(0, 9, 10, at(4_000)))).toEqual([100, 10]);
      expect(after(look(90, 0, 90), look(0, 10, 10, at(2_000)))).toEqual([100, 80]);
    });
  });

  it('takes a throttled launch as it takes a late one', () => {
    const known = { ...startConcurrency(100, start), trial: 20 };
    const seen = { running: 50, starting: 0, late: 0, turnedLate: 0, claimLagsMs: [], throttled: 1 };
    expect(observeConcurrency(known, { ...seen, now: start })).toMatchObject({ known: 80, trial: 0 });
  });

  it('keeps room for one where launches are refused while nothing runs and none waits: to ask again costs a request', () => {
    const seen = {
      running: 0,
      starting: 0,
      late: 0,
      turnedLate: 0,
      claimLagsMs: [],
      throttled: 1,
      now: start,
    };
    const begun = startConcurrency(0, start);
    expect(observeConcurrency(begun, seen)).toMatchObject({ known: 1, trial: 0 });
    expect(observeConcurrency({ ...begun, known: 1 }, seen)).toMatchObject({ known: 1, trial: 0 });
    // What is late may be all that there is room for.
    expect(observeConcurrency(begun, { ...seen, late: 1 })).toMatchObject({ known: 0, trial: 0 });
    expect(observeConcurrency(begun, { ...seen, late: 1, turnedLate: 1 })).toMatchObject({ known: 0 });
  });

  it('finds what there is, and keeps it, at little waste, whatever there is', () => {
    let wasteful = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2, 3, 7, 10, 50, 333, 1_000),
        fc.constantFrom(2_000, 5_000, 20_000, 60_000),
        fc.string(),
        (free, taskMs, seed) => {
          const account = new Account(free);
          const job = new Job(account, { taskMs, seed, grant: 5_000 });
          let busy = 0;
          run(account, [job], 1_200, (tick) => {
            if (tick >= 600) busy += job.running.length;
          });
          expect(job.mostRun).toBe(free);
          // Of the second half of the time: each task takes a tick to begin, and what waits a pause to find room.
          const most = taskMs / (taskMs + tickMs);
          const used = busy / 600 / free / most;
          expect(used).toBeGreaterThan(0.65);
          if (used <= 0.75) wasteful += 1;
          expect(job.waiting.length).toBeLessThanOrEqual(Math.max(12, free));
        },
      ),
      { numRuns: 40 },
    );
    // One of a thousand is content with seven of ten environments.
    expect(wasteful).toBeLessThanOrEqual(2);
  });

  it('is as wide as its grant and no wider', () => {
    const account = new Account(1_000);
    const job = new Job(account, { taskMs: 30_000, seed: 'grant', grant: 64 });
    run(account, [job], 300, () => {
      expect(job.running.length + job.waiting.length).toBeLessThanOrEqual(64);
    });
    expect(job.mostRun).toBe(64);
  });

  it('lets go where others take all at a burst, and comes back when they are gone', () => {
    const account = new Account(200);
    const job = new Job(account, { taskMs: 10_000, seed: 'burst', grant: 1_000 });
    run(account, [job], 300);
    expect(job.running.length).toBeGreaterThan(150);
    // Others take what becomes free, but for ten.
    let taken = 0;
    run(account, [job], 480, () => {
      const rest = Math.max(0, Math.min(account.free, 190 - taken));
      taken += rest;
      account.free -= rest;
    });
    expect(job.concurrency.known).toBeLessThanOrEqual(30);
    account.free += taken;
    run(account, [job], 600);
    expect(job.running.length).toBeGreaterThan(150);
  });

  it.each(['a', 'b', 'c', 'd', 'e'])('shares an account between jobs, no one starved (%s)', (seed) => {
    const account = new Account(120);
    const first = new Job(account, { taskMs: 10_000, seed: `${seed}1`, grant: 1_000 });
    run(account, [first], 120);
    const second = new Job(account, { taskMs: 10_000, seed: `${seed}2`, grant: 1_000 });
    const sums = [0, 0];
    run(account, [first, second], 3_600, (tick) => {
      if (tick < 1_800) return;
      sums[0] = (sums[0] ?? 0) + first.running.length;
      sums[1] = (sums[1] ?? 0) + second.running.length;
    });
    const shares = sums.map((sum) => sum / 1_800 / 120);
    expect(Math.min(...shares)).toBeGreaterThan(0.1);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBeGreaterThan(0.7);
  });
});
