import * as z from 'zod';
import { decisionFormat } from '../../contracts/decision-log.ts';
import { UnreadableRecordError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import type { LogEntry } from '../../contracts/records.ts';
import { TableSchema } from '../../contracts/settings.ts';
import type { DecisionLog } from '../../ports/job-store.ts';
import { packJson, unpackJson } from './compact.ts';
import type { DynamoTable, Item, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import { problemOf } from './problem-of.ts';
import { timeField } from './item-fields.ts';

const VERSION_DIGITS = 10;
const entrySchema = z.object({
  /** Absent in entries of before there was a second one. */
  format: z.literal(decisionFormat).default(decisionFormat),
  version: z.int().min(1),
  epoch: z.int(),
  at: timeField,
  decisions: z.array(z.unknown()),
});

const partitionOf = (jobId: JobId): string => `LOG#${jobId}`;
/** Padded, so that the order of the sort key is the order of versions. */
const entryKey = (jobId: JobId, version: number): ItemKey => ({
  pk: partitionOf(jobId),
  sk: String(version).padStart(VERSION_DIGITS, '0'),
});

/** Decision logs in DynamoDB: one item an entry, written once. */
export class DynamoDecisionLog implements DecisionLog {
  private readonly table: DynamoTable;

  constructor(table: DynamoTable) {
    this.table = table;
  }

  async append(jobId: JobId, entry: LogEntry): Promise<'appended' | 'stale'> {
    const { version, epoch, at } = entry;
    const key = entryKey(jobId, version);
    const decisions = packJson(entry.decisions);
    const item = {
      ...key,
      format: decisionFormat,
      version,
      epoch,
      at,
      decisions,
      [TableSchema.ttl]: expiryOf(at),
    };
    if ((await this.table.putNew(item)) === 'written') return 'appended';
    // A repetition after a lost answer meets its own entry; epochs tell writers apart, contents their ticks.
    const there = await this.table.get(key);
    return there !== undefined && isSame(decodeEntry(there), entry) ? 'appended' : 'stale';
  }

  async *read(jobId: JobId): AsyncIterable<LogEntry> {
    const entries = this.table.query({
      keys: '#pk = :pk',
      values: { pk: partitionOf(jobId) },
      isConsistent: true,
    });
    for await (const item of entries) yield decodeEntry(item);
  }
}

/** Throws `UnreadableRecordError`: the log is the fence, and nobody may go on without one of its entries. */
function decodeEntry(item: Item): LogEntry {
  const key = `${String(item.pk)}/${String(item.sk)}`;
  try {
    const { version, epoch, at, decisions } = entrySchema.parse({
      ...item,
      decisions: unpackJson(item.decisions),
    });
    if (item.sk === String(version).padStart(VERSION_DIGITS, '0')) return { version, epoch, at, decisions };
  } catch (cause) {
    const why = problemOf(cause);
    throw new UnreadableRecordError(
      `entry ${key} of the decision log cannot be read: ${why}`,
      { key },
      { cause },
    );
  }
  throw new UnreadableRecordError(`entry ${key} of the decision log is of another version`, { key });
}

const isSame = (a: LogEntry, b: LogEntry): boolean =>
  a.epoch === b.epoch && a.at === b.at && JSON.stringify(a.decisions) === JSON.stringify(b.decisions);
