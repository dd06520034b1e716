import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { exec } from '../../../src/operators/exec.ts';
import { runAttempt } from '../../../src/worker/run-attempt.ts';
import { expectNoProcessWith, processesWith } from '../../support/processes.ts';
import { putSource } from '../../support/worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from '../../support/worker-stage.ts';

const s3 = 's3://code/job.mjs';
/** Of the payloads of `WorkerOfTest`: the longest time between two reports. */
const reportMs = 1_000;

/** Begins an attempt over one line of text, and waits until its code has said something. */
async function begun(worker: WorkerOfTest, of: Pick<StageOfTest, 'run' | 'code' | 'options'>) {
  const segment = await putSource(worker.objects, { bucket: 'input', key: 'text' }, Buffer.from('x\n'));
  const stage: StageOfTest = {
    ...of,
    inputs: [
      { planned: { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' }, segments: [segment] },
    ],
  };
  const said = Promise.withResolvers<undefined>();
  const log = {
    info: (event: string): void => {
      if (event === 'user-output') said.resolve(undefined);
    },
    warn: (): void => undefined,
  };
  const payload = await worker.prepare(stage);
  const ended = runAttempt(worker.deps(stage, { log }), payload);
  await Promise.race([said.promise, ended]);
  return { ended, attemptId: payload.attemptId };
}

describe.runIf(process.platform === 'linux')('code that is told to stop and does not hear it', () => {
  const operator = (run: string): string => `export default { check() {}, async run(context) { ${run} } };`;
  const away = `(await import('node:child_process')).spawn(process.execPath, ['-e', 'for (;;);', 'MARK'], { detached: true, stdio: 'ignore' });`;

  it.each([
    ['in an endless loop', operator(`console.log('MARK'); for (;;);`)],
    [
      'in an endless loop of timers',
      operator(`console.log('x'); for (;;) await new Promise((go) => setTimeout(go, 1));`),
    ],
    ['while it loads', `console.error('MARK'); for (;;);`],
    ['with a child that left its group', operator(`${away} console.log('x'); for (;;);`)],
  ])('is gone within one report interval: %s', async (_, template) => {
    const worker = new WorkerOfTest();
    const mark = `stops-in-time-${String(process.pid)}-${String(template.length)}`;
    const source = template.replaceAll('MARK', mark);
    await worker.objects.write({ bucket: 'code', key: 'job.mjs' }, Buffer.from(source));
    const code = { s3, sha256: createHash('sha256').update(source).digest('hex') };
    const run = (): Promise<void> => Promise.reject(new Error('user code runs elsewhere'));
    const { ended, attemptId } = await begun(worker, { run, code });
    await worker.attempts.orderCancel(worker.space, attemptId);
    await worker.clock.advance(reportMs);
    // Its time stands still now: what has not stopped by itself or by force goes on for ever.
    await expectNoProcessWith(mark);
    expect(await ended).toBe('cancelled');
  });

  it.each([
    ['that spins', 'echo on >&2; while :; do :; done'],
    ['whose child spins in the background', '(while :; do :; done) & echo on >&2; wait'],
    [
      'whose child left its group',
      'setsid sh -c "while :; do :; done; : MARK" & echo on >&2; while :; do :; done',
    ],
    ['that ignores to be told', 'trap "" TERM INT HUP; echo on >&2; while :; do :; done'],
  ])('is gone within one report interval: a program %s', async (_, script) => {
    const worker = new WorkerOfTest();
    const mark = `stops-in-time-${String(process.pid)}-${String(script.length)}`;
    const command = ['sh', '-c', `${script.replaceAll('MARK', mark)}; : ${mark}`];
    const { ended, attemptId } = await begun(worker, {
      run: (context) => exec.run(context),
      options: { command },
    });
    expect(await processesWith(mark)).not.toEqual([]);
    await worker.attempts.orderCancel(worker.space, attemptId);
    await worker.clock.advance(reportMs);
    await expectNoProcessWith(mark);
    expect(await ended).toBe('cancelled');
  });
});
