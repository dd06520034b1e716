import * as z from 'zod';
import { epochMs } from '../../contracts/units.ts';
import type { ZoneBook } from '../../core/model/zone-book.ts';
import { DynamoBook } from './dynamo-book.ts';
import type { DynamoTable } from './dynamo-table.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

const zone = z.object({ zone: z.string(), factor: z.number().positive(), samples: z.number().min(0) });
const book = z.array(
  z.object({ of: z.string(), at: z.number().min(0).transform(epochMs), zones: z.array(zone) }),
);

/** The zone book in DynamoDB. */
export class DynamoZoneBookStore extends DynamoBook<ZoneBook> {
  constructor(table: DynamoTable, report?: ReportUnreadable) {
    super(table, { name: 'ZONES', book, empty: [] }, report);
  }
}
