import { describe, expect, it } from 'vitest';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import { loadAttemptPlan } from '../../../src/worker/attempt-plan.ts';
import { latin1, putSource } from '../../support/worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from '../../support/worker-stage.ts';

/** A worker and what it is launched with: a stage that reads one source. */
async function prepared(): Promise<{ worker: WorkerOfTest; payload: AttemptPayload }> {
  const worker = new WorkerOfTest();
  const stage: StageOfTest = {
    run: () => Promise.resolve(),
    inputs: [
      {
        planned: { kind: 'source', format: 'text', header: false, onBadRecord: 'fail' },
        segments: [await putSource(worker.objects, { bucket: 'in', key: 'text' }, latin1('a\nb\n'))],
      },
    ],
  };
  return { worker, payload: await worker.prepare(stage, 0) };
}

describe('what an attempt reads before it begins', () => {
  it.each([
    ['no object', '[1]', /^(jobs\/.*\.json) is not the description of a stage$/],
    ['another object', '{"name":7}', /^(jobs\/.*\.json) is not the description of a stage, \w+ being wrong$/],
    ['no JSON', '{"na', /^(jobs\/.*\.json) is not JSON$/],
  ])('is named where the description of its stage is %s', async (_what, text, message) => {
    const { worker, payload } = await prepared();
    await worker.objects.write({ bucket: worker.dataBucket, key: payload.stageKey }, latin1(text));
    const loading = loadAttemptPlan(worker.objects, worker.dataBucket, payload);
    await expect(loading).rejects.toMatchObject({
      name: 'BrokenInvariant',
      message: expect.stringMatching(message),
    });
  });

  it('is named where its list of pieces is another, or gone', async () => {
    const { worker, payload } = await prepared();
    const [list] = payload.inputs;
    const place = { bucket: worker.dataBucket, key: list?.key ?? '' };
    const line = '{"segments":[{"start":-1}]}';
    await worker.objects.write(place, latin1(line.padStart(list?.end ?? 0)));
    const loading = (): Promise<unknown> => loadAttemptPlan(worker.objects, worker.dataBucket, payload);
    await expect(loading()).rejects.toThrow(
      `${place.key} is not a list of what tasks read, segments.0.bucket being wrong`,
    );
    await worker.objects.remove(place.bucket, [place.key]);
    await expect(loading()).rejects.toThrow(`there is no object s3://${place.bucket}/${place.key}`);
  });
});
