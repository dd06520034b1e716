import * as z from 'zod';
import { epochMs } from '../../contracts/units.ts';
import type { LossBook } from '../../core/policy/mantri/loss-book.ts';
import { DynamoBook } from './dynamo-book.ts';
import type { DynamoTable } from './dynamo-table.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

const count = z.int().min(0);
const sign = z.object({
  of: z.string(),
  at: z.number().min(0).transform(epochMs),
  outputs: count,
  lost: count,
});
const book = z.array(z.object({ place: z.string(), signs: z.array(sign) }));

/** The loss book in DynamoDB. */
export class DynamoLossBookStore extends DynamoBook<LossBook> {
  constructor(table: DynamoTable, report?: ReportUnreadable) {
    super(table, { name: 'LOSSES', book, empty: [] }, report);
  }
}
