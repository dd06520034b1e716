import type { JobId } from '../../contracts/ids.ts';
import type {
  EnlistedJob,
  Roster,
  RosterJob,
  RosterPage,
  RosterPlace,
  RosterView,
  Seat,
  TakenSeat,
  TaskToken,
} from '../../ports/roster.ts';

/** By which jobs are sorted. */
const nameOf = ({ createdAt, jobId }: RosterPlace): string =>
  `${String(createdAt).padStart(15, '0')}#${jobId}`;

/** The roster in memory. */
export class MemoryRoster implements Roster {
  private readonly jobs = new Map<JobId, RosterJob>();
  private readonly seats = new Map<number, Seat>();
  private readonly kept = new Map<JobId, TaskToken>();

  enlist(job: EnlistedJob, token: string): Promise<void> {
    this.kept.set(job.jobId, { token, mark: job.mark });
    const resident = this.jobs.get(job.jobId)?.resident;
    this.jobs.set(job.jobId, { ...job, ...(resident === undefined ? {} : { resident }) });
    return Promise.resolve();
  }

  view(limit: number): Promise<RosterView> {
    const seats = [...this.seats.values()].sort((a, b) => a.number - b.number);
    return Promise.resolve({ ...this.pageAfter('', limit), seats });
  }

  after(next: string, limit: number): Promise<RosterPage> {
    return Promise.resolve(this.pageAfter(next, limit));
  }

  private pageAfter(next: string, limit: number): RosterPage {
    const all = [...this.jobs.values()]
      .map((job) => ({ job, name: nameOf(job) }))
      .filter(({ name }) => name > next)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const page = all.slice(0, limit);
    const last = page.at(-1);
    return {
      jobs: page.map(({ job }) => job),
      ...(last === undefined || all.length === page.length ? {} : { next: last.name }),
    };
  }

  find({ jobId }: RosterPlace): Promise<RosterJob | undefined> {
    return Promise.resolve(this.jobs.get(jobId));
  }

  take(
    { jobId }: RosterPlace,
    { from, resident }: { readonly from: string | undefined; readonly resident: string },
  ): Promise<'taken' | 'stale'> {
    const job = this.jobs.get(jobId);
    if (job === undefined || (job.resident !== from && job.resident !== resident))
      return Promise.resolve('stale');
    this.jobs.set(jobId, { ...job, resident });
    return Promise.resolve('taken');
  }

  giveBack({ jobId }: RosterPlace, resident: string): Promise<void> {
    const { resident: holder, ...job } = this.jobs.get(jobId) ?? {};
    if (holder === resident && 'jobId' in job) this.jobs.set(jobId, job);
    return Promise.resolve();
  }

  strike({ jobId }: RosterPlace, mark: string): Promise<'struck' | 'stale'> {
    if (this.jobs.get(jobId)?.mark !== mark) return Promise.resolve('stale');
    this.jobs.delete(jobId);
    return Promise.resolve('struck');
  }

  tokens(jobs: readonly JobId[]): Promise<ReadonlyMap<JobId, TaskToken>> {
    const found = jobs.flatMap((jobId): [JobId, TaskToken][] => {
      const token = this.kept.get(jobId);
      return token === undefined ? [] : [[jobId, token]];
    });
    return Promise.resolve(new Map(found));
  }

  sit(seat: TakenSeat, seen: Seat | undefined): Promise<'seated' | 'occupied'> {
    const there = this.seats.get(seat.number);
    const isAsSeen = there?.resident === seen?.resident && there?.until === seen?.until;
    if (!isAsSeen && there?.resident !== seat.resident) return Promise.resolve('occupied');
    this.seats.set(seat.number, seat);
    return Promise.resolve('seated');
  }

  stay(seat: TakenSeat): Promise<'seated' | 'lost'> {
    if (this.seats.get(seat.number)?.resident !== seat.resident) return Promise.resolve('lost');
    this.seats.set(seat.number, seat);
    return Promise.resolve('seated');
  }

  vacate(seen: TakenSeat): Promise<void> {
    return this.seats.get(seen.number)?.until === seen.until ? this.leave(seen) : Promise.resolve();
  }

  leave({ number, resident, until }: TakenSeat): Promise<void> {
    if (this.seats.get(number)?.resident === resident) this.seats.set(number, { number, until });
    return Promise.resolve();
  }
}
