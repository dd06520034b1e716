import * as z from 'zod';
import { epochMs } from '../../contracts/units.ts';
import type { NodeBook } from '../../core/model/node-book.ts';
import { DynamoBook } from './dynamo-book.ts';
import type { DynamoTable } from './dynamo-table.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

const sign = z.object({
  of: z.string(),
  at: z.number().min(0).transform(epochMs),
  slowdown: z.number().min(0).exactOptional(),
  contrasted: z.literal(true).exactOptional(),
});
const book = z.array(z.object({ node: z.string(), zone: z.string(), signs: z.array(sign) }));

/** The node book in DynamoDB. */
export class DynamoNodeBookStore extends DynamoBook<NodeBook> {
  constructor(table: DynamoTable, report?: ReportUnreadable) {
    super(table, { name: 'NODES', book, empty: [] }, report);
  }
}
