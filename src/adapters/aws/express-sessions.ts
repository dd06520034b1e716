import { CreateSessionCommand, type S3Client } from '@aws-sdk/client-s3';

/** How long a session is good for, by AWS's word. Its end is told by S3's clock, of which ours may be hours off. */
const SESSION_MS = 5 * 60_000;
/** Before a session runs out another is made: requests signed with the old one may be on their way for so long. */
const MARGIN_MS = 60_000;

type Provider = S3Client['config']['s3ExpressIdentityProvider'];
type Session = Awaited<ReturnType<Provider['getS3ExpressIdentity']>>;

interface Kept {
  readonly session: Promise<Session>;
  /** Infinity while it is being made. */
  endsAt: number;
}

async function createSession(client: S3Client, bucket: string): Promise<Session> {
  const { Credentials: made } = await client.send(new CreateSessionCommand({ Bucket: bucket }));
  const { AccessKeyId: accessKeyId = '', SecretAccessKey: secretAccessKey = '' } = made ?? {};
  return {
    accessKeyId,
    secretAccessKey,
    ...(made?.SessionToken === undefined ? {} : { sessionToken: made.SessionToken }),
    ...(made?.Expiration === undefined ? {} : { expiration: made.Expiration }),
  };
}

/**
 * Has a client of directory buckets make a session anew where one could not be made. The SDK's own keeps that failure for
 * as long as the client lives, so that a zone that was away once never came back; and where it fails to renew one ahead of
 * time, nobody takes the rejection, which ends the process. A session's age is told by `now` alone.
 */
export function keepExpressSessions(client: S3Client, now = () => Date.now()): S3Client {
  const kept = new Map<string, Kept>();
  client.config.s3ExpressIdentityProvider = {
    getS3ExpressIdentity: ({ accessKeyId }, { Bucket: bucket = '' }) => {
      const key = `${accessKeyId} ${bucket}`;
      const known = kept.get(key);
      if (known !== undefined && known.endsAt > now() + MARGIN_MS) return known.session;
      for (const [name, { endsAt }] of kept) if (endsAt <= now() + MARGIN_MS) kept.delete(name);
      const askedAt = now();
      const made: Kept = { session: createSession(client, bucket), endsAt: Infinity };
      kept.set(key, made);
      made.session.then(
        () => {
          made.endsAt = askedAt + SESSION_MS;
        },
        () => {
          if (kept.get(key) === made) kept.delete(key);
        },
      );
      return made.session;
    },
  };
  return client;
}
