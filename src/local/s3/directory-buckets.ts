import { createHash, randomBytes } from 'node:crypto';
import { isDirectoryBucket } from '../../contracts/directory-buckets.ts';
import type { Authorize, KeyEntry, Principal, Principals, RequestFacts } from '../http/principals.ts';
import { badRequest, notImplemented, S3Error } from './errors.ts';
import type { Operation, Reply, Target } from './request.ts';
import { parentElement, textElement, xmlDocument } from './xml.ts';

/*
 * What directory buckets (S3 Express One Zone) have of their own: sessions instead of policies for each object, listings
 * in no order, and less of everything else.
 */

/** As on AWS. Clients make a new session a minute before. */
const SESSION_MS = 5 * 60 * 1000;
const MAX_SESSIONS = 10_000;

export type SessionMode = 'ReadWrite' | 'ReadOnly';

/** Done with the caller's own keys, and allowed by the right to make a session; all else is done in one. */
const withoutSession: ReadonlySet<Operation> = new Set([
  'CreateSession',
  'CopyObject',
  'CreateBucket',
  'DeleteBucket',
]);

/** Read in a session that may read only. */
const reading: ReadonlySet<string> = new Set<Operation>([
  'GetObject',
  'HeadObject',
  'HeadBucket',
  'ListObjectsV2',
  'ListParts',
  'ListMultipartUploads',
]);

/** The sessions of a server's directory buckets. They are its own: it forgets them when it ends. */
export class BucketSessions implements Principals {
  private readonly base: Principals;
  private readonly sessions = new Map<string, KeyEntry & { readonly expiresAtMs: number }>();

  /** `base` knows those who may ask for sessions. */
  constructor(base: Principals) {
    this.base = base;
  }

  find(accessKeyId: string): KeyEntry | undefined {
    return this.sessions.get(accessKeyId) ?? this.base.find(accessKeyId);
  }

  /**
   * Refuses what is done on a directory bucket with the wrong kind of keys.
   *
   * @throws {S3Error} AccessDenied.
   */
  checkKeys(accessKeyId: string, operation: Operation): void {
    if (operation === 'HeadBucket') return; // Either way: AWS tells one, and its SDK does the other.
    if (this.sessions.has(accessKeyId) !== withoutSession.has(operation)) return;
    throw new S3Error(
      403,
      'AccessDenied',
      withoutSession.has(operation)
        ? `${operation} takes no keys of a session of CreateSession.`
        : `${operation} on a directory bucket needs a session, which CreateSession gives.`,
    );
  }

  /** Keys for one bucket that are good for five minutes, whatever becomes of the caller's own. */
  open(caller: Principal, bucket: string, mode: SessionMode): Reply {
    const nowMs = Date.now();
    this.forgetExpired(nowMs);
    const expiresAtMs = nowMs + SESSION_MS;
    const credentials = {
      accessKeyId: `ASIA${randomBytes(8).toString('hex').toUpperCase()}`,
      secretAccessKey: randomBytes(30).toString('base64'),
      sessionToken: randomBytes(96).toString('base64'),
    };
    const principal = { name: caller.name, arn: caller.arn, authorize: withinSession(bucket, mode) };
    this.sessions.set(credentials.accessKeyId, {
      ...{ credentials, principal, expiresAtMs },
      tokenHeader: 'x-amz-s3session-token',
    });
    const xml = xmlDocument(
      'CreateSessionResult',
      parentElement(
        'Credentials',
        textElement('SessionToken', credentials.sessionToken),
        textElement('SecretAccessKey', credentials.secretAccessKey),
        textElement('AccessKeyId', credentials.accessKeyId),
        textElement('Expiration', new Date(expiresAtMs).toISOString()),
      ),
    );
    return { status: 200, xml };
  }

  private forgetExpired(nowMs: number): void {
    for (const [id, { expiresAtMs }] of this.sessions)
      if (expiresAtMs <= nowMs || this.sessions.size >= MAX_SESSIONS) this.sessions.delete(id);
      else return; // They end in the order in which they began.
  }
}

/** A session is asked nothing but whose bucket it is, and whether it may write. */
const withinSession =
  (bucket: string, mode: SessionMode): Authorize =>
  ({ operation, resource }: RequestFacts) => {
    const own = resource === bucket || resource.startsWith(`${bucket}/`);
    if (!own) return `The session is of another bucket than ${resource}.`;
    if (mode === 'ReadOnly' && !reading.has(operation)) return `The session may read only, not ${operation}.`;
    return undefined;
  };

/**
 * The mode of the session that a caller gets: the one that is asked for, or where none is, the most that is allowed.
 *
 * @throws {S3Error} AccessDenied; InvalidArgument.
 */
export function grantedMode(
  { authorize }: Principal,
  facts: RequestFacts & { readonly headers: ReadonlyMap<string, string> },
): SessionMode {
  const wanted = facts.headers.get(sessionModeHeader);
  if (wanted !== undefined && wanted !== 'ReadWrite' && wanted !== 'ReadOnly')
    throw badRequest('InvalidArgument', `${sessionModeHeader} must be ReadWrite or ReadOnly`);
  const modes: readonly SessionMode[] = wanted === undefined ? ['ReadWrite', 'ReadOnly'] : [wanted];
  let denial: string | undefined;
  for (const mode of modes) {
    denial = authorize?.({ ...facts, headers: new Map([...facts.headers, [sessionModeHeader, mode]]) });
    if (denial === undefined) return mode;
  }
  throw new S3Error(403, 'AccessDenied', denial ?? 'Access Denied');
}

/** Header of CreateSession. */
export const sessionModeHeader = 'x-amz-create-session-mode';

/**
 * Refuses what directory buckets have not: listings from a key on, or of prefixes and by delimiters other than "/", and
 * MD5s of bodies.
 *
 * @throws {S3Error} NotImplemented, InvalidRequest.
 */
export function refuseForDirectory(target: Target): void {
  const { query, headers } = target;
  if (headers.has('content-md5')) throw notImplemented('The header content-md5 on a directory bucket');
  if (query.has('start-after')) throw notImplemented('start-after on a directory bucket');
  const prefix = query.get('prefix') ?? '';
  if (prefix !== '' && !prefix.endsWith('/'))
    throw badRequest('InvalidRequest', 'The prefix of a listing of a directory bucket must end in "/".');
  const delimiter = query.get('delimiter') ?? '';
  if (delimiter !== '' && delimiter !== '/')
    throw badRequest('InvalidRequest', 'The delimiter of a directory bucket is "/".');
}

/** A page of a listing in the order that a bucket gives it: of a directory bucket in none, the same each time. */
export function inListedOrder<Entry>(
  bucket: string,
  page: readonly Entry[],
  nameOf: (entry: Entry) => string,
): readonly Entry[] {
  if (!isDirectoryBucket(bucket)) return page;
  const place = (entry: Entry): string => createHash('sha256').update(nameOf(entry)).digest('hex');
  return page
    .map((entry) => [place(entry), entry] as const)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([, entry]) => entry);
}
