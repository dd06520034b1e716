import { describe, expect, it } from 'vitest';
import { MemoryCapacityStore } from '../../../src/adapters/memory/memory-capacity-store.ts';
import { RuledCapacityLedger } from '../../../src/app/capacity-ledger.ts';
import { MemoryJobStore } from '../../../src/adapters/memory/memory-job-store.ts';
import { failJob } from '../../../src/app/fail-job.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import { durationMs } from '../../../src/contracts/units.ts';
import { runAttempt } from '../../../src/worker/run-attempt.ts';
import { collect, jobRecord } from '../../contract/ports/builders.ts';
import { freezeEverywhere, type FreezingProcess } from '../../support/freezing.ts';
import { latin1 } from '../../support/worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from '../../support/worker-stage.ts';

const output = { bucket: 'output-bucket', key: 'out/part-00000' };
/** More than goes with a result. */
const text = latin1('some text\n'.repeat(500));
const final: StageOfTest = { run: ({ output: out }) => Promise.resolve(out.write(text)) };

interface World {
  readonly worker: WorkerOfTest;
  readonly payload: AttemptPayload;
  readonly jobs: MemoryJobStore;
  /** An upload of somebody else at the key of the job's own part. */
  readonly foreign: string;
}

/** A running job whose one task is about to be done. */
async function running(): Promise<World> {
  const worker = new WorkerOfTest();
  const jobs = new MemoryJobStore();
  const { uploadId: foreign } = await worker.objects.beginUpload(output);
  const payload = await worker.prepare(final);
  await jobs.create(
    jobRecord(worker.jobId, {
      state: 'running',
      startedAt: worker.clock.now(),
      shards: 1,
      output: 's3://output-bucket/out/',
    }),
  );
  return { worker, payload, jobs, foreign };
}

const fail = ({ worker, jobs }: World, process?: FreezingProcess): Promise<void> => {
  const { objects, attempts, clock, dataBucket } = worker;
  const log = { info: (): void => undefined, warn: (): void => undefined };
  const ledger = new RuledCapacityLedger(new MemoryCapacityStore());
  const deps = { objects, attempts, clock, dataBucket, jobs, log, ledger };
  return failJob(
    process?.wrap(deps, ['jobs', 'attempts', 'objects']) ?? deps,
    worker.jobId,
    { name: 'Unknown', message: 'no' },
    durationMs(0),
  );
};

const uploads = async ({ worker }: World): Promise<string[]> =>
  (await collect(worker.objects.listUploads({ bucket: 'output-bucket', key: '' }))).map(
    ({ uploadId }) => uploadId,
  );

describe('the upload of an output part', () => {
  it('is in the record of its attempt', async () => {
    const { worker, payload } = await running();
    expect(await runAttempt(worker.deps(final), payload)).toBe('done');
    const result = (await worker.results())[0]?.final;
    const attempt = await worker.attempt(attemptIdOf('work', 0, 0));
    expect(attempt?.upload?.uploadId).toMatch(/^upload-\d+$/);
    expect(result).toMatchObject({ kind: 'upload', uploadId: attempt?.upload?.uploadId });
  });

  it('is taken back when the job fails, wherever its worker froze, and nobody else loses one', async () => {
    const places = await freezeEverywhere<World>({
      make: running,
      run: ({ worker, payload }, process) =>
        runAttempt(process.wrap(worker.deps(final), ['objects', 'attempts']), payload),
      meanwhile: (world) => fail(world),
      fate: 'thaws',
      check: async (world, where) => {
        expect(await uploads(world), where).toEqual([world.foreign]);
        expect((await world.jobs.load(world.worker.jobId))?.state, where).toBe('failed');
      },
    });
    for (const name of [
      'objects.beginUpload',
      'attempts.noteUpload',
      'objects.uploadPart',
      'attempts.commit',
    ])
      expect(places).toContain(`before ${name}`);
  });

  it('is taken back where its attempt was launched and ended while the job was failed, whatever stood between', async () => {
    const places = await freezeEverywhere<World>({
      make: running,
      run: (world, process) => fail(world, process),
      // What a scheduler does that has not heard of the end: a worker that is quick, and one that has begun.
      meanwhile: async ({ worker, payload }) => {
        const attemptId = attemptIdOf('work', 0, 1);
        await worker.attempts.create(worker.space, attemptId, worker.clock.now());
        await runAttempt(worker.deps(final), { ...payload, attemptId });
      },
      fate: 'thaws',
      check: async (world, where) => {
        expect(await uploads(world), where).toEqual([world.foreign]);
        expect((await world.jobs.load(world.worker.jobId))?.state, where).toBe('failed');
      },
    });
    for (const name of ['jobs.end', 'objects.remove', 'attempts.orderCancel', 'attempts.all'])
      expect(places).toContain(`before ${name}`);
  });

  it('is given up by an attempt that was told to stop before it could note it', async () => {
    const world = await running();
    const { attempts } = world.worker;
    const stopping = Object.assign(Object.create(attempts) as typeof attempts, {
      noteUpload: async (...args: Parameters<typeof attempts.noteUpload>) => {
        if (args[2].uploadId !== undefined) await attempts.orderCancel(world.worker.space, args[1]);
        return attempts.noteUpload(...args);
      },
    });
    const deps = world.worker.deps(final, { attempts: stopping });
    expect(await runAttempt(deps, world.payload)).toBe('cancelled');
    expect(await uploads(world)).toEqual([world.foreign]);
  });

  it('is not begun where it cannot be noted', async () => {
    const world = await running();
    const { attempts, clock } = world.worker;
    const tried = Promise.withResolvers<undefined>();
    const failing = Object.assign(Object.create(attempts) as typeof attempts, {
      noteUpload: () => {
        tried.resolve(undefined);
        return Promise.reject(new Error('no answer'));
      },
    });
    const ended = runAttempt(world.worker.deps(final, { attempts: failing }), world.payload);
    await tried.promise;
    await clock.advance(10_000);
    expect(await ended).toBe('failed');
    expect(await uploads(world)).toEqual([world.foreign]);
    expect((await world.worker.attempt(attemptIdOf('work', 0, 0)))?.failure).toEqual({
      cause: 'storage',
      message: 'the upload of the output could not be noted',
    });
  });
});
