import * as z from 'zod';
import { firstProblem } from '../../contracts/invalid.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { type EpochMs, hourOf } from '../../contracts/units.ts';
import {
  addAssignments,
  type AssignmentTally,
  noAssignments,
  tallyAddLimit,
  tallyLimit,
} from '../../core/model/assignment-tally.ts';
import type { AssignmentStatistics } from '../../ports/assignment-statistics.ts';
import type { DynamoTable, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

const keyOf = (bin: number, hour: number): ItemKey => ({
  pk: 'STATISTICS',
  sk: `ASSIGNMENTS#${bin}#${hour}`,
});

/** A kind of which nothing has come yet has no attribute. */
const itemSchema = z.object({
  sk: z.string(),
  reads: z.array(z.object({ sizeBytes: z.number(), ms: z.number(), overlapMs: z.number() })).default([]),
  gapsMs: z.array(z.number()).default([]),
  computeMs: z.array(z.number()).default([]),
});

/** Assignment statistics in DynamoDB: one item for each bin and hour, to whose lists jobs append as they end. */
export class DynamoAssignmentStatistics implements AssignmentStatistics {
  private readonly table: DynamoTable;
  private readonly report: ReportUnreadable;

  constructor(table: DynamoTable, report: ReportUnreadable = () => undefined) {
    this.table = table;
    this.report = report;
  }

  async add(bin: number, tally: AssignmentTally, now: EpochMs): Promise<void> {
    const { reads, gapsMs, computeMs } = addAssignments(noAssignments, tally, tallyAddLimit);
    const append = async (kind: keyof AssignmentTally, values: readonly unknown[]): Promise<void> => {
      if (values.length === 0) return;
      // A list that has room for one value takes all of a call, and readers leave out what is over: else the last
      // places would stay empty, or take a read before every write. Refused where it is full, which is no fault.
      await this.table.update(keyOf(bin, hourOf(now)), {
        set: { [TableSchema.ttl]: expiryOf(now) },
        clauses: `, #${kind} = list_append(if_not_exists(#${kind}, :none), :values)`,
        when: `attribute_not_exists(#${kind}) OR size(#${kind}) < :limit`,
        values: { none: [], values, limit: tallyLimit },
      });
    };
    // One after the other: they change the same item. Kinds fill at their own pace, so each has its own condition.
    await append('reads', reads);
    await append('gapsMs', gapsMs);
    await append('computeMs', computeMs);
  }

  async recent(bin: number, now: EpochMs): Promise<AssignmentTally> {
    const hour = hourOf(now);
    const keys = [keyOf(bin, hour - 1), keyOf(bin, hour)];
    const items = (await this.table.batchGet(keys)).flatMap((item) => {
      const parsed = itemSchema.safeParse(item);
      if (parsed.success) return [parsed.data];
      this.report({ key: `${String(item.pk)}/${String(item.sk)}`, why: firstProblem(parsed.error) });
      return [];
    });
    return keys
      .flatMap(({ sk }) => items.filter((item) => item.sk === sk))
      .map((item) => addAssignments(noAssignments, item))
      .reduce((before, after) => addAssignments(before, after, Infinity), noAssignments);
  }
}
