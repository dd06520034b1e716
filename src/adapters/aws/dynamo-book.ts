import * as z from 'zod';
import { firstProblem } from '../../contracts/invalid.ts';
import { TableSchema } from '../../contracts/settings.ts';
import type { EpochMs } from '../../contracts/units.ts';
import type { BookStore, StoredBook } from '../../ports/book-store.ts';
import type { DynamoTable } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

/** A book in DynamoDB: one item, of a few kilobytes at most. */
export class DynamoBook<Book extends readonly unknown[]> implements BookStore<Book> {
  private readonly table: DynamoTable;
  private readonly report: ReportUnreadable;
  private readonly key: { readonly pk: string; readonly sk: string };
  private readonly schema: z.ZodType<StoredBook<Book>>;
  private readonly empty: Book;

  constructor(
    table: DynamoTable,
    { name, book, empty }: { readonly name: string; readonly book: z.ZodType<Book>; readonly empty: Book },
    report: ReportUnreadable = () => undefined,
  ) {
    this.table = table;
    this.report = report;
    this.key = { pk: 'STATISTICS', sk: name };
    this.schema = z.object({ version: z.int().min(1), book });
    this.empty = empty;
  }

  async read(): Promise<StoredBook<Book>> {
    const { key, empty } = this;
    const item = await this.table.get(key);
    if (item === undefined) return { book: empty, version: 0 };
    const parsed = this.schema.safeParse(item);
    if (parsed.success) return parsed.data;
    this.report({ key: `${key.pk}/${key.sk}`, why: firstProblem(parsed.error) });
    // What cannot be read is written over.
    return { book: empty, version: typeof item.version === 'number' ? item.version : 0 };
  }

  async write(book: Book, replaces: number, now: EpochMs): Promise<'written' | 'refused'> {
    const isSame =
      replaces === 0
        ? { when: 'attribute_not_exists(#version)' }
        : { when: '#version = :replaces', values: { replaces } };
    const answer = await this.table.update(this.key, {
      set: { version: replaces + 1, book, [TableSchema.ttl]: expiryOf(now) },
      ...isSame,
    });
    return answer === 'refused' ? 'refused' : 'written';
  }
}
