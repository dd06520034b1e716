import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import type { JobPatch, JobStore } from '../../../src/ports/job-store.ts';
import { at, freshJobId, jobRecord, tally } from './builders.ts';

/** What every job store must do. `make` gives a store that holds no jobs. */
export function describeJobStore(name: string, make: () => JobStore | Promise<JobStore>): void {
  describe(`${name} as a job store`, () => {
    it('gives back every field of a job', async () => {
      const store = await make();
      const job = jobRecord(freshJobId(), {
        state: 'failed',
        startedAt: at(1),
        endedAt: at(9),
        deadlineAt: at(600),
        cancelRequestedAt: at(5),
        shards: 8,
        planNonce: 'ab12',
        publishingAt: at(8),
        error: { name: 'JobFailed', message: 'no' },
        stages: [
          {
            name: 'map',
            operator: 'tokenize',
            tasks: 3,
            done: 1,
            running: 1,
            failed: 1,
            bytesIn: 10,
            bytesOut: 20,
            recordsIn: 1,
            recordsOut: 2,
            startedAt: at(2),
            endedAt: at(3),
            workerMs: 7,
            progress: 0.5,
          },
        ],
        attempts: {
          launched: 4,
          backups: 0,
          clones: 0,
          restarts: 1,
          cancelled: 0,
          lost: 1,
          declined: 0,
          recomputed: 0,
        },
        counters: { skippedRecords: 2 },
        workerMs: 1234,
        dollars: 0.000123,
        parts: [{ key: 'out/part-00000', sizeBytes: 5 }],
      });
      expect(await store.create(job)).toEqual({ kind: 'created' });
      expect(await store.load(job.jobId)).toEqual(job);
    });

    it('knows nothing of a job that was never created', async () => {
      const store = await make();
      expect(await store.load(freshJobId())).toBeUndefined();
    });

    it('lets exactly one of twenty creators of one id create it, and shows the others that job', async () => {
      const store = await make();
      const jobId = freshJobId();
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, rival) => store.create(jobRecord(jobId, { workerMs: rival }))),
      );
      expect(tally(answers.map(({ kind }) => kind))).toEqual({ created: 1, exists: 19 });
      const stored = await store.load(jobId);
      for (const answer of answers) if (answer.kind === 'exists') expect(answer.job).toEqual(stored);
    });

    it('updates a job in an expected state, and leaves it alone in any other', async () => {
      const store = await make();
      const job = jobRecord(freshJobId());
      await store.create(job);
      expect(await store.update(job.jobId, ['submitted'], { state: 'running', startedAt: at(3) })).toBe(
        'updated',
      );
      expect(await store.update(job.jobId, ['submitted'], { state: 'cancelled' })).toBe('stale');
      expect(await store.update(job.jobId, ['submitted', 'running'], { shards: 4 })).toBe('updated');
      expect(await store.load(job.jobId)).toEqual({ ...job, state: 'running', startedAt: at(3), shards: 4 });
    });

    it('tells a job whose output is all there from one that may still fail', async () => {
      const store = await make();
      const job = jobRecord(freshJobId(), { state: 'running' });
      await store.create(job);
      const unless = { unlessPublishing: true };
      expect(await store.update(job.jobId, ['running'], { workerMs: 1 }, unless)).toBe('updated');
      expect(await store.update(job.jobId, ['running'], { publishingAt: at(4) })).toBe('updated');
      expect(await store.update(job.jobId, ['running'], { state: 'failed' }, unless)).toBe('stale');
      expect(await store.load(job.jobId)).toMatchObject({ state: 'running', publishingAt: at(4) });
      expect(await store.update(job.jobId, ['running'], { state: 'succeeded' })).toBe('updated');
    });

    it('takes no word of a scheduler once a later one has written, and of all others as ever', async () => {
      const store = await make();
      const job = jobRecord(freshJobId(), { state: 'running' });
      await store.create(job);
      const tell = (workerMs: number, epoch?: number): Promise<'updated' | 'stale'> =>
        store.update(job.jobId, ['running'], { workerMs }, epoch === undefined ? {} : { epoch });
      expect(await tell(1, 3)).toBe('updated');
      expect(await tell(2, 3)).toBe('updated');
      expect(await tell(3, 4)).toBe('updated');
      expect(await tell(4, 3)).toBe('stale');
      expect(await store.load(job.jobId)).toEqual({ ...job, workerMs: 3 });
      expect(await tell(5)).toBe('updated');
      expect(await tell(6, 4)).toBe('updated');
      expect(await store.load(job.jobId)).toEqual({ ...job, workerMs: 6 });
    });

    it('does not update a job that is not there, nor from no state', async () => {
      const store = await make();
      const jobId = freshJobId();
      expect(await store.update(jobId, ['submitted'], { state: 'running' })).toBe('stale');
      expect(await store.load(jobId)).toBeUndefined();
      await store.create(jobRecord(jobId));
      expect(await store.update(jobId, [], { state: 'running' })).toBe('stale');
    });

    it('lets one of twenty racing state changes through', async () => {
      const store = await make();
      const job = jobRecord(freshJobId());
      await store.create(job);
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => store.update(job.jobId, ['submitted'], { state: 'running' })),
      );
      expect(tally(answers)).toEqual({ updated: 1, stale: 19 });
    });

    it('sets a deadline, takes it away, also where there is none, and touches no other field', async () => {
      const store = await make();
      const job = jobRecord(freshJobId());
      await store.create(job);
      const set = (patch: JobPatch) => store.update(job.jobId, ['submitted'], patch);
      expect(await set({ deadlineAt: at(60) })).toBe('updated');
      expect(await store.load(job.jobId)).toEqual({ ...job, deadlineAt: at(60) });
      expect(await set({ cancelRequestedAt: at(5) })).toBe('updated');
      expect(await store.load(job.jobId)).toEqual({ ...job, deadlineAt: at(60), cancelRequestedAt: at(5) });
      for (let times = 0; times < 2; times++) {
        expect(await set({ deadlineAt: undefined })).toBe('updated');
        expect(await store.load(job.jobId)).toStrictEqual({ ...job, cancelRequestedAt: at(5) });
      }
      expect(await store.update(job.jobId, ['running'], { deadlineAt: at(9) })).toBe('stale');
    });

    it('keeps a job of 10,000 output parts and of a long spec', async () => {
      const store = await make();
      const parts = Array.from({ length: 10_000 }, (_, index) => ({
        key: `output/job/part-${String(index).padStart(5, '0')}`,
        sizeBytes: (index * 7_919) % 1_000_003,
      }));
      const job = jobRecord(freshJobId(), { parts });
      await store.create(job);
      expect((await store.load(job.jobId))?.parts).toEqual(parts);
    });

    it('holds a token for the job that claimed it first, until its record is gone or its time is up', async () => {
      const store = await make();
      const token = freshJobId();
      const [first, second, third] = [freshJobId(), freshJobId(), freshJobId()];
      const monthS = 30 * 24 * 3_600;
      expect(await store.jobOfToken(token)).toBeUndefined();
      expect(await store.claimToken(token, { jobId: first, now: at(0) })).toBe(first);
      expect(await store.jobOfToken(token)).toBe(first);
      expect(await store.claimToken(token, { jobId: second, now: at(monthS - 1) })).toBe(first);
      expect(await store.claimToken(token, { jobId: second, now: at(1), forgotten: third })).toBe(first);
      expect(await store.claimToken(token, { jobId: second, now: at(2), forgotten: first })).toBe(second);
      expect(await store.jobOfToken(token)).toBe(second);
      expect(await store.claimToken(token, { jobId: third, now: at(3), forgotten: first })).toBe(second);
      expect(await store.claimToken(token, { jobId: third, now: at(monthS + 2) })).toBe(third);
      expect(await store.claimToken(freshJobId(), { jobId: first, now: at(0) })).toBe(first);
    });

    it.each([undefined, freshJobId()])(
      'lets one of twenty racing claims hold for all, where %s held it before',
      async (forgotten) => {
        const store = await make();
        const token = freshJobId();
        if (forgotten !== undefined) await store.claimToken(token, { jobId: forgotten, now: at(0) });
        const rivals = Array.from({ length: 20 }, () => freshJobId());
        const claims = rivals.map((jobId) => ({
          jobId,
          now: at(1),
          ...(forgotten === undefined ? {} : { forgotten }),
        }));
        const answers = await Promise.all(claims.map((claim) => store.claimToken(token, claim)));
        expect(new Set(answers).size).toBe(1);
        expect(rivals).toContain(answers[0]);
      },
    );

    it('keeps the claims of a bucket, and lets one of twenty that change them at once through', async () => {
      const store = await make();
      const bucket = `results-${freshJobId()}`;
      const claim = (rival: number) => ({
        jobId: freshJobId(),
        prefix: `a/ä ${rival}#/`,
        claimedAt: at(rival),
        isPlanned: rival % 2 === 0,
      });
      expect(await store.loadClaims(bucket)).toEqual({ claims: [], version: 0 });
      const first = [claim(0), claim(1)];
      expect(await store.saveClaims(bucket, first, 0)).toBe('saved');
      expect(await store.loadClaims(bucket)).toEqual({ claims: first, version: 1 });
      expect(await store.saveClaims(bucket, [], 0)).toBe('stale');
      const rivals = Array.from({ length: 20 }, (_, rival) => [claim(rival)]);
      const answers = await Promise.all(rivals.map((claims) => store.saveClaims(bucket, claims, 1)));
      expect(tally(answers)).toEqual({ saved: 1, stale: 19 });
      const winner = rivals[answers.indexOf('saved')];
      expect(await store.loadClaims(bucket)).toEqual({ claims: winner, version: 2 });
      expect(await store.loadClaims(`other-${bucket}`)).toEqual({ claims: [], version: 0 });
    });

    it('keeps a thousand claims', async () => {
      const store = await make();
      const bucket = `results-${freshJobId()}`;
      const claims = Array.from({ length: 1_000 }, (_, index) => ({
        jobId: freshJobId(),
        prefix: `teams/${index % 7}/reports/of/the/year/2026/number/${index}/`,
        claimedAt: at(index),
        isPlanned: true,
      }));
      expect(await store.saveClaims(bucket, claims, 0)).toBe('saved');
      expect((await store.loadClaims(bucket)).claims).toEqual(claims);
    });

    it('lists newest first, page by page, each job once', async () => {
      const store = await make();
      const ids = Array.from({ length: 5 }, () => freshJobId());
      for (const [index, jobId] of ids.entries())
        await store.create(jobRecord(jobId, { createdAt: at(index) }));
      const seen: string[] = [];
      let cursor: string | undefined;
      for (let pages = 0; pages < 10; pages++) {
        const page = await store.list(cursor === undefined ? { limit: 2 } : { limit: 2, cursor });
        expect(page.jobs.length).toBeLessThanOrEqual(2);
        seen.push(...page.jobs.map(({ jobId }) => jobId));
        cursor = page.cursor;
        if (cursor === undefined) break;
      }
      expect(seen).toEqual(ids.toReversed());
    });

    it('lists nothing where there is nothing', async () => {
      const store = await make();
      expect(await store.list({ limit: 10 })).toEqual({ jobs: [] });
    });

    it.each(['', 'x', '%%%', 'e30', 'MTIz'])('refuses the strange cursor %j', async (cursor) => {
      const store = await make();
      await expect(store.list({ limit: 2, cursor })).rejects.toBeInstanceOf(InvalidInputError);
    });
  });
}
