import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { AttemptId, JobId } from '../../../src/contracts/ids.ts';
import { attemptDataKey } from '../../../src/contracts/keys.ts';
import type { StageSegment } from '../../../src/contracts/plan.ts';
import type { TaskResult } from '../../../src/contracts/records.ts';
import type { AttemptStore } from '../../../src/ports/attempt-store.ts';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { frameOf } from '../../../src/worker/framing.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import { runAttempt } from '../../../src/worker/run-attempt.ts';
import { latin1, putSource } from '../../support/worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from '../../support/worker-stage.ts';

const jobId = 'words-0123456789ab' as JobId;
const dataOf = (attempt: string): string => attemptDataKey(jobId, attempt as AttemptId);
const emitting: StageOfTest = {
  run: ({ output }) => Promise.resolve(output.emit(latin1('k'), latin1('v'))),
  output: 'unsorted',
};

const replicasOf = async ({ attempts, space }: WorkerOfTest): Promise<readonly TaskResult[]> =>
  (await attempts.all(space)).replicas;

/** Prepares and runs an attempt whose launch says that its output is kept. */
async function runKept(
  worker: WorkerOfTest,
  stage: StageOfTest,
  number: number,
  attempts: AttemptStore = worker.attempts,
): ReturnType<typeof runAttempt> {
  const payload = await worker.prepare(stage, number);
  return runAttempt(worker.deps(stage, { attempts }), { ...payload, keepOutput: true });
}

/** `target` with another method of one name. */
const withMethod = <T extends object, K extends keyof T & string>(target: T, name: K, method: T[K]): T =>
  new Proxy(target, {
    get(inner, property) {
      if (property === name) return method;
      const value: unknown = Reflect.get(inner, property, inner);
      return typeof value === 'function' ? (value.bind(inner) as unknown) : value;
    },
  });

describe('an attempt whose output is to be kept', () => {
  it('wins as any other where it is the first', async () => {
    const worker = new WorkerOfTest();
    expect(await runKept(worker, emitting, 0)).toBe('done');
    expect(await worker.results()).toHaveLength(1);
    expect(await replicasOf(worker)).toEqual([]);
  });

  it('leaves its data and a replica where another has won, and is done', async () => {
    const worker = new WorkerOfTest();
    expect(await worker.run(emitting, 0)).toBe('done');
    expect(await runKept(worker, emitting, 1)).toBe('replica');
    expect(await worker.leftovers()).toEqual({
      data: [dataOf('work/0/0'), dataOf('work/0/1')],
      uploads: [],
    });
    expect((await worker.attempt(attemptIdOf('work', 0, 1)))?.state).toBe('done');
    const [result] = await worker.results();
    expect(result?.attemptId).toBe('work/0/0');
    const replicas = await replicasOf(worker);
    expect(replicas.map(({ attemptId }) => attemptId)).toEqual(['work/0/1']);
    expect(replicas[0]?.partitions?.lengths).toHaveLength(1);
    expect(replicas[0]?.partitions).toEqual(result?.partitions);
  });

  it('keeps its data where the answer to its commit is lost', async () => {
    const worker = new WorkerOfTest();
    await worker.run(emitting, 0);
    const lost = Promise.withResolvers<undefined>();
    let calls = 0;
    const commit: AttemptStore['commit'] = async (space, result, keep) => {
      const answer = await worker.attempts.commit(space, result, keep);
      if (++calls > 1) return answer;
      lost.resolve(undefined);
      throw new StoreUnavailableError('no answer');
    };
    const ended = runKept(
      worker,
      emitting,
      1,
      withMethod<AttemptStore, 'commit'>(worker.attempts, 'commit', commit),
    );
    await lost.promise;
    await worker.clock.advance(1_000);
    expect(await ended).toBe('replica');
    expect(await replicasOf(worker)).toHaveLength(1);
    expect((await worker.leftovers()).data).toContain(dataOf('work/0/1'));
  });

  it('keeps nothing of a final stage', async () => {
    const worker = new WorkerOfTest();
    // More than goes with a result.
    const text = latin1('line\n'.repeat(1_000));
    const stage: StageOfTest = { run: ({ output }) => Promise.resolve(output.write(text)) };
    expect(await worker.run(stage, 0)).toBe('done');
    expect(await runKept(worker, stage, 1)).toBe('lost-race');
    expect(await replicasOf(worker)).toEqual([]);
    expect((await worker.leftovers()).uploads).toEqual(['out/part-00000']);
    expect((await worker.attempt(attemptIdOf('work', 0, 1)))?.state).toBe('cancelled');
  });
});

const upstream = (stage: string) =>
  ({ kind: 'stage', stage, pattern: 'many-to-one', producerTasks: 2, producerPartitions: 1 }) as const;

/** Puts a replica of what a segment names. */
async function putReplica(
  worker: WorkerOfTest,
  { stage, task, number }: { stage: string; task: number; number: number },
  frames: Uint8Array,
): Promise<void> {
  const key = attemptDataKey(worker.jobId, attemptIdOf(stage, task, number));
  await worker.objects.write({ bucket: worker.dataBucket, key }, frames);
}

/** A stage that notes what it reads of the segments of stage `map`. */
const reading = (found: string[], segments: readonly StageSegment[]): StageOfTest => ({
  inputs: [{ planned: upstream('map'), segments }],
  run: async ({ inputs }: TaskContext) => {
    for (const input of inputs)
      for await (const batch of input.records())
        found.push(...batch.map(({ key }) => key.toString('latin1')));
  },
});

describe('a launch that names copies', () => {
  const frames = frameOf(latin1('a'), latin1('1'));

  it('reads a replica where the output of the winner is gone, which fails any other launch', async () => {
    const worker = new WorkerOfTest();
    const found: string[] = [];
    const stage = reading(found, [await worker.putData('map', 0, frames)]);
    await putReplica(worker, { stage: 'map', task: 0, number: 2 }, frames);
    await worker.objects.remove(worker.dataBucket, [dataOf('map/0/0')]);
    expect(await worker.run(stage, 0)).toBe('failed');
    expect((await worker.attempt(attemptIdOf('work', 0, 0)))?.failure).toEqual({
      cause: 'input-lost',
      message: 'output of map/0/0 is gone',
      lost: [{ attemptId: 'map/0/0', how: 'missing', offset: 0, length: frames.length, crc: crc32(frames) }],
    });
    const payload = await worker.prepare(stage, 1);
    expect(await runAttempt(worker.deps(stage), { ...payload, copies: { map: { 0: 2 } } })).toBe('done');
    expect(found).toEqual(['a']);
  });

  it('reads the range of the winner in the copies named, and winners where none is', async () => {
    const worker = new WorkerOfTest();
    const [other, mine] = ['other', 'mine'].map((key) => frameOf(latin1(key), latin1('')));
    if (other === undefined || mine === undefined) throw new Error('no frames');
    const winners = await worker.putData('map', 0, Buffer.concat([other, mine]));
    const { crc } = await worker.putData('map', 9, mine);
    const ranged = { ...winners, offset: other.length, length: mine.length, crc };
    await putReplica(worker, { stage: 'map', task: 0, number: 1 }, Buffer.concat([other, mine]));
    const found: string[] = [];
    const stage = reading(found, [ranged, await worker.putData('map', 1, frames)]);
    const read: string[] = [];
    const readAll: ObjectStore['readAll'] = (ref, range) => {
      if (ref.key.includes('/data/')) read.push(`${ref.key} ${String(range?.start)}-${String(range?.end)}`);
      return worker.objects.readAll(ref, range);
    };
    const objects = withMethod<ObjectStore, 'readAll'>(worker.objects, 'readAll', readAll);
    const payload = await worker.prepare(stage);
    const copies = { map: { 0: 1, 7: 3 } };
    expect(await runAttempt(worker.deps(stage, { objects }), { ...payload, copies })).toBe('done');
    expect(found).toEqual(['mine', 'a']);
    expect(read).toEqual([
      `${dataOf('map/0/1')} ${String(other.length)}-${String(other.length + mine.length)}`,
      `${dataOf('map/1/0')} 0-${String(frames.length)}`,
    ]);
  });

  it('does not pass for a replica that has other bytes', async () => {
    const worker = new WorkerOfTest();
    const stage = reading([], [await worker.putData('map', 0, frames)]);
    await putReplica(worker, { stage: 'map', task: 0, number: 1 }, frameOf(latin1('b'), latin1('1')));
    const payload = await worker.prepare(stage);
    expect(await runAttempt(worker.deps(stage), { ...payload, copies: { map: { 0: 1 } } })).toBe('failed');
    expect((await worker.attempt(payload.attemptId))?.failure).toEqual({
      cause: 'input-lost',
      message: 'output of map/0/1 is not what was written (CRC-32)',
      lost: [{ attemptId: 'map/0/1', how: 'damaged', offset: 0, length: frames.length, crc: crc32(frames) }],
    });
  });

  it.each(['reduce', 'constructor'])('is a bug where the task does not read the stage %s', async (name) => {
    const worker = new WorkerOfTest();
    const stage = reading([], [await worker.putData('map', 0, frames)]);
    const payload = await worker.prepare(stage);
    const copies = { map: { 0: 0 }, [name]: { 0: 1 } };
    expect(await runAttempt(worker.deps(stage), { ...payload, copies })).toBe('failed');
    expect((await worker.attempt(payload.attemptId))?.failure).toMatchObject({
      cause: 'internal',
      message: expect.stringContaining('a copy is of a stage that the task reads') as string,
    });
  });
});

describe('what an attempt has fetched', () => {
  it('is told where it reads other stages, with the time of those requests alone', async () => {
    const worker = new WorkerOfTest();
    const frames = frameOf(latin1('a'), latin1('1'));
    const stage = reading([], [await worker.putData('map', 0, frames)]);
    const readAll: ObjectStore['readAll'] = async (ref, range) => {
      await worker.clock.advance(ref.key.includes('/data/') ? 40 : 500);
      return worker.objects.readAll(ref, range);
    };
    const objects = withMethod<ObjectStore, 'readAll'>(worker.objects, 'readAll', readAll);
    expect(await worker.run(stage, 0, { objects })).toBe('done');
    const { progress } = (await worker.attempt(attemptIdOf('work', 0, 0))) ?? {};
    expect(progress?.fetched).toEqual({ bytes: frames.length, ms: 40 });
  });

  it('is not told where it reads none', async () => {
    const worker = new WorkerOfTest();
    const segments = [await putSource(worker.objects, { bucket: 'input', key: 'a' }, latin1('one\n'))];
    const planned = { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const;
    const run = async ({ inputs: [input], output }: TaskContext): Promise<void> => {
      for await (const block of input?.blocks() ?? []) await output.write(block.bytes);
    };
    expect(await worker.run({ run, inputs: [{ planned, segments }] })).toBe('done');
    const { progress } = (await worker.attempt(attemptIdOf('work', 0, 0))) ?? {};
    expect(progress?.bytesRead).toBe(4);
    expect(progress).not.toHaveProperty('fetched');
  });
});
