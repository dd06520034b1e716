import type { DynamoTable, Item, ItemKey } from '../../src/adapters/aws/dynamo-table.ts';

/** Requests and write units by partition key, as a store sends them; items are kept as far as that needs. */
export class CountingTable {
  /** Write units by key and second of virtual time. */
  readonly writes = new Map<string, number>();
  readonly queries: string[] = [];
  batches = 0;
  second = 0;
  private readonly sets = new Map<string, Set<string>>();

  /** What stores are given. */
  get table(): DynamoTable {
    return this as unknown as DynamoTable;
  }

  /** The most units that any key was asked for in one second. */
  get mostPerSecond(): number {
    return Math.max(0, ...this.writes.values());
  }

  putNew({ pk }: ItemKey & Item): Promise<'written'> {
    this.write(pk, 1);
    return Promise.resolve('written');
  }

  update({ pk }: ItemKey, { values = {}, clauses = '' }: { values?: Item; clauses?: string }): Promise<Item> {
    const { note } = values;
    if (note instanceof Set && clauses.startsWith('ADD')) {
      const held = this.sets.get(pk) ?? new Set<string>();
      this.sets.set(pk, held);
      for (const each of note) held.add(String(each));
      const bytes = [...held].reduce((sum, { length }) => sum + length + 1, 100);
      this.write(pk, Math.ceil(bytes / 1_024));
    } else this.write(pk, 1);
    return Promise.resolve({ state: 'running', order: 'continue' });
  }

  batchGet(keys: readonly ItemKey[]): Promise<readonly Item[]> {
    if (keys.length > 100) throw new Error('a batch has 100 keys at most');
    this.batches += 1;
    return Promise.resolve([]);
  }

  async *query({ values }: { values: Item }): AsyncGenerator<Item> {
    this.queries.push(String(values['pk']));
    yield* [];
  }

  private write(pk: string, units: number): void {
    const place = `${pk}@${String(this.second)}`;
    this.writes.set(place, (this.writes.get(place) ?? 0) + units);
  }
}
