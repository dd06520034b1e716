import { describe, expect, it } from 'vitest';
import { SharedRoom } from '../../../src/app/shared-room.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../../src/contracts/units.ts';

const [small, wide] = ['small', 'wide'] as const satisfies readonly string[];
const tickMs = 1_000;

interface Waiting {
  readonly at: number;
  isKnownLate: boolean;
}

/** A job with a long queue on an account: its launches wait there until fewer than all of its environments are busy. */
class Job {
  readonly jobId: JobId;
  /** Ends of what runs. */
  running: number[] = [];
  waiting: Waiting[] = [];
  private claimLagsMs: number[] = [];
  private claimed = 0;
  private readonly taskMs: number;

  constructor(jobId: string, taskMs: number) {
    this.jobId = jobId as JobId;
    this.taskMs = taskMs;
  }

  get live(): number {
    return this.running.length + this.waiting.length;
  }

  end(now: number): void {
    this.running = this.running.filter((endsAt) => endsAt > now);
  }

  /** Takes up what waits, at most `free`; tasks take from seven tenths to thirteen of their time. */
  claim(now: number, free: number): void {
    const taken = this.waiting.splice(0, free);
    this.claimLagsMs = taken.map(({ at }) => now - at);
    const ends = taken.map((_, index) => now + this.taskMs * (0.7 + 0.1 * ((this.claimed + index) % 7)));
    this.claimed += taken.length;
    this.running.push(...ends);
  }

  see(room: SharedRoom, now: number): number {
    const { claimLagsMs, waiting } = this;
    const patienceMs = room.patienceMs(claimLagsMs);
    const holdMs = room.holdMs(durationMs(this.taskMs));
    const late = waiting.filter(({ at }) => now - at > patienceMs);
    const turned = late.filter(({ isKnownLate }) => !isKnownLate);
    for (const each of turned) each.isKnownLate = true;
    return room.see(this.jobId, {
      ...{ now: epochMs(now), claimLagsMs, throttled: 0, turnedLate: turned.length, owed: 10_000 },
      ...{ running: this.running.length, starting: waiting.length - late.length, late: late.length },
      held: late.filter(({ at }) => now - at <= holdMs).length,
    });
  }

  launch(count: number, now: number): void {
    for (let made = 0; made < count; made++) this.waiting.push({ at: now, isKnownLate: false });
  }
}

/**
 * Two jobs that owe ten thousand tasks each, on an account of a hundred environments, of which one may run five at once.
 * Answers what each runs in the mean of ten minutes, after ten.
 */
function twoJobs(taskMs: number, knows: (jobs: { readonly live: number }) => number): readonly number[] {
  const room = new SharedRoom();
  const jobs = [small, wide].map((name) => new Job(name, taskMs));
  for (const { jobId } of jobs) room.enter(jobId, 0, epochMs(0));
  const sums = [0, 0];
  for (let tick = 1; tick <= 1_200; tick++) {
    const now = tick * tickMs;
    for (const job of jobs) job.end(now);
    for (const job of jobs) job.claim(now, 100 - jobs.reduce((sum, { running }) => sum + running.length, 0));
    for (const [index, job] of jobs.entries()) {
      job.see(room, now);
      const may = room.take(job.jobId, index === 0 ? knows(job) : Infinity);
      const launches = index === 0 ? Math.max(0, Math.min(may, 5 - job.live)) : may;
      room.giveBack(job.jobId, may - launches);
      job.launch(launches, now);
      if (tick > 600) sums[index] = (sums[index] ?? 0) + job.running.length / 600;
    }
  }
  return sums;
}

describe('room of which a job can make no use', () => {
  it.each([5_000, 30_000])('is left to others where the job says so: tasks of %i ms', (taskMs) => {
    const [few = 0, many = 0] = twoJobs(taskMs, ({ live }) => Math.max(0, 5 - live));
    expect(few).toBeGreaterThan(3.5);
    expect(many).toBeGreaterThanOrEqual(90);
  });

  it('is given back by a job that learns only then that it can launch nothing', () => {
    const room = new SharedRoom();
    const look = { now: epochMs(0), claimLagsMs: [], throttled: 0, turnedLate: 0 };
    const idle = { ...look, running: 0, starting: 0, late: 0, held: 0 };
    for (const name of [small, wide]) room.enter(name as JobId, 0, epochMs(0));
    // Four are tried before anything is known.
    expect(room.see(small as JobId, { ...idle, owed: 9 })).toBe(4);
    expect(room.take(small as JobId, Infinity)).toBe(4);
    expect(room.see(wide as JobId, { ...idle, owed: 9 })).toBe(2);
    expect(room.take(wide as JobId, Infinity)).toBe(0);
    room.giveBack(small as JobId, 4);
    expect(room.see(wide as JobId, { ...idle, owed: 9 })).toBe(4);
    expect(room.take(wide as JobId, Infinity)).toBe(4);
  });

  it('is kept for a job that could use more than it was left', () => {
    const room = new SharedRoom();
    const look = { now: epochMs(0), claimLagsMs: [], throttled: 0, turnedLate: 0 };
    const use = { ...look, starting: 0, late: 0, held: 0, owed: 9 };
    for (const name of [small, wide]) room.enter(name as JobId, 0, epochMs(0));
    expect(room.see(wide as JobId, { ...use, running: 4 })).toBe(0);
    expect(room.see(small as JobId, { ...use, running: 0 })).toBe(2);
    expect(room.take(small as JobId, Infinity)).toBe(0);
    // As one of the other's ends it is not for the other.
    room.see(wide as JobId, { ...use, running: 3 });
    expect(room.take(wide as JobId, Infinity)).toBe(0);
    room.see(small as JobId, { ...use, running: 0 });
    expect(room.take(small as JobId, Infinity)).toBe(1);
  });
});

describe('the most that a job may have', () => {
  /** A job that has twenty running, one of whose launches came late then. */
  const afterOneLate = (owed: number): SharedRoom => {
    const room = new SharedRoom();
    const look = { running: 0, starting: 0, late: 0, held: 0, turnedLate: 0, claimLagsMs: [], throttled: 0 };
    room.enter(small as JobId, 20, epochMs(0));
    room.see(small as JobId, { ...look, now: epochMs(1_000), running: 20, owed });
    room.take(small as JobId, 0);
    room.see(small as JobId, { ...look, now: epochMs(2_000), running: 20, late: 1, turnedLate: 1, owed });
    return room;
  };

  it('is all that runs where it wants more and a launch came late', () => {
    expect(afterOneLate(100).mostOf(small as JobId)).toBe(20);
  });

  it('is not told by a late launch of one that wants no more', () => {
    expect(afterOneLate(0).mostOf(small as JobId)).toBe(Infinity);
  });
});
