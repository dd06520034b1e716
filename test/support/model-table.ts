import type { Change, Condition, DynamoTable, Item, ItemKey } from '../../src/adapters/aws/dynamo-table.ts';

/** Units that something was asked for. */
export interface Units {
  writes: number;
  reads: number;
  /** The largest single write. */
  largest: number;
}

const textOf = ({ pk, sk }: ItemKey): string => `${pk}/${sk}`;
const bytesOf = (item: Item): number => JSON.stringify(item).length;

/** Whether an item is as one part of a condition has it. */
function isAs(part: string, item: Item | undefined, values: Item): boolean {
  const exists = /^attribute_(not_)?exists\(#(\w+)\)$/.exec(part);
  if (exists !== null) return (item?.[exists[2] ?? ''] === undefined) === (exists[1] !== undefined);
  const compared = /^#(\w+) (=|<) :(\w+)$/.exec(part);
  if (compared === null) throw new Error(`not understood: ${part}`);
  const [left, right] = [item?.[compared[1] ?? ''], values[compared[3] ?? '']];
  return compared[2] === '=' ? left !== undefined && left === right : Number(left) < Number(right);
}

/**
 * A table in memory that understands what the ledger of slots asks of it, and counts units as DynamoDB does. `before`
 * may hold a request up, as long as it likes: it takes effect once that has resolved.
 */
export class ModelTable {
  readonly items = new Map<string, Item>();
  /** Called with each request's units. */
  count: (units: Units) => void = () => undefined;
  before: (operation: string, key: ItemKey) => Promise<void> | undefined = () => undefined;

  /** What stores are given. */
  get table(): DynamoTable {
    return this as unknown as DynamoTable;
  }

  async get(key: ItemKey): Promise<Item | undefined> {
    await this.before('get', key);
    const item = this.items.get(textOf(key));
    this.read(item === undefined ? 0 : bytesOf(item));
    return item;
  }

  async putNew(item: ItemKey & Item): Promise<'written' | 'refused'> {
    await this.before('putNew', item);
    this.write(item);
    if (this.items.has(textOf(item))) return 'refused';
    this.items.set(textOf(item), item);
    return 'written';
  }

  async update(key: ItemKey, { set = {}, when, values = {} }: Change): Promise<Item | 'refused'> {
    await this.before('update', key);
    const item = this.items.get(textOf(key));
    const after = { ...item, ...key, ...set };
    this.write(after);
    if (when !== undefined && !this.holds(item, { when, values })) return 'refused';
    this.items.set(textOf(key), after);
    return after;
  }

  async remove(key: ItemKey, condition?: Condition): Promise<'removed' | 'refused'> {
    await this.before('remove', key);
    const item = this.items.get(textOf(key));
    this.write(item ?? {});
    if (condition !== undefined && !this.holds(item, condition)) return 'refused';
    this.items.delete(textOf(key));
    return 'removed';
  }

  async *query({ values }: { values: Item }): AsyncGenerator<Item> {
    const prefix = `${String(values['pk'])}/${String(values['job'])}`;
    await this.before('query', { pk: String(values['pk']), sk: '' });
    const found = [...this.items].filter(([key]) => key.startsWith(prefix)).map(([, item]) => item);
    this.read(found.reduce((sum, item) => sum + bytesOf(item), 0));
    yield* found;
  }

  private holds(item: Item | undefined, { when, values = {} }: Condition): boolean {
    return when.split(' AND ').every((part) => isAs(part, item, values));
  }

  private write(item: Item): void {
    const units = Math.max(1, Math.ceil(bytesOf(item) / 1_024));
    this.count({ writes: units, reads: 0, largest: units });
  }

  private read(bytes: number): void {
    this.count({ writes: 0, reads: Math.max(1, Math.ceil(bytes / 4_096)), largest: 0 });
  }
}
