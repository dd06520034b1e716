import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { expect, it } from 'vitest';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { HandClock } from '../../support/hand-clock.ts';

const streams = 150;
const body = Buffer.from(Array.from({ length: streams * 10 }, (_, index) => index % 251));

/** Reads an object whose streams bring ten bytes each and then break, while its consumer works so long on each ten. */
async function readPausing(pauseMs: number): Promise<{ readonly bytes: Buffer; readonly asked: number }> {
  const clock = new HandClock();
  const sent: Readable[] = [];
  const client = {
    send({ input }: GetObjectCommand) {
      const from = Number(/^bytes=(\d+)-/.exec(input.Range ?? '')?.[1] ?? 0);
      const stream = new Readable({ read: () => undefined });
      stream.push(body.subarray(from, from + 10));
      stream.on('error', () => undefined);
      sent.push(stream);
      return Promise.resolve({ ContentLength: body.length - from, ETag: '"one"', Body: stream });
    },
  };
  const store = new S3ObjectStore(client as unknown as S3Client, { paceHost: clock });
  const bytes: Uint8Array[] = [];
  for await (const chunk of store.read({ bucket: 'books', key: 'a' })) {
    bytes.push(chunk);
    clock.pass(pauseMs);
    if (bytes.length === streams) sent.at(-1)?.push(null);
    else sent.at(-1)?.destroy(new Error('the socket timed out'));
    await turn();
  }
  return { bytes: Buffer.concat(bytes), asked: sent.length };
}

it('goes on however often the connection times out while its consumer works', async () => {
  const { bytes, asked } = await readPausing(60_000);
  expect(bytes.equals(body)).toBe(true);
  expect(asked).toBe(150);
}, 60_000);

it('gives up where streams break again and again under a consumer that takes what comes', async () => {
  await expect(readPausing(10)).rejects.toBeInstanceOf(StoreUnavailableError);
}, 60_000);
