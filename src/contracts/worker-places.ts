/*
 * Outputs that stay with the worker that made them (the tier `worker-local`). Each is asked for under the key that it
 * would have in the data bucket, at the address of its worker, which stands in the place of a bucket's name. No bucket
 * has an "@" in its name.
 */

const mark = 'worker@';

/** What stands for a bucket where an object is with the worker at an address, `10.0.3.7:7843`. */
export const bucketOfWorker = (address: string): string => `${mark}${address}`;

/** The address of the worker that stands for a bucket; undefined for a bucket. */
export const workerOfBucket = (bucket: string): string | undefined =>
  bucket.startsWith(mark) ? bucket.slice(mark.length) : undefined;

/** Where an output is that other stages read: in the directory bucket of a zone, with a worker, or else in the data bucket. */
export interface OutputPlace {
  /** The zone in whose directory bucket it is. */
  readonly zone?: string;
  /** The address of the worker that keeps it. */
  readonly worker?: string;
}

/** The place of an output by itself, without fields that are not there. */
export const outputPlace = ({
  zone,
  worker,
}: Partial<Record<keyof OutputPlace, string | undefined>>): OutputPlace => ({
  ...(zone === undefined ? {} : { zone }),
  ...(worker === undefined ? {} : { worker }),
});
