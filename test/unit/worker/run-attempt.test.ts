import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { ErrorDetails } from '../../../src/contracts/errors.ts';
import { BadRecordError } from '../../../src/worker/operator.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import { runAttempt } from '../../../src/worker/run-attempt.ts';
import { PlaceTakenError } from '../../../src/worker/time-limit.ts';
import { latin1, namesIn, putSource, recordsOf } from '../../support/worker-fixtures.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

const source = { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const;
const none = latin1('');

async function copyLines({ inputs, output }: TaskContext): Promise<void> {
  for (const input of inputs) for await (const block of input.blocks()) await output.write(block.bytes);
}

describe('runAttempt', () => {
  it('leaves a final part as an upload that only Finish completes', async () => {
    const worker = new WorkerOfTest();
    const segments = [
      await putSource(worker.objects, { bucket: 'input', key: 'a' }, latin1(`one\n${'y'.repeat(4_096)}`)),
      await putSource(worker.objects, { bucket: 'input', key: 'b' }, latin1('three\n')),
    ];
    const stage = { run: copyLines, inputs: [{ planned: source, segments }] };
    expect(await worker.run(stage)).toBe('done');
    const [result] = await worker.results();
    expect(result).toMatchObject({
      taskId: 'work/0',
      bytesIn: 4_106,
      bytesOut: 4_106,
      recordsIn: 3,
      counters: {},
    });
    expect(await worker.objects.head({ bucket: 'output-bucket', key: 'out/part-00000' })).toBeUndefined();
    expect(await worker.leftovers()).toEqual({ data: [], uploads: ['out/part-00000'] });
    const final = result?.final;
    if (final?.kind !== 'upload') throw new Error('no upload in the result');
    expect(final.sizeBytes).toBe(4_106);
    const upload = { bucket: 'output-bucket', key: 'out/part-00000', uploadId: final.uploadId };
    expect(await worker.objects.completeUpload(upload, final.parts)).toBe('completed');
    const head = await worker.objects.head(upload);
    expect(head?.metadata).toEqual({ 'outrider-attempt': 'words-0123456789ab/work/0/0' });
    expect(await worker.attempt(attemptIdOf('work', 0, 0))).toMatchObject({
      state: 'done',
      node: 'node-1',
      zone: 'zone-a',
      progress: { bytesRead: 4_106, bytesTotal: 4_106, recordsIn: 3 },
    });
    expect(await namesIn(worker.scratchRoot)).toEqual([]);
  });

  it('sends a small final part with its result: nothing is uploaded, and nothing noted', async () => {
    const worker = new WorkerOfTest();
    const body = latin1('z'.repeat(4_096));
    expect(await worker.run({ run: ({ output }) => Promise.resolve(output.write(body)) })).toBe('done');
    const [result] = await worker.results();
    expect(result).toMatchObject({ bytesOut: 4_096, final: { kind: 'inline' } });
    expect(result?.final?.kind === 'inline' && Buffer.from(result.final.body).equals(body)).toBe(true);
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
    expect((await worker.attempt(attemptIdOf('work', 0, 0)))?.upload).toBeUndefined();
  });

  it('commits an empty part without an upload', async () => {
    const worker = new WorkerOfTest();
    expect(await worker.run({ run: () => Promise.resolve() })).toBe('done');
    expect((await worker.results())[0]?.final).toEqual({ kind: 'empty' });
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  });

  it('writes sorted, combined partitions whose index finds and checks each', async () => {
    const worker = new WorkerOfTest();
    const run = async ({ output }: TaskContext): Promise<void> => {
      for (let round = 0; round < 300; round++) {
        await output.emit(latin1('b'), latin1('1'), 2);
        await output.emit(latin1('a'), latin1('1'), 2);
        await output.emit(latin1('c'), latin1('1'), 0);
      }
    };
    const combiner = () => (left: Buffer, right: Buffer) =>
      latin1(String(Number(left.toString()) + Number(right.toString())));
    expect(await worker.run({ run, combiner, output: 'sorted', partitions: 4 })).toBe('done');
    const index = (await worker.results())[0]?.partitions;
    expect(index?.lengths).toEqual([6, 0, 12, 0]);
    const key = 'jobs/words-0123456789ab/data/70/work/0/0';
    const body = await worker.objects.readAll({ bucket: worker.dataBucket, key });
    expect(await recordsOf(body.subarray(0, 6))).toEqual([['c', '300']]);
    expect(await recordsOf(body.subarray(6))).toEqual([
      ['a', '300'],
      ['b', '300'],
    ]);
    expect(index?.crcs).toEqual([crc32(body.subarray(0, 6)), 0, crc32(body.subarray(6)), 0]);
  });

  it('does nothing for an attempt that was claimed before', async () => {
    const worker = new WorkerOfTest();
    let runs = 0;
    const stage = {
      run: () => {
        runs++;
        return Promise.resolve();
      },
    };
    const payload = await worker.prepare(stage);
    const outcomes = await Promise.all([
      runAttempt(worker.deps(stage), payload),
      runAttempt(worker.deps(stage), payload),
    ]);
    expect(outcomes.toSorted()).toEqual(['done', 'refused']);
    expect(runs).toBe(1);
  });

  it('removes the data of the attempt that commits second', async () => {
    const worker = new WorkerOfTest();
    const run = async ({ output }: TaskContext): Promise<void> => output.emit(latin1('k'), none);
    expect(await worker.run({ run, output: 'unsorted' }, 0)).toBe('done');
    expect(await worker.run({ run, output: 'unsorted' }, 1)).toBe('lost-race');
    expect(await worker.leftovers()).toEqual({
      data: ['jobs/words-0123456789ab/data/70/work/0/0'],
      uploads: [],
    });
    expect((await worker.attempt(attemptIdOf('work', 0, 1)))?.state).toBe('cancelled');
  });

  it('stops at the next heartbeat when it is told to cancel, and leaves nothing', async () => {
    const worker = new WorkerOfTest();
    const begun = Promise.withResolvers<undefined>();
    const run = async ({ output, signal }: TaskContext): Promise<void> => {
      await output.write(Buffer.alloc(9_000_000, 'x'));
      begun.resolve(undefined);
      await new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          reject(new Error('stopped'));
        });
      });
    };
    const stage = { run };
    const payload = await worker.prepare(stage);
    const ended = runAttempt(worker.deps(stage), payload);
    await begun.promise;
    await worker.attempts.orderCancel(worker.space, payload.attemptId);
    await worker.clock.advance(1_000);
    expect(await ended).toBe('cancelled');
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
    expect(await worker.attempt(payload.attemptId)).toMatchObject({
      state: 'cancelled',
      progress: { phase: 'compute' },
    });
    expect(await worker.results()).toEqual([]);
    expect(await namesIn(worker.scratchRoot)).toEqual([]);
  });

  it('reports progress soon and then less and less, whether data flows or not', async () => {
    const worker = new WorkerOfTest();
    const segments = [await putSource(worker.objects, { bucket: 'input', key: 'a' }, latin1('one\ntwo\n'))];
    const begun = Promise.withResolvers<undefined>();
    const go = Promise.withResolvers<undefined>();
    const run = async (context: TaskContext): Promise<void> => {
      await copyLines(context);
      begun.resolve(undefined);
      await go.promise;
    };
    const stage = { run, inputs: [{ planned: source, segments }] };
    const payload = await worker.prepare(stage);
    const ended = runAttempt(worker.deps(stage, { peakMemoryBytes: () => 123 }), payload);
    await begun.promise;
    await worker.clock.advance(2_400);
    expect(await worker.attempt(payload.attemptId)).toMatchObject({
      state: 'running',
      progress: {
        bytesRead: 8,
        bytesTotal: 8,
        recordsIn: 2,
        recordsOut: 2,
        phase: 'compute',
        peakMemoryBytes: 123,
        // First after 970 ms, as its id has it, and then with each heartbeat.
        phaseMs: { init: 0, read: 0, compute: 1_970, write: 0 },
      },
    });
    go.resolve(undefined);
    expect(await ended).toBe('done');
  });

  it('ends as cancelled when its process is being stopped', async () => {
    const worker = new WorkerOfTest();
    const stop = new AbortController();
    const run = async ({ output }: TaskContext): Promise<void> => {
      await output.write(Buffer.alloc(9_000_000, 'x'));
      stop.abort();
      await output.write(latin1('more'));
    };
    expect(await worker.run({ run }, 0, { stopSignal: stop.signal })).toBe('cancelled');
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  });

  it('ends as interrupted, and leaves nothing, when its place is taken away', async () => {
    const worker = new WorkerOfTest();
    const stop = new AbortController();
    const run = async ({ output }: TaskContext): Promise<void> => {
      await output.write(Buffer.alloc(9_000_000, 'x'));
      stop.abort(new PlaceTakenError('Spot needs its place'));
      await output.write(latin1('more'));
    };
    expect(await worker.run({ run }, 0, { stopSignal: stop.signal })).toBe('failed');
    expect((await worker.attempts.all(worker.space)).attempts[0]).toMatchObject({
      state: 'failed',
      failure: { cause: 'interrupted', message: 'Spot needs its place' },
    });
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  });

  it('does not wait for ever for an operator that ignores its cancellation', async () => {
    const worker = new WorkerOfTest();
    const begun = Promise.withResolvers<undefined>();
    const stage = {
      run: () => {
        begun.resolve(undefined);
        return new Promise<void>(() => undefined);
      },
    };
    const payload = await worker.prepare(stage);
    const ended = runAttempt(worker.deps(stage), payload);
    await begun.promise;
    await worker.attempts.orderCancel(worker.space, payload.attemptId);
    await worker.clock.advance(6_000);
    expect(await ended).toBe('cancelled');
  });

  it.each([
    ['bad-record', new BadRecordError('a.csv:3: two fields'), 'a.csv:3: two fields'],
    ['user-code', new TypeError('x is not\na function'), 'TypeError: x is not a function'],
    ['storage', new StoreUnavailableError('no answer', {} satisfies ErrorDetails), 'no answer'],
    [
      'out-of-memory',
      new RangeError('Array buffer allocation failed'),
      'RangeError: Array buffer allocation failed',
    ],
  ])('records %s with one line', async (cause, error, message) => {
    const worker = new WorkerOfTest();
    const run = async ({ output }: TaskContext): Promise<void> => {
      await output.write(Buffer.alloc(9_000_000, 'x'));
      throw error;
    };
    expect(await worker.run({ run })).toBe('failed');
    expect(await worker.attempt(attemptIdOf('work', 0, 0))).toMatchObject({
      state: 'failed',
      failure: { cause, message },
    });
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
    expect(await namesIn(worker.scratchRoot)).toEqual([]);
  });

  it('keeps its data when nobody knows whether the commit went through', async () => {
    const worker = new WorkerOfTest();
    const stage = {
      run: async ({ output }: TaskContext): Promise<void> => output.emit(latin1('k'), none),
      output: 'unsorted',
    } as const;
    const { attempts } = worker;
    const tried = Promise.withResolvers<undefined>();
    const unsure = {
      create: attempts.create.bind(attempts),
      orderCancel: attempts.orderCancel.bind(attempts),
      markLost: attempts.markLost.bind(attempts),
      claim: attempts.claim.bind(attempts),
      report: attempts.report.bind(attempts),
      recordDeath: attempts.recordDeath.bind(attempts),
      end: attempts.end.bind(attempts),
      noteUpload: attempts.noteUpload.bind(attempts),
      noteOutputLost: attempts.noteOutputLost.bind(attempts),
      orders: attempts.orders.bind(attempts),
      tell: attempts.tell.bind(attempts),
      told: attempts.told.bind(attempts),
      clear: attempts.clear.bind(attempts),
      read: attempts.read.bind(attempts),
      all: attempts.all.bind(attempts),
      commit: () => {
        tried.resolve(undefined);
        return Promise.reject(new StoreUnavailableError('no answer'));
      },
    };
    const ended = worker.run(stage, 0, { attempts: unsure });
    await tried.promise;
    await worker.clock.advance(10_000);
    expect(await ended).toBe('failed');
    expect((await worker.leftovers()).data).toEqual(['jobs/words-0123456789ab/data/70/work/0/0']);
  });
});

describe('text written by a stage that others read', () => {
  it('becomes a record per line, key and value cut at the first TAB, whatever the pieces', async () => {
    const worker = new WorkerOfTest();
    const run = async ({ output }: TaskContext): Promise<void> => {
      for (const piece of ['k\tv', '1\tx\nlo', 'ng', 'er\n\n', 'last']) await output.write(latin1(piece));
    };
    expect(await worker.run({ run, output: 'unsorted' })).toBe('done');
    const body = await worker.objects.readAll({
      bucket: worker.dataBucket,
      key: 'jobs/words-0123456789ab/data/70/work/0/0',
    });
    expect(await recordsOf(body)).toEqual([
      ['k', 'v1\tx'],
      ['longer', ''],
      ['', ''],
      ['last', ''],
    ]);
    expect((await worker.results())[0]).toMatchObject({
      recordsOut: 4,
      partitions: { lengths: [body.length], crcs: [crc32(body)] },
    });
  });
});
