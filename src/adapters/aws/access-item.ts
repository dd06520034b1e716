import * as z from 'zod';
import { BrokenInvariantError, NotFoundError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { TableSchema } from '../../contracts/settings.ts';
import { durationMs, type EpochMs, later } from '../../contracts/units.ts';
import type { DynamoTable, Item, ItemKey } from './dynamo-table.ts';

/** Credentials of a session, as STS gives them. */
export interface AccessSession {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  readonly until: EpochMs;
}

/** Where a job's word is kept, for its schedulers. */
export const accessKey = (jobId: JobId): ItemKey => ({ pk: `JOB#${jobId}`, sk: 'ACCESS' });

/** Where the session lies that a word leads to. The CDK app lets workers read such keys, whole, and no others. */
export const sessionKey = (word: string): ItemKey => ({ pk: `ACCESS#${word}`, sk: 'SESSION' });

/** A session as attributes of its item. */
export const encodeSession = (session: AccessSession): Item => ({
  ...session,
  [TableSchema.ttl]: Math.ceil(session.until / 1_000),
});

const sessionItem = z.object({
  accessKeyId: z.string(),
  secretAccessKey: z.string(),
  sessionToken: z.string(),
});

/**
 * How long a session that was read is good for without another look, by the reader's clock alone: that may be hours off,
 * and the session's own end is by another. What is read has more time left (see `StsJobAccess`) unless STS gives none.
 */
const goodForMs = durationMs(15 * 60_000);

/** A worker's credentials in the shape that SDK clients take; they ask again five minutes before `expiration`. */
export interface WorkerCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken: string;
  readonly expiration: Date;
}

/**
 * Reads the session that a word leads to, with the rights that all workers have.
 *
 * Throws `NotFoundError` where there is none, `BrokenInvariantError` where it cannot be read. Neither says the word,
 * nor anything of the session.
 */
export async function readSession(
  table: DynamoTable,
  word: string,
  now: () => EpochMs,
): Promise<WorkerCredentials> {
  const readAt = now();
  const item = await table.get(sessionKey(word));
  if (item === undefined)
    throw new NotFoundError('the job has no session: it has ended long ago, or never ran');
  const parsed = sessionItem.safeParse(item);
  if (!parsed.success) throw new BrokenInvariantError("a job's session cannot be read");
  return { ...parsed.data, expiration: new Date(later(readAt, goodForMs)) };
}
