import { z } from 'zod';
import { BrokenInvariantError, ConflictError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { epochMs } from '../../contracts/units.ts';
import type { OutputClaim } from '../../core/model/output-claims.ts';
import type { BucketClaims } from '../../ports/job-store.ts';
import { packJson, unpackJson } from './compact.ts';
import type { Item, ItemKey } from './dynamo-table.ts';

/** Under DynamoDB's 400 KB, with room for names. */
const packedLimitBytes = 380_000;

const claim = z.object({
  jobId: z.string().transform((id) => id as JobId),
  prefix: z.string(),
  claimedAt: z.number().transform(epochMs),
  isPlanned: z.boolean(),
}) satisfies z.ZodType<OutputClaim>;
const claims = z.array(claim);

/** Where the claims on outputs in a bucket lie. */
export const claimsKey = (bucket: string): ItemKey => ({ pk: `OUTPUTS#${bucket}`, sk: 'CLAIMS' });

/** The attributes of a bucket's claims. Throws `ConflictError` where they are too many for their record. */
export function encodeClaims({ claims: all, version }: BucketClaims): Item {
  const packed = packJson(all);
  if (packed.length > packedLimitBytes) {
    throw new ConflictError('output must be in another bucket: too many unfinished jobs write to this one', {
      field: 'output',
      claims: all.length,
    });
  }
  return { claims: packed, version };
}

/** The claims of an item, none where there is no item. Throws `BrokenInvariantError` where it holds something else. */
export function decodeClaims(item: Item | undefined): BucketClaims {
  if (item === undefined) return { claims: [], version: 0 };
  try {
    return { claims: claims.parse(unpackJson(item.claims)), version: z.number().parse(item.version) };
  } catch (cause) {
    throw new BrokenInvariantError('stored claims on outputs cannot be read', { pk: item.pk }, { cause });
  }
}
