import { NumberValue } from '@aws-sdk/lib-dynamodb';
import type { Condition, Item } from './dynamo-table.ts';

/** DynamoDB's name of the type of a value. */
function typeOf(value: unknown): string {
  if (value === null) return 'NULL';
  if (typeof value === 'string') return 'S';
  if (typeof value === 'number') return 'N';
  if (typeof value === 'boolean') return 'BOOL';
  // As which the client gives numbers that a number of JavaScript cannot hold.
  if (typeof value === 'bigint' || value instanceof NumberValue) return 'N';
  if (Array.isArray(value)) return 'L';
  if (value instanceof Set) return `${typeOf([...value][0])}S`;
  return value instanceof Uint8Array ? 'B' : 'M';
}

/**
 * The condition that attributes of an item which may hold anything are still what was read: scalars by their value,
 * and what cannot be compared by its type.
 */
export function asRead(item: Item, names: readonly string[]): Condition {
  const conditions: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [index, name] of names.entries()) {
    const value = item[name];
    if (value === undefined) {
      conditions.push(`attribute_not_exists(#${name})`);
      continue;
    }
    const isScalar = typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean';
    values[`was${index}`] = isScalar ? value : typeOf(value);
    conditions.push(isScalar ? `#${name} = :was${index}` : `attribute_type(#${name}, :was${index})`);
  }
  return { when: conditions.join(' AND '), values };
}
