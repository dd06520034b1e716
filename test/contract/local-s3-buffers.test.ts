import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { BUCKET, bytes, MIB, presignedUrl, startBench } from './local-s3-support.ts';
import type { S3Bench } from './local-s3-support.ts';

let bench: S3Bench;

beforeEach(async () => {
  bench = await startBench();
});

afterEach(async () => {
  await bench.close();
});

it('mixes no bytes of answers and bodies that run side by side, though many are broken off', async () => {
  const contents = Array.from({ length: 4 }, (_, index) => bytes(3 * MIB + index, index + 1));
  const put = async (index: number): Promise<void> => {
    const Body = contents[index % 4] ?? Buffer.alloc(0);
    await bench.client.send(new PutObjectCommand({ Bucket: BUCKET, Key: `o${String(index)}`, Body }));
  };
  await Promise.all([0, 1, 2, 3].map(put));

  /** Reads a little, or nothing, and goes away. */
  const breakOff = async (index: number): Promise<void> => {
    const controller = new AbortController();
    const url = await presignedUrl(bench.server, 'GET', `/${BUCKET}/o${String(index % 4)}`);
    const response = await fetch(url, { signal: controller.signal });
    if (index % 2 === 0) await response.body?.getReader().read();
    controller.abort();
  };
  const read = async (index: number): Promise<boolean> => {
    const answer = await bench.client.send(
      new GetObjectCommand({ Bucket: BUCKET, Key: `o${String(index % 4)}` }),
    );
    const body = await answer.Body?.transformToByteArray();
    return contents[index % 4]?.equals(body ?? new Uint8Array()) === true;
  };
  for (let round = 0; round < 3; round++) {
    const indices = Array.from({ length: 8 }, (_, index) => index);
    const [right] = await Promise.all([
      Promise.all(indices.map(read)),
      Promise.all(indices.map(breakOff)),
      Promise.all(indices.map((index) => put(4 + index))),
    ]);
    expect(right).toEqual(indices.map(() => true));
  }
  for (let index = 4; index < 12; index++) {
    const answer = await bench.client.send(
      new GetObjectCommand({ Bucket: BUCKET, Key: `o${String(index)}` }),
    );
    const body = await answer.Body?.transformToByteArray();
    expect(contents[index % 4]?.equals(body ?? new Uint8Array())).toBe(true);
  }
});
