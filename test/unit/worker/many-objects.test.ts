import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import { latin1, putSource } from '../../support/worker-fixtures.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

const planned = { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const;

/** Answers only when so many reads are under way at once, or nobody else comes. */
function gathering(objects: ObjectStore): { objects: ObjectStore; most: () => number; reads: () => number } {
  let running = 0;
  let most = 0;
  let reads = 0;
  const gathered: ObjectStore['read'] = async function* (ref, options) {
    reads++;
    most = Math.max(most, ++running);
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    try {
      yield* objects.read(ref, options);
    } finally {
      running--;
    }
  };
  return {
    objects: Object.assign(Object.create(objects) as ObjectStore, { read: gathered }),
    most: () => most,
    reads: () => reads,
  };
}

const reading =
  (found: string[]) =>
  async ({ inputs }: TaskContext): Promise<void> => {
    for (const input of inputs)
      for await (const batch of input.records()) found.push(...batch.map(({ key }) => key.toString()));
  };

async function put(worker: WorkerOfTest, index: number, lines: number): Promise<SourceSegment> {
  const gzip = index % 5 === 4;
  const text = latin1(Array.from({ length: lines }, (_, line) => `${index}.${line}\n`).join(''));
  const ref = { bucket: 'source', key: `o${index}${gzip ? '.gz' : ''}` };
  return putSource(worker.objects, ref, gzip ? gzipSync(text) : text, gzip);
}

describe('a task of many small objects', () => {
  it('fetches several at once, each once, and gives them in their order', async () => {
    const worker = new WorkerOfTest();
    const segments: SourceSegment[] = [];
    for (let index = 0; index < 256; index++) segments.push(await put(worker, index, 1 + (index % 3)));
    const found: string[] = [];
    const { objects, most, reads } = gathering(worker.objects);
    expect(await worker.run({ run: reading(found), inputs: [{ planned, segments }] }, 0, { objects })).toBe(
      'done',
    );
    const expected = segments.flatMap((_, index) =>
      Array.from({ length: 1 + (index % 3) }, (_, line) => `${index}.${line}`),
    );
    expect(found).toEqual(expected);
    expect(reads()).toBe(256);
    expect(most()).toBeGreaterThanOrEqual(8);
    expect(most()).toBeLessThanOrEqual(32);
    const [result] = await worker.results();
    expect(result?.bytesIn).toBe(segments.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0));
  });

  it('holds little of them ahead, and reads large ones among them as ever', async () => {
    const worker = new WorkerOfTest();
    const segments: SourceSegment[] = [];
    // Each fifth is small for it is compressed, the first larger than what is fetched ahead at all.
    for (let index = 0; index < 20; index++)
      segments.push(await put(worker, index, index === 0 ? 200_000 : 100_000));
    const found: string[] = [];
    const { objects, most, reads } = gathering(worker.objects);
    expect(await worker.run({ run: reading(found), inputs: [{ planned, segments }] }, 0, { objects })).toBe(
      'done',
    );
    expect(found).toHaveLength(2_100_000);
    expect(found.at(-1)).toBe('19.99999');
    expect(reads()).toBe(20);
    expect(most()).toBeLessThanOrEqual(13); // Some 0.8 MB each of 8 MiB, and compressed ones.
  });

  it.each(['changed', 'gone'] as const)(
    'fails by name where one that was to be fetched ahead is %s',
    async (what) => {
      const worker = new WorkerOfTest();
      const segments: SourceSegment[] = [];
      for (let index = 0; index < 30; index++) segments.push(await put(worker, index, 2));
      if (what === 'gone') await worker.objects.remove('source', ['o7']);
      else await worker.objects.write({ bucket: 'source', key: 'o7' }, latin1('other\nlines\n'));
      const found: string[] = [];
      await worker.run({ run: reading(found), inputs: [{ planned, segments }] });
      expect(found).toHaveLength(14); // What comes before it was given.
      expect((await worker.attempt(attemptIdOf('work', 0, 0)))?.failure).toEqual({
        cause: 'bad-input',
        message: `o7: ${what} since the job was planned`,
      });
    },
  );

  it('asks for no more once its operator has had enough', async () => {
    const worker = new WorkerOfTest();
    const segments: SourceSegment[] = [];
    for (let index = 0; index < 200; index++) segments.push(await put(worker, index, 2));
    const run = async ({ inputs: [input] }: TaskContext): Promise<void> => {
      for await (const batch of input?.records() ?? []) if (batch.length > 0) return;
    };
    const { objects, reads } = gathering(worker.objects);
    expect(await worker.run({ run, inputs: [{ planned, segments }] }, 0, { objects })).toBe('done');
    expect(reads()).toBeLessThanOrEqual(33);
  });
});
