import { randomInt } from 'node:crypto';
import * as z from 'zod';
import { ConflictError } from '../../contracts/errors.ts';
import { type JobId, jobIdPattern } from '../../contracts/ids.ts';
import { epochMs } from '../../contracts/units.ts';
import type { OutputClaim } from '../../core/model/output-claims.ts';
import type { BucketClaims } from '../../ports/job-store.ts';
import { packJson, unpackJson } from './compact.ts';
import type { Change, Item, ItemKey } from './dynamo-table.ts';
import { problemOf } from './problem-of.ts';
import type { ReportUnreadable } from './report-unreadable.ts';

/** Under DynamoDB's 400 KB, with room for names. */
const packedLimitBytes = 380_000;

/** A claim whose age or standing cannot be read is held for as long as its job is unfinished. */
const claim = z.object({
  jobId: z
    .string()
    .regex(jobIdPattern)
    .transform((id) => id as JobId),
  prefix: z.string(),
  claimedAt: z.number().catch(0).transform(epochMs),
  isPlanned: z.boolean().catch(true),
}) satisfies z.ZodType<OutputClaim>;

/** Of claims whose version cannot be read: whoever saves over them begins anew. */
const unknownVersion = -1;
const knownVersion = z.number().positive();
/** New versions after one that cannot be read are as no earlier one was, so that no late writer finds its own. */
const mostFreshVersion = 2 ** 47;

/** Where the claims on outputs in a bucket lie. */
export const claimsKey = (bucket: string): ItemKey => ({ pk: `OUTPUTS#${bucket}`, sk: 'CLAIMS' });

/**
 * The write of a bucket's claims over those of `version`. Throws `ConflictError` where they are too many for their
 * record.
 */
export function savingChange({ claims: all, version }: BucketClaims): Omit<Change, 'names'> {
  const packed = packJson(all);
  if (packed.length > packedLimitBytes) {
    throw new ConflictError('output must be in another bucket: too many unfinished jobs write to this one', {
      field: 'output',
      claims: all.length,
    });
  }
  if (version === unknownVersion) {
    return {
      set: { claims: packed, version: randomInt(1, mostFreshVersion) },
      when: 'attribute_not_exists(#version) OR NOT attribute_type(#version, :number) OR #version <= :none',
      values: { number: 'N', none: 0 },
    };
  }
  return {
    set: { claims: packed, version: version + 1 },
    when: version === 0 ? 'attribute_not_exists(#pk)' : '#version = :expected',
    ...(version === 0 ? {} : { values: { expected: version } }),
  };
}

/**
 * The claims of an item, none where there is no item. One that cannot be read is told and left out, and goes with the
 * next write: it would refuse every job of its bucket for ever, and what its job writes is held apart by conditions
 * when it is published, too. Never throws.
 */
export function decodeClaims(item: Item | undefined, report: ReportUnreadable): BucketClaims {
  if (item === undefined) return { claims: [], version: 0 };
  const key = `${String(item.pk)}/${String(item.sk)}`;
  const version = knownVersion.safeParse(item.version);
  if (!version.success) report({ key: `${key}/version`, why: problemOf(version.error) });
  return {
    claims: readableClaims(item.claims, key, report),
    version: version.success ? version.data : unknownVersion,
  };
}

function readableClaims(packed: unknown, key: string, report: ReportUnreadable): readonly OutputClaim[] {
  let all: readonly unknown[];
  try {
    all = z.array(z.unknown()).parse(unpackJson(packed));
  } catch (cause) {
    report({ key: `${key}/claims`, why: problemOf(cause) });
    return [];
  }
  return all.flatMap((each, index) => {
    const parsed = claim.safeParse(each);
    if (!parsed.success) report({ key: `${key}/claims/${index}`, why: problemOf(parsed.error) });
    return parsed.success ? [parsed.data] : [];
  });
}
