/** Whether a bucket is a directory bucket (S3 Express One Zone): it says so by its name, and clients go by that alone. */
export const isDirectoryBucket = (bucket: string): boolean => bucket.endsWith('--x-s3');
