import type { KeyValue } from './operator.ts';

/** Walks batches of records one by one, so that two streams can be read side by side. */
export class RecordCursor {
  /** The record at hand, undefined at the end. Good until the cursor moves. */
  current: KeyValue | undefined;
  private batch: readonly KeyValue[] = [];
  private at = 0;
  private readonly batches: AsyncIterator<readonly KeyValue[]>;

  private constructor(batches: AsyncIterator<readonly KeyValue[]>) {
    this.batches = batches;
  }

  /** A cursor at the first record. */
  static async open(records: AsyncIterable<readonly KeyValue[]>): Promise<RecordCursor> {
    const cursor = new RecordCursor(records[Symbol.asyncIterator]());
    await cursor.load();
    return cursor;
  }

  /** Whether moving on asks for the next batch, as of which nothing of this one may be used. */
  get isAtEndOfBatch(): boolean {
    return this.at + 1 >= this.batch.length;
  }

  /** Moves on by one record; to be awaited where it is a promise. */
  advance(): Promise<void> | undefined {
    this.at++;
    if (this.at >= this.batch.length) return this.load();
    this.current = this.batch[this.at];
    return undefined;
  }

  /** Ends the stream early. */
  async close(): Promise<void> {
    await this.batches.return?.();
  }

  private async load(): Promise<void> {
    this.current = undefined;
    this.at = 0;
    this.batch = [];
    for (;;) {
      const next = await this.batches.next();
      if (next.done === true) return;
      if (next.value.length === 0) continue;
      this.batch = next.value;
      this.current = next.value[0];
      return;
    }
  }
}

/** Visits the records of `key`, at which the cursor stands, and moves past them; where it stands at another, none. */
export async function eachOfKey(
  cursor: RecordCursor,
  key: Buffer,
  visit: (record: KeyValue) => Promise<void> | undefined,
): Promise<void> {
  while (cursor.current?.key.equals(key) === true) {
    const wait = visit(cursor.current);
    if (wait !== undefined) await wait;
    const move = cursor.advance();
    if (move !== undefined) await move;
  }
}
