import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Sha256 } from '@aws-crypto/sha256-js';
import { S3Client } from '@aws-sdk/client-s3';
import { SignatureV4 } from '@smithy/signature-v4';
import { startS3Server } from '../../src/local/s3/server.ts';
import type { S3Server, S3ServerOptions } from '../../src/local/s3/server.ts';

export const CREDENTIALS = { accessKeyId: 'AKIDLOCAL', secretAccessKey: 'local-secret' };
export const REGION = 'eu-central-1';
export const BUCKET = 'data';
export const MIB = 1024 * 1024;

/** A server on a directory of its own, and a client of it. */
export interface S3Bench {
  readonly rootDir: string;
  readonly server: S3Server;
  readonly client: S3Client;
  /** A second server on the same directory, with a client. Closed with the bench. */
  another(): Promise<{ server: S3Server; client: S3Client }>;
  close(): Promise<void>;
}

export async function startBench(options: Partial<S3ServerOptions> = {}): Promise<S3Bench> {
  const rootDir = await mkdtemp(join(tmpdir(), 'local-s3-'));
  const open: { server: S3Server; client: S3Client }[] = [];
  const start = async (): Promise<{ server: S3Server; client: S3Client }> => {
    const server = await startS3Server({ rootDir, credentials: CREDENTIALS, region: REGION, ...options });
    await server.createBucket(BUCKET);
    const started = { server, client: clientOf(server) };
    open.push(started);
    return started;
  };
  const first = await start();
  return {
    rootDir,
    ...first,
    another: start,
    async close() {
      for (const { server, client } of open) {
        client.destroy();
        await server.close();
      }
      await rm(rootDir, { recursive: true, force: true });
    },
  };
}

export function clientOf(server: S3Server, maxAttempts = 1): S3Client {
  return new S3Client({
    endpoint: server.endpoint,
    region: REGION,
    credentials: CREDENTIALS,
    forcePathStyle: true,
    maxAttempts,
  });
}

/** How a call ended: `ok`, or status and code of the error, as `412 PreconditionFailed`. */
export async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'ok';
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const metadata = '$metadata' in error ? error.$metadata : undefined;
    const status =
      typeof metadata === 'object' && metadata !== null && 'httpStatusCode' in metadata
        ? String(metadata.httpStatusCode)
        : 'none';
    return `${status} ${error.name}`;
  }
}

const signer = new SignatureV4({
  credentials: CREDENTIALS,
  region: REGION,
  service: 's3',
  sha256: Sha256,
  uriEscapePath: false,
});

export interface RawRequest {
  readonly method: string;
  /** Encoded, with its leading slash. */
  readonly path: string;
  readonly query?: Record<string, string>;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
}

/** Sends a signed request as given; `x-amz-content-sha256` defaults to UNSIGNED-PAYLOAD. */
export async function sendRaw(server: S3Server, raw: RawRequest): Promise<Response> {
  const url = new URL(server.endpoint);
  const signed = await signer.sign({
    method: raw.method,
    protocol: 'http:',
    hostname: url.hostname,
    path: raw.path,
    query: raw.query ?? {},
    headers: { host: url.host, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD', ...raw.headers },
  });
  const headers = Object.fromEntries(Object.entries(signed.headers).filter(([name]) => name !== 'host'));
  return await fetch(`${server.endpoint}${raw.path}${queryString(raw.query ?? {})}`, {
    method: raw.method,
    headers,
    ...(raw.body === undefined ? {} : { body: raw.body }),
  });
}

/** A URL that needs no further signature. */
export async function presignedUrl(
  server: S3Server,
  method: string,
  path: string,
  query = {},
): Promise<string> {
  const url = new URL(server.endpoint);
  const signed = await signer.presign(
    {
      method,
      protocol: 'http:',
      hostname: url.hostname,
      path,
      query,
      headers: { host: url.host, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
    },
    { expiresIn: 60 },
  );
  return `${server.endpoint}${path}${queryString(signed.query ?? {})}`;
}

function queryString(query: Record<string, unknown>): string {
  const pairs = Object.entries(query).map(
    ([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(String(value))}`,
  );
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

/** Bytes without a pattern that a mix-up of chunks would repeat; the same for the same seed. */
export function bytes(sizeBytes: number, seed = 1): Buffer {
  const result = Buffer.allocUnsafe(sizeBytes);
  let state = seed >>> 0 || 1;
  for (let at = 0; at < sizeBytes; at++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    result[at] = state & 0xff;
  }
  return result;
}
