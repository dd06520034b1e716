import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { Coordinator } from '../../../src/ports/coordinator.ts';
import { freshJobId } from './builders.ts';

/** A coordinator and what its executions wait for. */
export interface CoordinatorHost {
  readonly coordinator: Coordinator;
  /** Ids of the jobs whose executions have begun, once each of their beginnings. */
  readonly begun: () => readonly JobId[];
  /** Lets the job's execution come to this end; resolves once it has. */
  readonly finish: (jobId: JobId, end: 'succeeded' | 'failed') => Promise<void>;
}

/** What every coordinator must do. */
export function describeCoordinator(name: string, make: () => Promise<CoordinatorHost>): void {
  describe(`${name} as a coordinator`, () => {
    it('knows nothing of a job that was never started, and stopping it is no error', async () => {
      const { coordinator } = await make();
      const jobId = freshJobId();
      expect(await coordinator.status(jobId)).toBe('missing');
      await coordinator.stop(jobId, 'not wanted');
      expect(await coordinator.status(jobId)).toBe('missing');
    });

    it('starts a job once, while it runs and after it has ended', async () => {
      const { coordinator, begun, finish } = await make();
      const jobId = freshJobId();
      expect(await coordinator.start(jobId)).toBe('started');
      expect(await coordinator.status(jobId)).toBe('running');
      expect(await coordinator.start(jobId)).toBe('exists');
      await finish(jobId, 'succeeded');
      expect(await coordinator.status(jobId)).toBe('succeeded');
      expect(await coordinator.start(jobId)).toBe('exists');
      expect(begun()).toEqual([jobId]);
    });

    it('begins one execution for twenty racing starts', async () => {
      const { coordinator, begun, finish } = await make();
      const jobId = freshJobId();
      const answers = await Promise.all(Array.from({ length: 20 }, () => coordinator.start(jobId)));
      expect(answers).toContain('started');
      await finish(jobId, 'succeeded');
      expect(begun()).toEqual([jobId]);
    });

    it('starts the ending of a job once, beside its own execution', async () => {
      const { coordinator, begun, finish } = await make();
      const jobId = freshJobId();
      await coordinator.start(jobId);
      await finish(jobId, 'failed');
      await coordinator.startEnding(jobId);
      await coordinator.startEnding(jobId);
      expect(await coordinator.status(jobId)).toBe('failed');
      expect(begun()).toEqual([jobId, jobId]);
    });

    it('tells that a job failed', async () => {
      const { coordinator, finish } = await make();
      const jobId = freshJobId();
      await coordinator.start(jobId);
      await finish(jobId, 'failed');
      expect(await coordinator.status(jobId)).toBe('failed');
    });

    it('stops a running job for good, and only that one', async () => {
      const { coordinator, finish } = await make();
      const [one, other] = [freshJobId(), freshJobId()];
      await coordinator.start(one);
      await coordinator.start(other);
      await coordinator.stop(one, 'cancelled');
      await coordinator.stop(one, 'cancelled again');
      expect(await coordinator.status(one)).toBe('aborted');
      expect(await coordinator.status(other)).toBe('running');
      await finish(other, 'succeeded');
      await coordinator.stop(other, 'too late');
      expect(await coordinator.status(other)).toBe('succeeded');
    });
  });
}
