import * as z from 'zod';
import { durationMs, type EpochMs, later } from '../../contracts/units.ts';
import type { SweepMark } from '../../ports/sweep-mark.ts';
import type { DynamoTable } from './dynamo-table.ts';

const MARK = { pk: 'SWEEP', sk: 'MARK' } as const;
/** Clocks of two sweeps differ by less. */
const clocksDifferMs = durationMs(24 * 3_600_000);
/** An empty cursor stands for none: from the newest job on. */
const markSchema = z.object({ cursor: z.string() });

/** The mark in DynamoDB: one item. */
export class DynamoSweepMark implements SweepMark {
  private readonly table: DynamoTable;

  constructor(table: DynamoTable) {
    this.table = table;
  }

  async load(): Promise<string | undefined> {
    const cursor = markSchema.safeParse(await this.table.get(MARK)).data?.cursor;
    return cursor === '' ? undefined : cursor;
  }

  async save(cursor: string | undefined, now: EpochMs): Promise<void> {
    await this.table.update(MARK, {
      set: { cursor: cursor ?? '', at: now },
      // Of a time that is none, or has yet to come, nobody knows whether it is later.
      when: 'attribute_not_exists(#at) OR NOT attribute_type(#at, :number) OR #at <= :set_at OR #at > :horizon',
      values: { number: 'N', horizon: later(now, clocksDifferMs) },
    });
  }
}
