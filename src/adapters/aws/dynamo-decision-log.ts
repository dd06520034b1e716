import { z } from 'zod';
import type { JobId } from '../../contracts/ids.ts';
import type { LogEntry } from '../../contracts/records.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { epochMs } from '../../contracts/units.ts';
import type { DecisionLog } from '../../ports/job-store.ts';
import { packJson, unpackJson } from './compact.ts';
import type { DynamoTable, Item, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';

const VERSION_DIGITS = 10;
const entrySchema = z.object({
  version: z.number(),
  epoch: z.number(),
  at: z.number().transform(epochMs),
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
    const item = { ...key, version, epoch, at, decisions, [TableSchema.ttl]: expiryOf(at) };
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

const decodeEntry = (item: Item): LogEntry =>
  entrySchema.parse({ ...item, decisions: unpackJson(item.decisions) });

const isSame = (a: LogEntry, b: LogEntry): boolean =>
  a.epoch === b.epoch && a.at === b.at && JSON.stringify(a.decisions) === JSON.stringify(b.decisions);
