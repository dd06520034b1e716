import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { afterEach, describe, expect, it } from 'vitest';
import { checkSigV4 } from '../../../src/local/http/sigv4.ts';
import { s3Client, s3HedgingClient } from '../../../src/adapters/aws/clients.ts';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';

const hello = Buffer.from('hello');
const sha256 = '2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824';
const keys = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'secret' };
const closings: (() => void)[] = [];

afterEach(() => {
  for (const close of closings.splice(0)) close();
});

interface Seen {
  readonly headers: IncomingHttpHeaders;
  /** What was signed for the body; undefined where the signature is not good. */
  readonly signedFor: string | undefined;
}

const put = (client: S3Client): Promise<unknown> =>
  client.send(new PutObjectCommand({ Bucket: 'books', Key: 'a', Body: hello }));

/** What a service at that name of this machine sees of a write of the five bytes `hello`. */
async function write(host: string, send = put, make = s3Client): Promise<Seen | undefined> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const checked = checkSigV4(request, { credentials: keys, region: 'us-east-1', service: 's3' });
    seen.push({ headers: request.headers, signedFor: checked.ok ? checked.payloadHash : undefined });
    request.resume().once('end', () => response.setHeader('etag', '"a"').end());
  });
  server.listen(0, host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const env = { AWS_ENDPOINT_URL_S3: `http://${host}:${String(address.port)}` };
  // Without a token, which only the service that made a session knows.
  const credentials = () =>
    Promise.resolve({ ...keys, sessionToken: '', expiration: new Date(Date.now() + 3_600_000) });
  // The SDK itself reads the address from the process's environment.
  process.env['AWS_ENDPOINT_URL_S3'] = env.AWS_ENDPOINT_URL_S3;
  const client = make({ region: 'us-east-1', env, credentials });
  closings.push(() => {
    delete process.env['AWS_ENDPOINT_URL_S3'];
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  await send(client);
  return seen[0];
}

describe('a body that is written to S3', () => {
  it('is signed by its CRC-32 where the service is on the loopback interface, and hashed nowhere', async () => {
    const seen = await write('127.0.0.1');
    expect(seen?.signedFor).toBe('UNSIGNED-PAYLOAD');
    // Big-endian 0x3610a686.
    expect(seen?.headers['x-amz-checksum-crc32']).toBe('NhCmhg==');
    expect(seen?.headers.authorization).toMatch(
      /SignedHeaders=[^,]*x-amz-checksum-crc32;x-amz-content-sha256/,
    );
  });

  it('is signed by its SHA-256 wherever else', async () => {
    const seen = await write('localhost');
    expect(seen?.signedFor).toBe(sha256);
  });
});

describe('what a store writes that sends late parts again, under numbers that leave gaps', () => {
  const storeOf = (client: S3Client): S3ObjectStore =>
    new S3ObjectStore(client, { onHedgedPart: () => undefined });
  const upload = { bucket: 'books', key: 'a', uploadId: 'u' };

  it.each(['127.0.0.1', 'localhost'])(
    'has no checksum where it is a part, which S3 would have numbered without gaps, but is signed: at %s',
    async (host) => {
      const seen = await write(
        host,
        (client) => storeOf(client).uploadPart(upload, 2, hello),
        s3HedgingClient,
      );
      expect(seen?.signedFor).toBe(sha256);
      expect(Object.keys(seen?.headers ?? {}).filter((name) => name.includes('checksum'))).toEqual([]);
    },
  );

  it('has one where it is an object, or a part of an upload without gaps', async () => {
    const object = await write(
      'localhost',
      (client) => storeOf(client).write(upload, hello),
      s3HedgingClient,
    );
    const part = await write(
      'localhost',
      (client) => new S3ObjectStore(client).uploadPart(upload, 2, hello),
      s3HedgingClient,
    );
    expect(object?.headers['x-amz-checksum-crc32']).toBe('NhCmhg==');
    expect(part?.headers['x-amz-checksum-crc32']).toBe('NhCmhg==');
  });
});
