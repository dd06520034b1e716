import { Readable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { GetObjectCommand, GetObjectCommandOutput, S3Client } from '@aws-sdk/client-s3';
import { describe, expect, it, vi } from 'vitest';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { HandClock } from '../../support/hand-clock.ts';

// Its pauses go by the machine's clock, which stands still here.
vi.mock('../../../src/adapters/aws/backoff.ts', () => ({ backoff: () => Promise.resolve() }));

const place = { bucket: 'books--use1-az4--x-s3', key: 'a' };
const range = { start: 0, end: 100_000 };
const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
/** As long as a client of directory buckets waits for an answer. */
const timeoutMs = 3_000;

type Answer = 'silence' | { readonly sent: number };

/** A store whose zone gives those answers in turn, the last one again and again; what it is asked for; and time. */
function zone(...answers: readonly Answer[]) {
  const clock = new HandClock();
  const state = { asked: 0, silent: 0 };
  async function send({ input }: GetObjectCommand): Promise<Partial<GetObjectCommandOutput>> {
    const answer = answers[state.asked++] ?? answers.at(-1) ?? 'silence';
    state.silent += 1;
    if (answer === 'silence') {
      await clock.sleep(timeoutMs);
      state.silent -= 1;
      throw Object.assign(new Error('no answer'), { name: 'TimeoutError' });
    }
    const body = new Readable({ read: () => undefined });
    const from = Number(/^bytes=(\d+)-/.exec(input.Range ?? '')?.[1]);
    body.push(bytes.subarray(from, from + answer.sent));
    if (from + answer.sent >= bytes.length) body.push(null);
    body.once('close', () => {
      state.silent -= 1;
    });
    return {
      ContentLength: bytes.length - from,
      ETag: '"one"',
      Body: body as GetObjectCommandOutput['Body'] & {},
    };
  }
  const client = { send } as unknown as S3Client;
  const zonal = { client, reads: client, silenceMs: timeoutMs };
  const store = new S3ObjectStore(client, { paceHost: clock, zonal });
  /** Lets time pass, a second at a time, as long as the zone is waited for; tells what has come, and when. */
  const read = async (): Promise<{ readonly came: unknown; readonly atMs: number }> => {
    let came: unknown;
    const reading = store.readAll(place, range).then(
      (whole) => (came = Buffer.from(whole)),
      (cause: unknown) => (came = cause),
    );
    void reading;
    for (;;) {
      for (let turns = 0; turns < 50; turns++) await turn();
      if (came !== undefined) return { came, atMs: clock.now() };
      if (state.silent > 0) clock.pass(1_000);
    }
  };
  return { read };
}

describe('a zone that is silent', () => {
  it('is given up by a read once its patience of 5 s is over, and what it is waiting for has not come', async () => {
    const { came, atMs } = await zone('silence').read();
    expect(came).toBeInstanceOf(StoreUnavailableError);
    expect(atMs).toBeLessThanOrEqual(5_000 + timeoutMs);
  });

  it('is asked again where one connection was dead', async () => {
    const { came } = await zone('silence', { sent: bytes.length }).read();
    expect(bytes.equals(came as Buffer)).toBe(true);
  });

  it('is given up by a read that it left halfway', async () => {
    const { came, atMs } = await zone({ sent: 20_000 }, 'silence').read();
    expect(came).toBeInstanceOf(StoreUnavailableError);
    // Once for a second request beside the one that fell silent, a second after it, and once for the rest.
    expect(atMs).toBeLessThanOrEqual(1_000 + 2 * (5_000 + timeoutMs));
  });

  it('is asked for the rest by a read whose connection died halfway', async () => {
    const { came } = await zone({ sent: 20_000 }, 'silence', { sent: bytes.length }).read();
    expect(bytes.equals(came as Buffer)).toBe(true);
  });
});
