import { InvalidInputError } from '../../contracts/errors.ts';
import { type ObjectRef, uriOf } from '../../contracts/keys.ts';
import { archivedText, type ObjectInfo } from '../../ports/object-store.ts';
import { archivedFault } from './denials.ts';
import { faultOf } from './faults.ts';

/** What S3 tells of where an object lies, in a listing or in the answer to a head. */
interface Lying {
  readonly StorageClass?: string | undefined;
  /** Of a head: `ongoing-request="false", expiry-date="…"` once it is restored. */
  readonly Restore?: string | undefined;
  /** Of a listing that has asked for it. */
  readonly RestoreStatus?: { readonly IsRestoreInProgress?: boolean | undefined } | undefined;
  /** Of a head: the tier of an object of S3 Intelligent-Tiering that nobody has asked for in months. */
  readonly ArchiveStatus?: string | undefined;
}

const archives: ReadonlySet<string> = new Set(['GLACIER', 'DEEP_ARCHIVE']);

/**
 * The archive in which an object lies, where it has to be restored from there before it can be read. A listing does not tell
 * the tiers of Intelligent-Tiering.
 *
 * Source: docs.aws.amazon.com/AmazonS3/latest/userguide/archived-objects.html
 */
export function archiveOf(object: Lying): Pick<ObjectInfo, 'archive'> {
  const { StorageClass: storageClass = '', ArchiveStatus: tier } = object;
  if (tier !== undefined) return { archive: `${storageClass}, ${tier}` };
  const isRestored =
    object.RestoreStatus?.IsRestoreInProgress === false ||
    object.Restore?.includes('ongoing-request="false"') === true;
  return archives.has(storageClass) && !isRestored ? { archive: storageClass } : {};
}

/** The error of ours where S3 refuses to read an object since it is archived; undefined where it is not that. */
export function archived(cause: unknown, ref: ObjectRef): Error | undefined {
  if (faultOf(cause).name !== archivedFault) return undefined;
  const { StorageClass: storageClass, AccessTier: tier } = cause as {
    readonly StorageClass?: unknown;
    readonly AccessTier?: unknown;
  };
  const archive = [storageClass, tier].filter((word) => typeof word === 'string').join(', ');
  return new InvalidInputError(
    archivedText(uriOf(ref), archive),
    { uri: uriOf(ref), fault: archivedFault },
    { cause },
  );
}
