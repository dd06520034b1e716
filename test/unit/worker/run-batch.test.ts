import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { AttemptPayload } from '../../../src/contracts/payloads.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import { runBatch } from '../../../src/worker/run-batch.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

/** Workers that one call has started, with the attempts that it was made for. */
class BatchOfTest {
  readonly worker = new WorkerOfTest();
  readonly ran: number[] = [];
  private readonly stage = {
    run: (context: TaskContext) => {
      this.ran.push(context.task);
      return Promise.resolve();
    },
  };

  async payload(tasks: number): Promise<AttemptPayload> {
    const [first, ...batch] = await Promise.all(
      Array.from({ length: tasks }, (_, task) => this.worker.prepare(this.stage, 0, task)),
    );
    if (first === undefined) throw new Error('a batch has a first attempt');
    return { ...first, batch: batch.map(({ attemptId, inputs }) => ({ attemptId, inputs })) };
  }

  run(payload: AttemptPayload, invocation: string, stopSignal?: AbortSignal) {
    const more = stopSignal === undefined ? {} : { stopSignal };
    return runBatch(this.worker.deps(this.stage, { invocation, ...more }), payload);
  }

  async owners(): Promise<readonly string[]> {
    const { attempts } = await this.worker.attempts.all(this.worker.space);
    return attempts
      .toSorted((a, b) => (a.attemptId < b.attemptId ? -1 : 1))
      .map(({ state, invocation = 'nobody' }) => `${state} by ${invocation}`);
  }
}

describe('workers of one launch', () => {
  it('run one attempt each, and no attempt twice, whoever comes first', async () => {
    const batch = new BatchOfTest();
    const payload = await batch.payload(4);
    const outcomes = await Promise.all(['a', 'b', 'c', 'd'].map((name) => batch.run(payload, name)));
    expect(outcomes).toEqual([['done'], ['done'], ['done'], ['done']]);
    expect(batch.ran.toSorted()).toEqual([0, 1, 2, 3]);
    expect(new Set(await batch.owners()).size).toBe(4);
  });

  it('leave the last attempts where they are fewer', async () => {
    const batch = new BatchOfTest();
    const payload = await batch.payload(3);
    await Promise.all(['a', 'b'].map((name) => batch.run(payload, name)));
    expect(await batch.owners()).toEqual([
      expect.stringMatching(/^done by [ab]$/),
      expect.stringMatching(/^done by [ab]$/),
      'launched by nobody',
    ]);
  });

  it('end at once where others have all, and pass over what was taken back', async () => {
    const batch = new BatchOfTest();
    const payload = await batch.payload(3);
    const { attempts, space, clock } = batch.worker;
    await attempts.claim(space, attemptIdOf('work', 0, 0), { node: 'n', zone: 'z' }, clock.now());
    await attempts.orderCancel(space, attemptIdOf('work', 1, 0));
    expect(await batch.run(payload, 'a')).toEqual(['done']);
    expect(await batch.run(payload, 'b')).toEqual(['refused']);
    expect(batch.ran).toEqual([2]);
  });

  it('take nothing more from others once they are to stop', async () => {
    const batch = new BatchOfTest();
    const payload = await batch.payload(2);
    await batch.run(payload, 'a');
    expect(await batch.run(payload, 'b', AbortSignal.abort())).toEqual(['refused']);
    expect(await batch.owners()).toEqual(['done by a', 'launched by nobody']);
  });
});
