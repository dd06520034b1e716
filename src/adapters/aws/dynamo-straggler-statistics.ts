import { z } from 'zod';
import { TableSchema } from '../../contracts/settings.ts';
import { type EpochMs, hourOf } from '../../contracts/units.ts';
import { addTallies, noStragglers, type StragglerTally } from '../../core/model/straggler-tally.ts';
import type { StragglerStatistics } from '../../ports/straggler-statistics.ts';
import type { DynamoTable, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';

const tallySchema = z.object({ attempts: z.number(), stragglers: z.number() });
const keyOf = (hour: number): ItemKey => ({ pk: 'STATISTICS', sk: `STRAGGLERS#${hour}` });

/** Straggler statistics in DynamoDB: one item an hour, to which jobs add as they end. */
export class DynamoStragglerStatistics implements StragglerStatistics {
  private readonly table: DynamoTable;

  constructor(table: DynamoTable) {
    this.table = table;
  }

  async add({ attempts, stragglers }: StragglerTally, now: EpochMs): Promise<void> {
    await this.table.update(keyOf(hourOf(now)), {
      set: { [TableSchema.ttl]: expiryOf(now) },
      clauses: 'ADD #attempts :attempts, #stragglers :stragglers',
      when: 'attribute_exists(#pk) OR attribute_not_exists(#pk)',
      values: { attempts, stragglers },
    });
  }

  async recent(now: EpochMs): Promise<StragglerTally> {
    const hour = hourOf(now);
    const items = await this.table.batchGet([keyOf(hour - 1), keyOf(hour)]);
    return items.map((item): StragglerTally => tallySchema.parse(item)).reduce(addTallies, noStragglers);
  }
}
