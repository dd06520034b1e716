import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { passSeconds, startFakeS3 } from '../../support/fake-s3.ts';
import { HandClock } from '../../support/hand-clock.ts';

const upload = { bucket: 'books', key: 'a', uploadId: 'u' };
const body = Buffer.alloc(1_000, 7);

type Respond = (response: ServerResponse) => void;
const stored =
  (etag: string): Respond =>
  (response) =>
    response.writeHead(200, { etag }).end();
const failed: Respond = (response) => response.writeHead(400).end();
const silent: Respond = () => undefined;

/** An S3 that answers as said to each number of a part, and tells the numbers in the order in which they came. */
async function fake(answers: Readonly<Record<number, Respond>>) {
  const clock = new HandClock();
  const numbers: number[] = [];
  const dropped: number[] = [];
  const hedged: string[] = [];
  const { client } = await startFakeS3(
    (request, response) => {
      const number = Number(new URL(request.url ?? '', 'http://s3').searchParams.get('partNumber'));
      response.once('close', () => {
        if (!response.writableFinished) dropped.push(number);
      });
      request.resume().once('end', () => {
        numbers.push(number);
        (answers[number] ?? stored(`"${String(number)}"`))(response);
      });
    },
    { disableS3ExpressSessionAuth: true },
  );
  const store = new S3ObjectStore(client, {
    paceHost: clock,
    onHedgedPart: ({ key }) => hedged.push(key),
  });
  /** Sends a part, and lets time pass once the server has what was sent. */
  const sendPassing = (number: number): Promise<unknown> =>
    passSeconds(clock, store.uploadPart(upload, number, body), () => numbers.length);
  return { store, numbers, dropped, hedged, sendPassing };
}

describe('a part that is late', () => {
  it('is sent again under its second number, and what is stored first is the part', async () => {
    const { sendPassing, numbers, dropped, hedged } = await fake({ 1: silent });
    expect(await sendPassing(1)).toEqual({ number: 2, etag: '"2"' });
    expect([numbers, hedged]).toEqual([[1, 2], ['a']]);
    await expect.poll(() => dropped).toEqual([1]);
  });

  it('is what the first request stores, where the second fails', async () => {
    let first: ServerResponse | undefined;
    const { sendPassing, numbers } = await fake({
      3: (response) => (first = response),
      4: (response) => {
        response.writeHead(400).end(() => {
          if (first !== undefined) stored('"late"')(first);
        });
      },
    });
    expect(await sendPassing(2)).toEqual({ number: 3, etag: '"late"' });
    expect(numbers).toEqual([3, 4]);
  });

  it('fails as the first request does, where both fail', async () => {
    let first: ServerResponse | undefined;
    const { sendPassing } = await fake({
      1: (response) => (first = response),
      2: (response) => {
        failed(response);
        if (first !== undefined) failed(first);
      },
    });
    await expect(sendPassing(1)).rejects.toBeInstanceOf(StoreUnavailableError);
  });
});

describe('a part that is in time', () => {
  it('is sent once, in the order of the numbers that were said', async () => {
    const { store, numbers, hedged } = await fake({});
    for (const number of [1, 2, 1_000, 1_001, 9_000]) await store.uploadPart(upload, number, body);
    expect([numbers, hedged]).toEqual([[1, 3, 1_999, 2_001, 10_000], []]);
  });

  it('that fails is not sent again', async () => {
    const { sendPassing, numbers } = await fake({ 1: failed });
    await expect(sendPassing(1)).rejects.toBeInstanceOf(StoreUnavailableError);
    expect(numbers).toEqual([1]);
  });
});

it('sends parts to directory buckets, which bear no gaps, by the numbers that were said', async () => {
  const { store, numbers } = await fake({});
  const zonal = { ...upload, bucket: 'books--use1-az1--x-s3' };
  for (const number of [1, 2]) await store.uploadPart(zonal, number, body);
  expect(numbers).toEqual([1, 2]);
});
