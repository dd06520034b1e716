import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { EnlistedJob, Roster, TakenSeat } from '../../../src/ports/roster.ts';
import { at, freshJobId, tally } from './builders.ts';

const enlisted = (seconds: number, more: Partial<EnlistedJob> = {}): EnlistedJob => ({
  jobId: freshJobId(),
  createdAt: at(seconds),
  weight: 0.25,
  mark: 'first',
  enlistedAt: at(seconds),
  ...more,
});
const seat = (number: number, resident: string, seconds = 10): TakenSeat => ({
  number,
  resident,
  until: at(seconds),
});
const tokenOf = async (roster: Roster, jobId: JobId) => (await roster.tokens([jobId])).get(jobId);

/** What every roster must do; `make` gives an empty one. */
export function describeRoster(name: string, make: () => Roster | Promise<Roster>): void {
  describe(`${name} as a roster`, () => {
    it('lists jobs by age, however they came, up to a limit', async () => {
      const roster = await make();
      expect(await roster.view(10)).toEqual({ jobs: [], seats: [] });
      const [old, young, middle] = [enlisted(1), enlisted(1_000), enlisted(30)];
      for (const job of [young, old, middle]) await roster.enlist(job, 'token');
      expect((await roster.view(10)).jobs).toEqual([old, middle, young]);
      expect((await roster.view(2)).jobs).toEqual([old, middle]);
    });

    it('lists those behind the oldest page by page, each once, whatever goes and comes meanwhile', async () => {
      const roster = await make();
      const jobs = Array.from({ length: 7 }, (_, index) => enlisted(index));
      for (const job of jobs.slice(0, 6)) await roster.enlist(job, 'token');
      const first = await roster.view(2);
      if (jobs[1] !== undefined) await roster.strike(jobs[1], jobs[1].mark);
      const second = await roster.after(first.next ?? '', 3);
      if (jobs[6] !== undefined) await roster.enlist(jobs[6], 'token');
      const third = await roster.after(second.next ?? '', 3);
      expect([...first.jobs, ...second.jobs, ...third.jobs]).toEqual(jobs);
      expect(third.next).toBeUndefined();
      expect((await roster.view(10)).next).toBeUndefined();
    });

    it('gives a job that comes again another mark and token, and keeps who has taken it', async () => {
      const roster = await make();
      const job = enlisted(1);
      await roster.enlist(job, 'one');
      await roster.take(job, { from: undefined, resident: 'a' });
      await roster.enlist({ ...job, mark: 'second', enlistedAt: at(9) }, 'two');
      expect(await roster.find(job)).toEqual({ ...job, mark: 'second', enlistedAt: at(9), resident: 'a' });
      expect(await tokenOf(roster, job.jobId)).toEqual({ token: 'two', mark: 'second' });
    });

    it('gives a job to exactly one of many that would take it, and to that one again', async () => {
      const roster = await make();
      const job = enlisted(1);
      await roster.enlist(job, 'token');
      const takes = await Promise.all(
        Array.from({ length: 10 }, (_, rival) =>
          roster.take(job, { from: undefined, resident: `rival-${rival}` }),
        ),
      );
      expect(tally(takes)).toEqual({ taken: 1, stale: 9 });
      const { resident = '' } = (await roster.find(job)) ?? {};
      expect(await roster.take(job, { from: undefined, resident })).toBe('taken');
    });

    it('hands a job from one that is gone to one other, and back to nobody by its holder alone', async () => {
      const roster = await make();
      const job = enlisted(1);
      await roster.enlist(job, 'token');
      await roster.take(job, { from: undefined, resident: 'dead' });
      expect(await roster.take(job, { from: 'dead', resident: 'b' })).toBe('taken');
      expect(await roster.take(job, { from: 'dead', resident: 'c' })).toBe('stale');
      await roster.giveBack(job, 'dead');
      expect((await roster.find(job))?.resident).toBe('b');
      await roster.giveBack(job, 'b');
      expect(await roster.find(job)).toEqual(job);
    });

    it('strikes a job by the mark that it has, and takes none that is not there', async () => {
      const roster = await make();
      const job = enlisted(1);
      await roster.enlist(job, 'token');
      expect(await roster.strike(job, 'other')).toBe('stale');
      expect(await roster.strike(job, 'first')).toBe('struck');
      expect(await roster.strike(job, 'first')).toBe('stale');
      expect(await roster.find(job)).toBeUndefined();
      expect(await roster.take(job, { from: undefined, resident: 'a' })).toBe('stale');
      await roster.giveBack(job, 'a');
      expect((await roster.view(10)).jobs).toEqual([]);
    });

    it('finds the tokens of many jobs at once, and none of those that have none', async () => {
      const roster = await make();
      const jobs = Array.from({ length: 130 }, (_, index) => enlisted(index));
      for (const job of jobs) await roster.enlist(job, `token-${job.createdAt}`);
      const found = await roster.tokens([...jobs.map(({ jobId }) => jobId), freshJobId()]);
      expect(found.size).toBe(130);
      expect(found.get(jobs[129]?.jobId ?? freshJobId())?.token).toBe(`token-${at(129)}`);
    });

    it('seats one of many, in a seat that is as it was seen', async () => {
      const roster = await make();
      const rivals = await Promise.all(
        Array.from({ length: 10 }, (_, rival) => roster.sit(seat(0, `rival-${rival}`), undefined)),
      );
      expect(tally(rivals)).toEqual({ seated: 1, occupied: 9 });
      const [seen] = (await roster.view(1)).seats;
      if (seen?.resident === undefined) throw new Error('nobody sits there');
      expect(await roster.sit({ ...seen, resident: seen.resident }, undefined)).toBe('seated');
      expect(await roster.stay({ ...seen, resident: seen.resident, until: at(20) })).toBe('seated');
      // It has shown that it lives since.
      expect(await roster.sit(seat(0, 'late'), seen)).toBe('occupied');
      const [now] = (await roster.view(1)).seats;
      expect(await roster.sit(seat(0, 'late', 30), now)).toBe('seated');
      expect(await roster.stay({ ...seen, resident: seen.resident })).toBe('lost');
    });

    it('leaves a seat to whoever comes, by who sits there alone', async () => {
      const roster = await make();
      await roster.sit(seat(1, 'a'), undefined);
      await roster.leave(seat(1, 'b'));
      expect((await roster.view(1)).seats).toEqual([seat(1, 'a')]);
      await roster.leave(seat(1, 'a'));
      const { seats } = await roster.view(1);
      expect(seats).toEqual([{ number: 1, until: at(10) }]);
      expect(await roster.stay(seat(1, 'a'))).toBe('lost');
      expect(await roster.sit(seat(1, 'b', 40), seats[0])).toBe('seated');
      expect((await roster.view(1)).seats).toEqual([seat(1, 'b', 40)]);
    });

    it('empties a seat of another that is as it was seen, once, and none that has changed since', async () => {
      const roster = await make();
      await roster.vacate(seat(0, 'nobody'));
      expect((await roster.view(1)).seats).toEqual([]);
      await roster.sit(seat(0, 'a'), undefined);
      await roster.vacate(seat(0, 'b'));
      // It has shown that it lives since.
      await roster.stay(seat(0, 'a', 20));
      await roster.vacate(seat(0, 'a'));
      expect((await roster.view(1)).seats).toEqual([seat(0, 'a', 20)]);
      await roster.vacate(seat(0, 'a', 20));
      await roster.vacate(seat(0, 'a', 20));
      const { seats } = await roster.view(1);
      expect(seats).toEqual([{ number: 0, until: at(20) }]);
      expect(await roster.stay(seat(0, 'a', 30))).toBe('lost');
      expect(await roster.sit(seat(0, 'b', 40), seats[0])).toBe('seated');
      await roster.vacate(seat(0, 'a', 20));
      expect((await roster.view(1)).seats).toEqual([seat(0, 'b', 40)]);
    });
  });
}
