import { NumberValue } from '@aws-sdk/lib-dynamodb';
import * as z from 'zod';
import { BrokenInvariantError, InvalidInputError } from '../../contracts/errors.ts';
import { TableSchema } from '../../contracts/settings.ts';
import type { Item } from './dynamo-table.ts';
import { LISTING } from './job-item.ts';

/** The longest key that DynamoDB takes. */
const mostKeyBytes = 1_024;

/**
 * Where a page of the listing ended. Its time is text where it is none of ours: a record that was written over may hold
 * any number that the table takes, and the page that it ends is followed by another all the same.
 */
const cursorSchema = z.strictObject({
  pk: z
    .string()
    .startsWith('JOB#')
    .refine((key) => key.isWellFormed() && Buffer.byteLength(key) <= mostKeyBytes),
  sk: z.literal('META'),
  [TableSchema.listingPartitionKey]: z.literal(LISTING),
  [TableSchema.listingSortKey]: z.union([z.int(), z.string().regex(/^-?[\d.]{1,130}(e[+-]?\d{1,3})?$/i)]),
});

/** The cursor of the page after this last key. */
export function cursorOf(next: Item): string {
  const time = next[TableSchema.listingSortKey];
  const told = Number.isSafeInteger(time) ? time : String(time);
  const cursor = cursorSchema.parse({ ...next, [TableSchema.listingSortKey]: told });
  return Buffer.from(JSON.stringify(cursor)).toString('base64url');
}

/** The key that a cursor tells. Throws `InvalidInputError` where the text is no cursor. */
export function parseCursor(text: string): Item {
  try {
    const cursor = cursorSchema.parse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')));
    const time = cursor[TableSchema.listingSortKey];
    return typeof time === 'string'
      ? { ...cursor, [TableSchema.listingSortKey]: NumberValue.from(time) }
      : cursor;
  } catch (cause) {
    throw strangeCursor(cause);
  }
}

const strangeCursor = (cause: unknown): InvalidInputError =>
  new InvalidInputError('cursor must be one that an earlier list gave', { field: 'cursor' }, { cause });

/** What a query that began at somebody's cursor threw: the cursor is all of it that is not ours. */
export function blameCursor(cursor: string | undefined): (cause: unknown) => never {
  return (cause) => {
    const isMalformed = cause instanceof BrokenInvariantError || cause instanceof InvalidInputError;
    throw cursor !== undefined && isMalformed ? strangeCursor(cause) : cause;
  };
}
