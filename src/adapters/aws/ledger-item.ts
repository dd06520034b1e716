import { NumberValue } from '@aws-sdk/lib-dynamodb';
import { z } from 'zod';
import type { JobId } from '../../contracts/ids.ts';
import { epochMs } from '../../contracts/units.ts';
import type { Change, Item } from './dynamo-table.ts';

const slotCount = z.int().min(0);
const slotsByPhase = z.record(z.string(), slotCount);
const preemptionSchema = z.object({
  by: z.string().transform((id) => id as JobId),
  byTasks: z.number(),
  slots: slotCount,
});
const grantSchema = z.object({
  slots: slotCount,
  expiresAt: z.number().transform(epochMs),
  cloneSlots: slotCount.optional(),
  clones: slotsByPhase.optional(),
  jobTasks: z.number().optional(),
  addedSlots: slotsByPhase.optional(),
  preempted: z.record(z.string(), preemptionSchema).optional(),
});
/** The capacity ledger as its item holds it. */
export const ledgerSchema = z.object({
  totalSlots: z.number(),
  usedSlots: z.number(),
  cloneSlots: z.number().default(0),
  grants: z.record(z.string(), grantSchema),
});
export type Ledger = z.output<typeof ledgerSchema>;

const grantsSchema = z.record(z.string(), z.unknown());
/** Keeps the update expression well under its 4 KB; a further write takes the rest. */
const takenPerWrite = 20;
const sums = ['totalSlots', 'usedSlots', 'cloneSlots'] as const;
const grantFields = ['slots', 'expiresAt', 'cloneSlots'] as const;

/** DynamoDB's name of the type of a value. */
function typeOf(value: unknown): string {
  if (value === null) return 'NULL';
  if (typeof value === 'string') return 'S';
  if (typeof value === 'number') return 'N';
  if (typeof value === 'boolean') return 'BOOL';
  // As which the client gives numbers that a number of JavaScript cannot hold.
  if (typeof value === 'bigint' || value instanceof NumberValue) return 'N';
  if (Array.isArray(value)) return 'L';
  return value instanceof Uint8Array ? 'B' : 'M';
}

/** Conditions that parts of the item are what was read. Values go into what is given. */
class AsRead {
  readonly conditions: string[] = [];
  readonly values: Record<string, unknown> = {};

  require(path: string, value: unknown): void {
    const name = `:was${this.conditions.length}`;
    if (value === undefined) {
      this.conditions.push(`attribute_not_exists(${path})`);
      return;
    }
    const isScalar = typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean';
    this.values[name.slice(1)] = isScalar ? value : typeOf(value);
    this.conditions.push(isScalar ? `${path} = ${name}` : `attribute_type(${path}, ${name})`);
  }
}

/**
 * The write that takes grants that cannot be read out of a ledger, and sums up anew those that can: one grant that
 * nobody can read would stop every job. It hangs on what cannot be read being there still, which nobody but a rival
 * that mends the ledger changes, and on the sums, which whoever wrote in between has changed.
 */
export function mendingChange(item: Item): { readonly change: Change; readonly lost: readonly string[] } {
  const given = grantsSchema.safeParse(item['grants']);
  const all = Object.entries(given.success ? given.data : {});
  const parsed = all.map(([id, grant]) => [id, grantSchema.safeParse(grant)] as const);
  const kept = parsed.flatMap(([, { data }]) => (data === undefined ? [] : [data]));
  const lost = parsed.flatMap(([id, { success }]) => (success ? [] : [id])).slice(0, takenPerWrite);
  const asRead = new AsRead();
  for (const name of sums) asRead.require(`#${name}`, item[name]);
  if (!given.success) asRead.require('#grants', item['grants']);
  const grants = new Map(all);
  for (const [index, id] of lost.entries()) {
    const fields = grantsSchema.safeParse(grants.get(id));
    const path = `#grants.#lost${index}`;
    if (fields.success) for (const name of grantFields) asRead.require(`${path}.#${name}`, fields.data[name]);
    else asRead.require(path, grants.get(id));
  }
  const { totalSlots } = item;
  const removed = lost.map((_, index) => `#grants.#lost${index}`).join(', ');
  return {
    lost,
    change: {
      set: {
        totalSlots: typeof totalSlots === 'number' ? totalSlots : 0,
        usedSlots: kept.reduce((sum, { slots }) => sum + slots, 0),
        cloneSlots: kept.reduce((sum, { cloneSlots = 0 }) => sum + cloneSlots, 0),
        ...(given.success ? {} : { grants: {} }),
      },
      ...(lost.length === 0 ? {} : { clauses: `REMOVE ${removed}` }),
      when: asRead.conditions.join(' AND '),
      names: Object.fromEntries(lost.map((id, index) => [`lost${index}`, id])),
      values: asRead.values,
    },
  };
}
