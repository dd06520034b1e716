import * as z from 'zod';
import { firstProblem } from '../../contracts/invalid.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { type EpochMs, epochMs } from '../../contracts/units.ts';
import type { NodeBook } from '../../core/model/node-book.ts';
import type { NodeBookStore, StoredNodeBook } from '../../ports/node-book-store.ts';
import type { DynamoTable } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

const key = { pk: 'STATISTICS', sk: 'NODES' };
const sign = z.object({
  of: z.string(),
  at: z.number().min(0).transform(epochMs),
  slowdown: z.number().min(0).exactOptional(),
  contrasted: z.literal(true).exactOptional(),
});
const itemSchema = z.object({
  version: z.int().min(1),
  book: z.array(z.object({ node: z.string(), zone: z.string(), signs: z.array(sign) })),
});

/** The node book in DynamoDB: one item, of a few kilobytes at most. */
export class DynamoNodeBookStore implements NodeBookStore {
  private readonly table: DynamoTable;
  private readonly report: ReportUnreadable;

  constructor(table: DynamoTable, report: ReportUnreadable = () => undefined) {
    this.table = table;
    this.report = report;
  }

  async read(): Promise<StoredNodeBook> {
    const item = await this.table.get(key);
    if (item === undefined) return { book: [], version: 0 };
    const parsed = itemSchema.safeParse(item);
    if (parsed.success) return parsed.data;
    this.report({ key: `${key.pk}/${key.sk}`, why: firstProblem(parsed.error) });
    // What cannot be read is written over.
    return { book: [], version: typeof item.version === 'number' ? item.version : 0 };
  }

  async write(book: NodeBook, replaces: number, now: EpochMs): Promise<'written' | 'refused'> {
    const isSame =
      replaces === 0
        ? { when: 'attribute_not_exists(#version)' }
        : { when: '#version = :replaces', values: { replaces } };
    const answer = await this.table.update(key, {
      set: { version: replaces + 1, book, [TableSchema.ttl]: expiryOf(now) },
      ...isSame,
    });
    return answer === 'refused' ? 'refused' : 'written';
  }
}
