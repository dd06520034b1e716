import * as z from 'zod';
import { type JobId, parseJobId } from '../../contracts/ids.ts';
import { limits } from '../../contracts/limits.ts';
import { ledgerPartition } from '../../contracts/settings.ts';
import { cloneHolding } from '../../core/capacity/clone-holding.ts';
import {
  type Admitted,
  admittedOf,
  admittedParts,
  type Holding,
  type SlotBid,
  type Statement,
  withClones,
} from '../../core/capacity/ledger.ts';
import type { Item, ItemKey } from './dynamo-table.ts';
import { jobIdField, timeField } from './item-fields.ts';

/** The partition of the ledger: its head, and an item for each job. */
export const headKey: ItemKey = { pk: ledgerPartition, sk: 'CAPACITY' };
export const jobPrefix = 'JOB#';
export const holdingKey = (jobId: JobId): ItemKey => ({ pk: ledgerPartition, sk: `${jobPrefix}${jobId}` });

const slotCount = z.int().min(0);
const slotsByPhase = z.record(z.string(), slotCount);
const cloningSchema = z.object({
  clones: slotsByPhase.exactOptional(),
  jobTasks: z.number().exactOptional(),
  addedSlots: slotsByPhase.exactOptional(),
  preempted: z
    .record(z.string(), z.object({ by: jobIdField, byTasks: z.number(), slots: slotCount }))
    .exactOptional(),
});
/** As JSON, since phases may have any names, also those that every object has; empty where there are no clones. */
const cloningText = z.string();
const wordsSchema = z.object({
  wanted: slotCount,
  weight: z.number().positive(),
  since: timeField,
  beat: z.int(),
  epoch: z.int(),
});
const bidSchema = z.object({
  asks: slotCount,
  left: z.array(z.tuple([slotCount, z.number()])).max(limits.bidPoints),
  utility: z.array(z.tuple([z.number(), z.number()])).max(limits.bidPoints),
});
/** As JSON: a job bids anew as it goes on, and nothing else looks into it. */
const bidText = z.string().transform(decodeBid);

function decodeBid(text: string): SlotBid | undefined {
  try {
    return bidSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

const bidItem = ({ bid }: Holding): { readonly bid?: string } =>
  bid === undefined ? {} : { bid: JSON.stringify(bid) };

/** There from the first admission on. */
const admittedShape = {
  backups: slotCount.exactOptional(),
  guaranteed: slotCount.exactOptional(),
  tokens: slotCount.exactOptional(),
};
const holdingSchema = z.object({
  ...wordsSchema.shape,
  slots: slotCount,
  held: slotCount,
  ...admittedShape,
  bid: bidText.exactOptional(),
  cloning: cloningText,
  round: slotCount,
  entry: z.string(),
});

/** A job's item. */
export interface StoredHolding {
  readonly jobId: JobId;
  /** Which round of changes has written its grant last. */
  readonly round: number;
  /** Differs each time that the job enters the ledger: what was decided on what it held before concerns it no more. */
  readonly entry: string;
  readonly holding: Holding;
}

const cloningOf = (holding: Holding): string => {
  const cloning = cloneHolding(holding);
  return Object.keys(cloning).length === 0 ? '' : JSON.stringify(cloning);
};

/** What a job says of itself, as it is written. */
export function wordsItem({ wanted, weight, since, beat, epoch }: Statement): Item {
  return { wanted, weight, since, beat, epoch };
}

/** What a job may use, as it is written. */
export const slotsItem = (holding: Holding): Item => ({
  slots: holding.slots,
  held: holding.held,
  ...admittedOf(holding),
  ...bidItem(holding),
});

/** A job that enters the ledger, as it is written. */
export const newItem = (holding: Holding, entry: string): Item => ({
  ...wordsItem(holding),
  ...slotsItem(holding),
  cloning: cloningOf(holding),
  round: 0,
  entry,
});

/** The job of an item of the ledger; undefined: the item is no job's. */
export function jobOf({ sk }: Item): JobId | undefined {
  return typeof sk === 'string' && sk.startsWith(jobPrefix)
    ? parseJobId(sk.slice(jobPrefix.length))
    : undefined;
}

/** A job's item; undefined where it cannot be read. */
export function decodeHolding(jobId: JobId, item: Item): StoredHolding | undefined {
  const parsed = holdingSchema.safeParse(item);
  if (!parsed.success) return undefined;
  const { round, entry, cloning, ...rest } = parsed.data;
  const clones = decodeCloning(cloning);
  return clones && { jobId, round, entry, holding: { ...rest, ...cloneHolding(clones) } };
}

function decodeCloning(text: string): z.output<typeof cloningSchema> | undefined {
  if (text === '') return {};
  try {
    return cloningSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

const changeSchema = z.object({
  jobId: z.string(),
  entry: z.string(),
  slots: slotCount,
  held: slotCount,
  /** Absent: as it was. */
  wanted: slotCount.exactOptional(),
  ...admittedShape,
  bid: z.string().exactOptional(),
  cloning: cloningText.exactOptional(),
});
/** What a round changes of one job. */
export type StoredChange = z.infer<typeof changeSchema>;

/** What has to be written where a job's grant changes. */
export function changeOf({ jobId, entry, holding }: StoredHolding, after: Holding): StoredChange {
  const { slots, held, wanted } = after;
  const cloning = cloningOf(after);
  return {
    jobId,
    entry,
    slots,
    held,
    ...(wanted === holding.wanted ? {} : { wanted }),
    ...admittedAnew(holding, after),
    ...(after.bid === holding.bid ? {} : bidItem(after)),
    ...(cloning === cloningOf(holding) ? {} : { cloning }),
  };
}

/** What a job was admitted that differs from before. */
function admittedAnew(before: Holding, after: Holding): Admitted {
  const admitted = admittedOf(after);
  const changes: { -readonly [Part in keyof Admitted]: Admitted[Part] } = {};
  for (const part of admittedParts)
    if (admitted[part] !== undefined && admitted[part] !== before[part]) changes[part] = admitted[part];
  return changes;
}

/** A job's item as it is once a change of a round has been carried out. */
export function changed(stored: StoredHolding, round: number, change: StoredChange): StoredHolding {
  const { holding } = stored;
  const { slots, held, wanted = holding.wanted, cloning } = change;
  const clones = cloning === undefined ? holding : (decodeCloning(cloning) ?? {});
  const bid = change.bid === undefined ? holding.bid : decodeBid(change.bid);
  const after = { ...holding, ...admittedOf(change), wanted, slots, held, bid };
  return { ...stored, round, holding: withClones(after, clones) };
}

const headSchema = z.object({
  version: slotCount,
  totalSlots: z.number(),
  /** Differs with each write. */
  writeId: z.string(),
  /** What round `version` changes, as JSON: whoever comes next completes it where its author has not. */
  changes: z.string(),
});
export interface Head {
  readonly version: number;
  readonly totalSlots: number;
  readonly writeId: string;
  readonly changes: readonly StoredChange[];
}

/** The head of the ledger; undefined where it cannot be read. */
export function decodeHead(item: Item): Head | undefined {
  const parsed = headSchema.safeParse(item);
  if (!parsed.success) return undefined;
  try {
    const changes = z.array(changeSchema).safeParse(JSON.parse(parsed.data.changes));
    return changes.success ? { ...parsed.data, changes: changes.data } : undefined;
  } catch {
    return undefined;
  }
}
