import { isDirectoryBucket } from './directory-buckets.ts';

/**
 * Where outputs lie that other stages read, by what they can be lost with: `standard`, S3 Standard, in three zones or
 * more; `zonal`, S3 Express One Zone, with its zone; `worker-local`, on the disk of the worker that made it, with that.
 */
export const storageTiers = ['standard', 'zonal', 'worker-local'] as const;
export type StorageTier = (typeof storageTiers)[number];

/** The tier of a bucket. */
export const tierOfBucket = (name: string): StorageTier => (isDirectoryBucket(name) ? 'zonal' : 'standard');
