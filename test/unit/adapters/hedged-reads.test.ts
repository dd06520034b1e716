import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import type { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { describe, expect, it } from 'vitest';
import { RequestHedge } from '../../../src/adapters/aws/request-hedge.ts';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { passSeconds, startFakeS3 } from '../../support/fake-s3.ts';
import { HandClock } from '../../support/hand-clock.ts';

const body = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
const place = { bucket: 'books', key: 'a' };

type Respond = (response: ServerResponse, from: number) => void;

const whole: Respond = (response, from) => {
  response.writeHead(from === 0 ? 200 : 206, { 'content-length': body.length - from, etag: '"one"' });
  response.end(body.subarray(from));
};
const some =
  (bytes: number): Respond =>
  (response, from) => {
    response.writeHead(200, { 'content-length': body.length - from, etag: '"one"' });
    response.write(body.subarray(from, from + bytes));
  };
const nothing: Respond = () => undefined;

/** An S3 of one object, whose answers come in turn; the last one again and again. */
async function fake(...answers: readonly Respond[]) {
  const clock = new HandClock();
  const ranges: (string | undefined)[] = [];
  const ended: number[] = [];
  const hedged: string[] = [];
  const { client } = await startFakeS3((request, response) => {
    const number = ranges.length;
    ranges.push(request.headers.range);
    response.once('close', () => {
      if (!response.writableFinished) ended.push(number);
    });
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    (answers[number] ?? answers.at(-1) ?? whole)(response, from);
  });
  const store = new S3ObjectStore(client, {
    paceHost: clock,
    onHedge: ({ key }) => hedged.push(key),
  });
  /** Lets time pass, a second at a time, until a read has ended. */
  const readPassing = async (): Promise<Buffer> =>
    Buffer.from(await passSeconds(clock, store.readAll(place), () => ranges.length));
  return { store, clock, ranges, ended, hedged, readPassing };
}

describe('a read that is late', () => {
  it.each([
    ['whose answer does not come', nothing, [undefined, undefined]],
    ['that stands still', some(20_000), [undefined, 'bytes=20000-99999']],
  ])('%s is asked for again, and what comes first is given, each byte once', async (_, slow, asked) => {
    const { readPassing, ranges, ended, hedged } = await fake(slow, whole);
    expect((await readPassing()).equals(body)).toBe(true);
    expect(ranges).toEqual(asked);
    expect(hedged).toEqual(['a']);
    await expect.poll(() => ended).toEqual([0]);
  });

  it('is not asked for again where it comes in time', async () => {
    const { store, clock, ranges, hedged } = await fake(whole);
    for (let read = 0; read < 20; read++) {
      clock.pass(999);
      expect((await store.readAll(place)).length).toBe(body.length);
    }
    expect([ranges.length, hedged]).toEqual([20, []]);
  });

  it('is not asked for again where all has come but its end', async () => {
    const clock = new HandClock();
    const asked: (string | undefined)[] = [];
    const open = new Readable({ read: () => undefined });
    open.push(body);
    const answers = [open, Readable.from([body])];
    const client = {
      send({ input }: GetObjectCommand) {
        const Body = answers[asked.length];
        asked.push(input.Range);
        return Promise.resolve({ ContentLength: body.length, ETag: '"one"', Body });
      },
    };
    const store = new S3ObjectStore(client as unknown as S3Client, { paceHost: clock });
    let seconds = 0;
    const reading = store.readAll(place, { start: 0, end: body.length });
    const read = await passSeconds(clock, reading, () => {
      // Far later than anything is late.
      if (++seconds === 30) open.push(null);
      return seconds;
    });
    expect([Buffer.from(read).equals(body), asked]).toEqual([true, ['bytes=0-99999']]);
  });

  it('goes on with the first request where the second fails', async () => {
    let first: ServerResponse | undefined;
    const { readPassing, hedged } = await fake(
      (response) => (first = response),
      (response) => {
        response.writeHead(404).end(() => {
          if (first !== undefined) whole(first, 0);
        });
      },
    );
    expect((await readPassing()).equals(body)).toBe(true);
    expect(hedged).toEqual(['a']);
  });
});

describe('how late is late', () => {
  it('follows from what answers and bytes have taken, and is never under a second', () => {
    const hedge = new RequestHedge(new HandClock());
    expect([hedge.lateAfterMs(0), hedge.lateAfterMs(10 * 1024 * 1024)]).toEqual([1_000, 3_300]);
    for (let reads = 0; reads < 64; reads++) hedge.ended(500, 1_000_000, 1_000);
    expect([hedge.lateAfterMs(0), hedge.lateAfterMs(1_000_000)]).toEqual([1_500, 4_500]);
  });

  it('lets no more be asked for twice than three times a read, and a twentieth of all', () => {
    const hedge = new RequestHedge(new HandClock());
    expect([0, 1, 2, 3].map((before) => hedge.take(before))).toEqual([true, true, true, false]);
    expect([hedge.take(0), hedge.take(0)]).toEqual([true, false]);
    for (let reads = 0; reads < 20; reads++) hedge.began();
    expect([hedge.take(0), hedge.take(0)]).toEqual([true, false]);
  });
});
