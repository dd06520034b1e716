import { z } from 'zod';
import type { EpochMs } from '../../contracts/units.ts';
import type { SweepMark } from '../../ports/sweep-mark.ts';
import type { DynamoTable } from './dynamo-table.ts';

const MARK = { pk: 'SWEEP', sk: 'MARK' } as const;
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
      when: 'attribute_not_exists(#pk) OR #at <= :set_at',
    });
  }
}
