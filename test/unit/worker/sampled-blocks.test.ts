import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { sample } from '../../../src/operators/sort.ts';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { putSource, recordsOf } from '../../support/worker-fixtures.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

const planned = { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const;
const mib = 1024 * 1024;

/** Runs the sampling of one task; answers its samples and how much it asked for. */
async function sampled(
  worker: WorkerOfTest,
  segments: readonly SourceSegment[],
  options: { everyBytes: number; places: number },
) {
  let bytes = 0;
  let requests = 0;
  const objects = Object.assign(Object.create(worker.objects) as ObjectStore, {
    read: (...[ref, asked]: Parameters<ObjectStore['read']>) => {
      requests++;
      bytes += (asked?.range?.end ?? 0) - (asked?.range?.start ?? 0);
      return worker.objects.read(ref, asked);
    },
  });
  const run = {
    run: sample.run.bind(sample),
    options,
    output: 'unsorted' as const,
    inputs: [{ planned, segments }],
  };
  expect(await worker.run(run, 0, { objects })).toBe('done');
  const [result] = await worker.results();
  const { data } = await worker.leftovers();
  const body = await worker.objects.readAll({ bucket: worker.dataBucket, key: data[0] ?? '' });
  const samples = (await recordsOf(body)).map(([key]) => key).toSorted();
  return { samples, bytes, requests, bytesIn: result?.bytesIn ?? 0 };
}

/** The largest share of the bytes of `lines` that falls between two neighbouring cuts, in equal shares. */
function worstShare(lines: readonly string[], samples: readonly string[], partitions: number): number {
  const cuts = Array.from(
    { length: partitions - 1 },
    (_, at) => samples[Math.floor(((at + 1) * samples.length) / partitions)] ?? '',
  );
  const bytes = new Array<number>(partitions).fill(0);
  for (const line of lines) {
    let low = 0;
    while (low < cuts.length && (cuts[low] ?? '') <= line) low++;
    bytes[low] = (bytes[low] ?? 0) + line.length + 1;
  }
  return (Math.max(...bytes) * partitions) / bytes.reduce((sum, each) => sum + each, 0);
}

const rng = createRng('sampled');
const tail = 'x'.repeat(60);
const count = 280_000;
const random = (): string => rng.next().toFixed(12).slice(2) + tail;
const shapes: Record<string, () => string[]> = {
  random: () => Array.from({ length: count }, random),
  sorted: () => Array.from({ length: count }, (_, at) => String(at).padStart(12, '0') + tail),
  'falling, in two halves': () =>
    Array.from({ length: count }, (_, at) => String((count - at) % (count / 2)).padStart(12, '0') + tail),
  // Most lines begin alike, and the long ones lie together at the end.
  skewed: () =>
    Array.from({ length: count / 2 }, (_, at) =>
      at < count / 4
        ? `a${String(rng.next() ** 6).slice(2, 14)}${tail}`
        : `b${random()}${tail.repeat(at % 5)}`,
    ),
};

describe('sampling a sort', () => {
  it.each(Object.keys(shapes))('of %s lines reads little of them, and cuts them evenly', async (shape) => {
    const worker = new WorkerOfTest();
    const lines = shapes[shape]?.() ?? [];
    const text = Buffer.from(lines.map((line) => `${line}\n`).join(''));
    expect(text.length).toBeGreaterThan(16 * mib);
    // In two objects, the first of which is read up to its middle by another task.
    const half = text.indexOf(10, text.length >> 1) + 1;
    const segments = [
      await putSource(worker.objects, { bucket: 'in', key: 'a' }, text.subarray(0, half)),
      await putSource(worker.objects, { bucket: 'in', key: 'b' }, text.subarray(half)),
    ];
    const { samples, bytes, requests, bytesIn } = await sampled(worker, segments, {
      everyBytes: 33_555,
      places: 128,
    });
    expect(requests).toBe(128);
    expect(bytes).toBeLessThan(0.25 * text.length); // 32 KiB at each place.
    expect(bytesIn).toBeLessThan(0.13 * text.length);
    expect(samples.length / (text.length / 33_555)).toBeCloseTo(1, 1);
    expect(worstShare(lines, samples, 8)).toBeLessThan(1.35);
  });

  it('reads small inputs whole, and compressed ones', async () => {
    const worker = new WorkerOfTest();
    const text = Buffer.from(Array.from({ length: 20_000 }, (_, at) => `${String(at)}\n`).join(''));
    const segments = [
      await putSource(worker.objects, { bucket: 'in', key: 'a' }, text),
      await putSource(worker.objects, { bucket: 'in', key: 'b.gz' }, gzipSync(text), true),
    ];
    const { samples, requests, bytesIn } = await sampled(worker, segments, { everyBytes: 1_000, places: 64 });
    expect(requests).toBe(2);
    expect(bytesIn).toBe(segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0));
    expect(samples).toHaveLength(218); // Twice 108,890 bytes.
  });

  it('reads all where lines are so long that none begins where it looks', async () => {
    const worker = new WorkerOfTest();
    const line = 6 * mib;
    const text = Buffer.alloc(4 * line, 'y');
    for (let at = 1; at <= 4; at++) text[at * line - 1] = 10;
    for (let at = 0; at < 4; at++) text[at * line] = 0x61 + at;
    const segments = [await putSource(worker.objects, { bucket: 'in', key: 'a' }, text)];
    const { samples } = await sampled(worker, segments, { everyBytes: line, places: 8 });
    expect(samples.map((each) => each[0])).toEqual(['a', 'b', 'c', 'd']);
  });
});
