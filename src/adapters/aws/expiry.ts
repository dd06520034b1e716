import { limits } from '../../contracts/limits.ts';
import type { EpochMs } from '../../contracts/units.ts';

/** A point in time as DynamoDB's time to live counts: whole seconds since the epoch. */
export const ttlSeconds = (at: EpochMs): number => Math.floor(at / 1_000);

/**
 * When DynamoDB may drop a record that was made at `createdAt`, in seconds since the epoch: 30 days later, which is
 * long after its job can have ended. It drops it within days of that; until then the record is still seen.
 */
export const expiryOf = (createdAt: EpochMs): number => ttlSeconds(createdAt) + limits.recordsKeptMs / 1_000;
