import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { expect, it } from 'vitest';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { HandClock } from '../../support/hand-clock.ts';

const streams = 150;
const body = Buffer.from(Array.from({ length: streams * 10 }, (_, index) => index % 251));

/** Reads an object whose streams bring five bytes twice each and then break, while its consumer works so long on each of the two. */
async function readPausing(...pauses: readonly [number, number]) {
  const clock = new HandClock();
  const sent: Readable[] = [];
  const client = {
    send({ input }: GetObjectCommand) {
      const from = Number(/^bytes=(\d+)-/.exec(input.Range ?? '')?.[1] ?? 0);
      const stream = new Readable({ read: () => undefined });
      stream.push(body.subarray(from, from + 5));
      stream.on('error', () => undefined);
      sent.push(stream);
      return Promise.resolve({ ContentLength: body.length - from, ETag: '"one"', Body: stream });
    },
  };
  const store = new S3ObjectStore(client as unknown as S3Client, { paceHost: clock });
  let bytes: Buffer = Buffer.alloc(0);
  for await (const chunk of store.read({ bucket: 'books', key: 'a' })) {
    bytes = Buffer.concat([bytes, chunk]);
    const isFirst = bytes.length % 10 === 5;
    clock.pass(pauses[isFirst ? 0 : 1]);
    const stream = sent.at(-1);
    if (isFirst) stream?.push(body.subarray(bytes.length, bytes.length + 5));
    else if (bytes.length === body.length) stream?.push(null);
    else stream?.destroy(new Error('the socket timed out'));
    await turn();
  }
  return { bytes, asked: sent.length };
}

it.each([
  ['times out', 0, 60_000],
  ['was closed by S3, as what had come before shows,', 6_000, 0],
])(
  'goes on however often the connection %s while its consumer works',
  async (_, first, second) => {
    const { bytes, asked } = await readPausing(first, second);
    expect(bytes.equals(body)).toBe(true);
    expect(asked).toBe(150);
  },
  60_000,
);

it('gives up where streams break again and again under a consumer that takes what comes', async () => {
  await expect(readPausing(10, 10)).rejects.toBeInstanceOf(StoreUnavailableError);
}, 60_000);
