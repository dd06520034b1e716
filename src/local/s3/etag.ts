import { createHash, randomBytes } from 'node:crypto';

/**
 * An ETag of the kind that objects uploaded in parts have: no digest of the bytes, and of a form that clients know to be
 * none, so that nobody holds them against it.
 */
export const opaqueEtag = (): string => `${randomBytes(16).toString('hex')}-1`;

/** The same of one part, whose ETags have no number behind them, whatever they are of. */
export const opaquePartEtag = (): string => randomBytes(16).toString('hex');

/** S3's ETag of a multipart object: the MD5 of the parts' MD5s, and how many they are. */
export function joinedEtag(etags: readonly string[]): string {
  const hash = createHash('md5');
  for (const etag of etags) hash.update(Buffer.from(etag, 'hex'));
  return `${hash.digest('hex')}-${String(etags.length)}`;
}
