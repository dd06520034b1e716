import * as z from 'zod';
import { type JobId } from '../../contracts/ids.ts';
import { rosterPartition, TableSchema } from '../../contracts/settings.ts';
import { epochMs } from '../../contracts/units.ts';
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
import { asRead } from './as-read.ts';
import type { Condition, DynamoTable, Item, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import { problemOf } from './problem-of.ts';
import type { ReportUnreadable } from './report-unreadable.ts';
import { jobIdField, timeField } from './item-fields.ts';

/** In the roster's one partition seats come first, then jobs by age. */
const SEAT = 'A-SEAT#';
const JOB = 'JOB#';
/** Digits of a time, so that names sort as times do. */
const TIME_DIGITS = 15;
const KEYS_PER_READ = 100;

const seatKey = (number: number): ItemKey => ({
  pk: rosterPartition,
  sk: `${SEAT}${String(number).padStart(4, '0')}`,
});
const placeKey = ({ jobId, createdAt }: RosterPlace): ItemKey => ({
  pk: rosterPartition,
  sk: `${JOB}${String(createdAt).padStart(TIME_DIGITS, '0')}#${jobId}`,
});
const tokenKey = (jobId: JobId): ItemKey => ({ pk: `JOB#${jobId}`, sk: 'TASK-TOKEN' });

const jobSchema = z.object({
  jobId: jobIdField,
  createdAt: timeField,
  weight: z.number().positive().max(1),
  mark: z.string(),
  enlistedAt: timeField,
  resident: z.string().exactOptional(),
});
const seatSchema = z.object({
  number: z.int().min(0),
  resident: z.string().exactOptional(),
  until: timeField,
});
const residentSchema = z.object({ resident: z.string().exactOptional() });
const tokenSchema = z.object({ jobId: jobIdField, token: z.string().min(1), mark: z.string() });

/** The roster in DynamoDB: an item a seat and an item a job, small ones, since they are listed again and again. */
export class DynamoRoster implements Roster {
  private readonly table: DynamoTable;
  private readonly report: ReportUnreadable;
  /** Seats that cannot be read, as they lie in the table. */
  private readonly spoilt = new WeakMap<Seat, Item>();

  constructor(table: DynamoTable, report: ReportUnreadable = () => undefined) {
    this.table = table;
    this.report = report;
  }

  async enlist(
    { jobId: id, createdAt, weight, mark, enlistedAt }: EnlistedJob,
    token: string,
  ): Promise<void> {
    const expiry = { [TableSchema.ttl]: expiryOf(enlistedAt) };
    await this.table.update(tokenKey(id), { set: { jobId: id, token, mark, ...expiry } });
    await this.table.update(placeKey({ jobId: id, createdAt }), {
      set: { jobId: id, createdAt, weight, mark, enlistedAt, ...expiry },
    });
  }

  async view(limit: number): Promise<RosterView> {
    const { items: seats } = await this.range(SEAT, KEYS_PER_READ);
    const jobs = await this.jobsAfter(undefined, limit);
    return { seats: seats.flatMap((item) => this.seatOf(item)), ...jobs };
  }

  after(next: string, limit: number): Promise<RosterPage> {
    return this.jobsAfter(next, limit);
  }

  private async jobsAfter(after: string | undefined, limit: number): Promise<RosterPage> {
    const { items, next } = await this.range(JOB, limit, after);
    return {
      jobs: items.flatMap((item) => this.jobOf(item)),
      ...(next === undefined ? {} : { next: String(next['sk']) }),
    };
  }

  /** A job that was taken by what is no resident is taken by nobody: enlisted anew it keeps who has it. */
  private jobOf({ resident, ...item }: Item): readonly RosterJob[] {
    const taker = residentSchema.safeParse(resident === undefined ? {} : { resident });
    if (!taker.success) this.tell(item, 'resident must be text');
    return this.decoded(jobSchema, { ...item, ...taker.data });
  }

  /**
   * A seat that cannot be read is one that nobody keeps: left out, it could be taken by nobody for as long as its item
   * lies there.
   */
  private seatOf(item: Item): readonly Seat[] {
    const number = /^\d{1,9}$/.exec(String(item.sk).slice(SEAT.length))?.[0];
    const [read] = this.decoded(seatSchema, item);
    if (number === undefined || read?.number === Number(number)) return read === undefined ? [] : [read];
    const seat = {
      number: Number(number),
      ...residentSchema.safeParse({ resident: item['resident'] }).data,
      until: epochMs(0),
    };
    this.spoilt.set(seat, item);
    return [seat];
  }

  async find(place: RosterPlace): Promise<RosterJob | undefined> {
    const item = await this.table.get(placeKey(place));
    return item === undefined ? undefined : this.jobOf(item)[0];
  }

  async take(
    place: RosterPlace,
    { from, resident }: { readonly from: string | undefined; readonly resident: string },
  ): Promise<'taken' | 'stale'> {
    const answer = await this.table.update(placeKey(place), {
      set: { resident },
      // One that has come away with it and was asked again has it already.
      when:
        from === undefined
          ? 'attribute_exists(#pk) AND (attribute_not_exists(#resident) OR NOT attribute_type(#resident, :text) OR #resident = :set_resident)'
          : '#resident = :from OR #resident = :set_resident',
      values: from === undefined ? { text: 'S' } : { from },
    });
    return answer === 'refused' ? 'stale' : 'taken';
  }

  async giveBack(place: RosterPlace, resident: string): Promise<void> {
    await this.table.update(placeKey(place), {
      clauses: 'REMOVE #resident',
      when: '#resident = :resident',
      values: { resident },
    });
  }

  async strike(place: RosterPlace, mark: string): Promise<'struck' | 'stale'> {
    const answer = await this.table.remove(placeKey(place), { when: '#mark = :mark', values: { mark } });
    return answer === 'refused' ? 'stale' : 'struck';
  }

  async tokens(jobs: readonly JobId[]): Promise<ReadonlyMap<JobId, TaskToken>> {
    const found = new Map<JobId, TaskToken>();
    for (let start = 0; start < jobs.length; start += KEYS_PER_READ) {
      const items = await this.table.batchGet(jobs.slice(start, start + KEYS_PER_READ).map(tokenKey));
      for (const item of items)
        for (const { jobId: id, token, mark } of this.decoded(tokenSchema, item))
          found.set(id, { token, mark });
    }
    return found;
  }

  async sit({ number, resident, until }: TakenSeat, seen: Seat | undefined): Promise<'seated' | 'occupied'> {
    const { when, values = {} } = this.asSeen(seen);
    const answer = await this.table.update(seatKey(number), {
      set: { number, resident, until, [TableSchema.ttl]: expiryOf(until) },
      when: `(${when}) OR #resident = :set_resident`,
      values,
    });
    return answer === 'refused' ? 'occupied' : 'seated';
  }

  private asSeen(seen: Seat | undefined): Condition {
    if (seen === undefined) return { when: 'attribute_not_exists(#pk)' };
    return asRead(this.spoilt.get(seen) ?? { ...seen }, ['until', 'resident']);
  }

  async stay({ number, resident, until }: TakenSeat): Promise<'seated' | 'lost'> {
    const answer = await this.table.update(seatKey(number), {
      set: { until },
      when: '#resident = :resident',
      values: { resident },
    });
    return answer === 'refused' ? 'lost' : 'seated';
  }

  async leave({ number, resident }: TakenSeat): Promise<void> {
    await this.table.update(seatKey(number), {
      clauses: 'REMOVE #resident',
      when: '#resident = :resident',
      values: { resident },
    });
  }

  async vacate(seen: TakenSeat): Promise<void> {
    await this.table.update(seatKey(seen.number), { clauses: 'REMOVE #resident', ...this.asSeen(seen) });
  }

  private range(prefix: string, limit: number, after?: string): ReturnType<DynamoTable['page']> {
    const query = {
      keys: '#pk = :pk AND begins_with(#sk, :prefix)',
      values: { pk: rosterPartition, prefix },
      isConsistent: true,
    };
    const start = after === undefined ? undefined : { pk: rosterPartition, sk: after };
    return this.table.page(query, { start, limit });
  }

  /** The item as it is to be, or nothing where it is not. */
  private decoded<T>(schema: z.ZodType<T>, item: Item): readonly T[] {
    const parsed = schema.safeParse(item);
    if (parsed.success) return [parsed.data];
    this.tell(item, problemOf(parsed.error));
    return [];
  }

  private tell(item: Item, why: string): void {
    this.report({ key: `${String(item.pk)}/${String(item.sk)}`, why });
  }
}
