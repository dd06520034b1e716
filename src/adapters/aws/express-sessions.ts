import { CreateSessionCommand, type S3Client } from '@aws-sdk/client-s3';

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
 * time, nobody takes the rejection, which ends the process.
 */
export function keepExpressSessions(client: S3Client): S3Client {
  const kept = new Map<string, Kept>();
  client.config.s3ExpressIdentityProvider = {
    getS3ExpressIdentity: ({ accessKeyId }, { Bucket: bucket = '' }) => {
      const key = `${accessKeyId} ${bucket}`;
      const known = kept.get(key);
      if (known !== undefined && known.endsAt > Date.now() + MARGIN_MS) return known.session;
      for (const [name, { endsAt }] of kept) if (endsAt <= Date.now() + MARGIN_MS) kept.delete(name);
      const made: Kept = { session: createSession(client, bucket), endsAt: Infinity };
      kept.set(key, made);
      made.session.then(
        ({ expiration }) => {
          made.endsAt = expiration?.getTime() ?? 0;
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
