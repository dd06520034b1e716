import * as z from 'zod';
import { BrokenInvariantError, UnreadableRecordError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { firstProblem } from '../../contracts/invalid.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { type DurationMs, type EpochMs, later } from '../../contracts/units.ts';
import type { AcquiredLease, LeaseStore } from '../../ports/job-store.ts';
import type { DynamoTable, Item, ItemKey } from './dynamo-table.ts';
import { expiryOf } from './expiry.ts';
import { timeField } from './item-fields.ts';

const leaseSchema = z.object({
  owner: z.string(),
  epoch: z.number(),
  until: timeField,
  /** The last epoch that was released in order. */
  orderly: z.number().exactOptional(),
});
const leaseKey = (jobId: JobId): ItemKey => ({ pk: `JOB#${jobId}`, sk: 'LEASE' });

/** Throws `UnreadableRecordError`: who waited for a lease that nobody can read would wait for ever. */
function leaseOf(jobId: JobId, item: Item): z.output<typeof leaseSchema> {
  const parsed = leaseSchema.safeParse(item);
  if (parsed.success) return parsed.data;
  throw unreadableLease(jobId, firstProblem(parsed.error));
}

function unreadableLease(jobId: JobId, why: string): UnreadableRecordError {
  const { pk, sk } = leaseKey(jobId);
  return new UnreadableRecordError(`the lease ${pk}/${sk} cannot be read: ${why}`, { key: `${pk}/${sk}` });
}

/** Leases in DynamoDB: one item a job, which outlives its release so that epochs only grow. */
export class DynamoLeaseStore implements LeaseStore {
  private readonly table: DynamoTable;

  constructor(table: DynamoTable) {
    this.table = table;
  }

  /** An acquisition that the SDK repeats takes its own lease again: the epoch then grows by two, harmlessly. */
  async acquire(
    jobId: JobId,
    owner: string,
    now: EpochMs,
    length: DurationMs,
    replaced: string = owner,
  ): Promise<AcquiredLease | { kind: 'held'; until: EpochMs }> {
    const answer = await this.table
      .update(leaseKey(jobId), {
        set: { owner, until: later(now, length), [TableSchema.ttl]: expiryOf(now) },
        clauses: 'ADD #epoch :one',
        when: 'attribute_not_exists(#pk) OR #until <= :now OR #owner = :set_owner OR #owner = :replaced',
        values: { now, one: 1, replaced },
      })
      .catch((cause: unknown) => {
        // The table refuses to add to what is no number.
        if (cause instanceof BrokenInvariantError) throw unreadableLease(jobId, 'epoch must be a number');
        throw cause;
      });
    if (answer !== 'refused') {
      const { epoch, orderly } = leaseOf(jobId, answer);
      return { kind: 'acquired', epoch, ...(orderly === epoch - 1 ? { inOrder: true } : {}) };
    }
    const item = await this.table.get(leaseKey(jobId));
    // Gone or released in the meantime: the caller comes back at once.
    return { kind: 'held', until: item === undefined ? now : leaseOf(jobId, item).until };
  }

  async renew(jobId: JobId, owner: string, epoch: number, until: EpochMs): Promise<'renewed' | 'lost'> {
    const answer = await this.table.update(leaseKey(jobId), {
      set: { until },
      when: '#owner = :owner AND #epoch = :epoch',
      values: { owner, epoch },
    });
    return answer === 'refused' ? 'lost' : 'renewed';
  }

  async release(jobId: JobId, owner: string, epoch: number, inOrder?: 'in-order'): Promise<void> {
    await this.table.update(leaseKey(jobId), {
      set: { owner: '-', until: 0, ...(inOrder === undefined ? {} : { orderly: epoch }) },
      when: '#owner = :owner AND #epoch = :epoch',
      values: { owner, epoch },
    });
  }
}
