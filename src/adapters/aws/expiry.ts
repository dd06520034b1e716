import type { EpochMs } from '../../contracts/units.ts';

const KEPT_SECONDS = 30 * 24 * 3_600;

/** When DynamoDB may drop a record that was made at `createdAt`: 30 days later, in seconds since the epoch. */
export const expiryOf = (createdAt: EpochMs): number => Math.floor(createdAt / 1_000) + KEPT_SECONDS;
