import * as z from 'zod';
import { firstProblem } from '../../contracts/invalid.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { type EpochMs, hourOf } from '../../contracts/units.ts';
import { addTallies, noStragglers, type StragglerTally } from '../../core/model/straggler-tally.ts';
import type { StragglerStatistics } from '../../ports/straggler-statistics.ts';
import type { DynamoTable, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

const tallySchema = z.object({ attempts: z.number().min(0), stragglers: z.number().min(0) });
const keyOf = (hour: number): ItemKey => ({ pk: 'STATISTICS', sk: `STRAGGLERS#${hour}` });

/** Straggler statistics in DynamoDB: one item an hour, to which jobs add as they end. */
export class DynamoStragglerStatistics implements StragglerStatistics {
  private readonly table: DynamoTable;
  private readonly report: ReportUnreadable;

  constructor(table: DynamoTable, report: ReportUnreadable = () => undefined) {
    this.table = table;
    this.report = report;
  }

  async add({ attempts, stragglers }: StragglerTally, now: EpochMs): Promise<void> {
    await this.table.update(keyOf(hourOf(now)), {
      set: { [TableSchema.ttl]: expiryOf(now) },
      clauses: 'ADD #attempts :attempts, #stragglers :stragglers',
      values: { attempts, stragglers },
    });
  }

  async recent(now: EpochMs): Promise<StragglerTally> {
    const hour = hourOf(now);
    const items = await this.table.batchGet([keyOf(hour - 1), keyOf(hour)]);
    return items
      .flatMap((item): readonly StragglerTally[] => {
        const parsed = tallySchema.safeParse(item);
        if (parsed.success) return [parsed.data];
        this.report({ key: `${String(item.pk)}/${String(item.sk)}`, why: firstProblem(parsed.error) });
        return [];
      })
      .reduce(addTallies, noStragglers);
  }
}
