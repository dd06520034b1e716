import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { S3Client } from '@aws-sdk/client-s3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { S3ObjectStore } from '../../../src/adapters/aws/s3-object-store.ts';
import { frameOf } from '../../../src/worker/framing.ts';
import { Gate } from '../../../src/lib/gate.ts';
import type { UpstreamSegment } from '../../../src/worker/upstream-segment.ts';
import { recordsInOrder } from '../../../src/worker/stage-records.ts';
import { S3AtItsRate, VirtualTime } from '../../support/s3-at-its-rate.ts';

const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
const record = frameOf(Buffer.from('key'), Buffer.from('value'));
const segments = (count: number): UpstreamSegment[] =>
  Array.from({ length: count }, (_, task) => ({
    ref: { bucket: 'data', key: `jobs/a/data/${task}` },
    offset: 100,
    length: record.length,
    crc: crc32(record),
    producer: `map/${task}/0`,
  }));

interface Outcome {
  readonly died: number;
  readonly records: number;
  readonly s3: S3AtItsRate;
  readonly tookMs: number;
}

/** So many reducers that begin at the same moment, each with a client of its own, on one prefix. */
async function reduceAtOnce(
  reducers: number,
  maps: number,
  { perSecond = 5_500, patienceMs = 900_000 } = {},
): Promise<Outcome> {
  const time = new VirtualTime();
  const s3 = new S3AtItsRate(time, { perSecond, body: () => record });
  const scratchDir = await mkdtemp(join(tmpdir(), 'outrider-rate-'));
  onTestFinished(() => rm(scratchDir, { recursive: true }));
  let records = 0;
  const reduce = async (): Promise<void> => {
    const client = s3.behind(new S3Client({ region: 'us-east-1', credentials, maxAttempts: 1 }));
    const objects = new S3ObjectStore(client, { paceHost: time, patienceMs });
    const reading = {
      objects,
      gate: new Gate(16),
      onBytes: () => undefined,
      fetching: (request: () => Promise<Uint8Array>) => request(),
      memoryBytes: 40 * 1024 * 1024,
      scratchDir,
      signal: new AbortController().signal,
    };
    for await (const batch of recordsInOrder(reading, segments(maps))) records += batch.length;
  };
  const all = Promise.allSettled(Array.from({ length: reducers }, reduce));
  const tookMs = await time.until(all);
  const died = (await all).filter(({ status }) => status === 'rejected').length;
  return { died, records, s3, tookMs };
}

describe('reducers that together ask faster than S3 serves a prefix', () => {
  it('all come through, 900 at once, at most of the rate that there is', { timeout: 240_000 }, async () => {
    const { died, records, s3, tookMs } = await reduceAtOnce(900, 5);
    expect(died).toBe(0);
    expect(records).toBe(4_500);
    expect(s3.asked.served).toBe(4_500); // What S3 served is asked for once.
    // 0.8 s at the full rate.
    expect(tookMs).toBeLessThan(5_000);
    expect(s3.asked.refused).toBeLessThan(3 * 4_500);
  });

  it('die, most of them, where they have no more patience than the SDK with its three tries', async () => {
    // The model has teeth: at S3's own rate 900 that asked for 20 segments each died so too, which takes minutes to show.
    const { died } = await reduceAtOnce(200, 5, { perSecond: 200, patienceMs: 300 });
    expect(died).toBeGreaterThan(100);
  });

  it('come through where there are more of them than requests a second', async () => {
    const { died, records } = await reduceAtOnce(200, 5, { perSecond: 50 });
    expect(died).toBe(0);
    expect(records).toBe(1_000);
  });
});
