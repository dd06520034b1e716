import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { durationMs } from '../../../src/contracts/units.ts';
import type { ObjectStore } from '../../../src/ports/object-store.ts';
import { runAttempt } from '../../../src/worker/run-attempt.ts';
import { putSource } from '../../support/worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from '../../support/worker-stage.ts';

const sha256 = createHash('sha256').update('x').digest('hex');
const file = { path: 'run.sh', s3: 's3://code/run.sh', sha256, executable: true };

const codes: Pick<StageOfTest, 'code' | 'options'> = { code: { s3: 's3://code/job.mjs', sha256 } };
const files: Pick<StageOfTest, 'code' | 'options'> = { options: { command: ['./run.sh'], files: [file] } };

it.each([
  ['the description of its stage', /stages\/.*\.json$/, {}],
  ['its line of a manifest', /\.ndjson$/, {}],
  ['its code', /job\.mjs$/, codes],
  ['the files of its stage', /run\.sh$/, files],
])(
  'an attempt that waits for %s from a store that refuses it for its rate hears an order',
  async (_, slow, of) => {
    const worker = new WorkerOfTest();
    const segment = await putSource(worker.objects, { bucket: 'input', key: 'text' }, Buffer.from('x\n'));
    const planned = { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const;
    const stage: StageOfTest = {
      ...of,
      run: () => Promise.resolve(),
      inputs: [{ planned, segments: [segment] }],
    };
    const asked = Promise.withResolvers<undefined>();
    // As a store whose patience is an hour.
    const readAll: ObjectStore['readAll'] = async (ref, range, signal) => {
      if (slow.test(ref.key)) {
        asked.resolve(undefined);
        await worker.clock.sleep(durationMs(3_600_000), signal);
        signal?.throwIfAborted();
      }
      return worker.objects.readAll(ref, range, signal);
    };
    const objects = Object.assign(Object.create(worker.objects) as ObjectStore, { readAll });
    const payload = await worker.prepare(stage);
    const place = { bucket: worker.dataBucket, key: payload.stageKey };
    const description = Buffer.from(await worker.objects.readAll(place)).toString();
    await worker.objects.write(place, Buffer.from(description.replace('"grep"', '"exec"')));
    const { program } = worker.deps(stage).userCode;
    const ended = runAttempt(worker.deps(stage, { objects, userCode: { objects, program } }), payload);
    await asked.promise;
    await worker.attempts.orderCancel(worker.space, payload.attemptId);
    await worker.clock.advance(1_000);
    // Its time stands still now: what has not ended goes on for ever.
    expect(await ended).toBe('cancelled');
  },
);
