import { createHash, timingSafeEqual } from 'node:crypto';

/** What a request is signed with. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Of temporary keys: must come with every request. */
  readonly sessionToken?: string;
}

/** What a request wants to do: that by which a policy tells whether it may. */
export interface RequestFacts {
  /** The signing name: `s3`, `dynamodb`, `lambda`, `states`, `ecs`, `logs`, `execute-api`. */
  readonly service: string;
  /** As AWS names it, such as `PutObject`; of an API method and path, such as `POST /jobs`. */
  readonly operation: string;
  /** A bucket/key, function name, ARN or path; empty where the operation names none. */
  readonly resource: string;
  /** The parsed document of services that speak JSON. */
  readonly input?: unknown;
  /** Decoded parameters of the query string, such as a listing's `prefix`. */
  readonly query?: ReadonlyMap<string, string>;
  /** Header names in lower case, such as `x-amz-copy-source`. */
  readonly headers?: ReadonlyMap<string, string>;
}

/** Keys as an AWS SDK looks for them in its environment. */
export const keyVariables = ({
  accessKeyId,
  secretAccessKey,
  sessionToken,
}: Credentials): Record<string, string> => ({
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  ...(sessionToken === undefined ? {} : { AWS_SESSION_TOKEN: sessionToken }),
});

/** Why a request may not be served, in a sentence for the caller; undefined if it may. */
export type Authorize = (facts: RequestFacts) => string | undefined;

/** Someone who signs requests. */
export interface Principal {
  /** For people, such as a role's name. */
  readonly name: string;
  readonly arn: string;
  /** Absent: may do everything. */
  readonly authorize?: Authorize;
}

/** A key pair and whose it is. */
export interface KeyEntry {
  readonly credentials: Credentials;
  readonly principal: Principal;
  /** Epoch milliseconds from which on the keys are refused; absent: never. */
  readonly expiresAtMs?: number;
  /** Where requests carry the session token; absent: `x-amz-security-token`. */
  readonly tokenHeader?: string;
}

/** Where the check of signatures looks keys up. */
export interface Principals {
  /** The entry of an access key id; undefined for one that nobody has. */
  find(accessKeyId: string): KeyEntry | undefined;
}

/** Bounds what callers who mint keys can make the registry hold. */
const MAX_ENTRIES = 100_000;

/** The keys that the services of one stack accept. */
export class PrincipalRegistry implements Principals {
  private readonly entries = new Map<string, KeyEntry>();

  /**
   * Accepts a key pair from now on.
   *
   * @throws RangeError where its id is taken, or the registry is full of keys that are still valid.
   */
  add(entry: KeyEntry): void {
    const id = entry.credentials.accessKeyId;
    if (this.entries.has(id)) throw new RangeError(`access key id ${id} is taken`);
    if (this.entries.size >= MAX_ENTRIES) this.forgetExpired(Date.now());
    if (this.entries.size >= MAX_ENTRIES) throw new RangeError('too many keys are valid at once');
    this.entries.set(id, entry);
  }

  /** Refuses the key pair from now on; one that is not there is no error. */
  remove(accessKeyId: string): void {
    this.entries.delete(accessKeyId);
  }

  find(accessKeyId: string): KeyEntry | undefined {
    return this.entries.get(accessKeyId);
  }

  private forgetExpired(nowMs: number): void {
    for (const [id, { expiresAtMs }] of this.entries) {
      if (expiresAtMs !== undefined && expiresAtMs <= nowMs) this.entries.delete(id);
    }
  }
}

/** Whom a server of the stack knows: the registry, or where there is none, the owner of the one key pair. */
export function principalsOf(options: {
  readonly credentials: Credentials;
  readonly principals?: Principals | undefined;
}): Principals {
  if (options.principals !== undefined) return options.principals;
  const { credentials } = options;
  const owner = { credentials, principal: ownerOf(credentials) };
  return { find: (id) => (id === credentials.accessKeyId ? owner : undefined) };
}

/** The person who started the stack, whom no policy binds. */
export const ownerOf = ({ accessKeyId }: Credentials): Principal => ({
  name: accessKeyId,
  arn: `arn:aws:iam::000000000000:user/${accessKeyId}`,
});

/** Whether two texts are equal, in a time that does not tell where they differ. */
export function isSameSecret(a: string, b: string): boolean {
  return timingSafeEqual(digest(a), digest(b));
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
