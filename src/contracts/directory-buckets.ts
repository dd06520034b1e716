/** Whether a bucket is a directory bucket (S3 Express One Zone): it says so by its name, and clients go by that alone. */
export const isDirectoryBucket = (bucket: string): boolean => bucket.endsWith('--x-s3');

/** The id of the zone that a directory bucket is in, such as `use1-az4`; undefined where the name tells none. */
export const zoneOfBucket = (bucket: string): string | undefined =>
  /--([a-z0-9-]+-az\d+)--x-s3$/.exec(bucket)?.[1];

/** The directory bucket of a zone, of those that there are; undefined where it has none. */
export const bucketOfZone = (buckets: readonly string[], zone: string | undefined): string | undefined =>
  zone === undefined ? undefined : buckets.find((bucket) => zoneOfBucket(bucket) === zone);
