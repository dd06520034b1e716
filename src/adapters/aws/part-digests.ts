import { createHash } from 'node:crypto';
import { faultOf } from './faults.ts';

/**
 * Whether S3 demands a digest of each part: buckets with Object Lock and a default retention do, and take no SHA-256 for one
 * that is in a signature alone.
 *
 * Source: S3's own words, "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Part requests with Object Lock
 * parameters".
 */
function demandsDigest(cause: unknown): boolean {
  const { status, message } = faultOf(cause);
  return status === 400 && /^Content-MD5\b.* Object Lock\b/.test(message);
}

/**
 * MD5s of parts, for those buckets that demand one and for no others: an MD5 takes twice as long as the SHA-256 that is made of each
 * part. With it parts bear gaps between their numbers, which they do not with a checksum.
 */
export class PartDigests {
  /** Buckets that have demanded one. */
  private readonly demanding = new Set<string>();

  /** What `send` answers, which is given the fields that the request needs besides. Throws what it throws. */
  async sending<T>(
    { Bucket: bucket, Body: body }: { readonly Bucket: string; readonly Body: Uint8Array },
    send: (digest: { readonly ContentMD5?: string }) => Promise<T>,
  ): Promise<T> {
    if (!this.demanding.has(bucket)) {
      try {
        return await send({});
      } catch (cause) {
        if (!demandsDigest(cause)) throw cause;
        this.demanding.add(bucket);
      }
    }
    return send({ ContentMD5: createHash('md5').update(body).digest('base64') });
  }
}
