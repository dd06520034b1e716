import { describe, expect, it } from 'vitest';
import type { LogEntry } from '../../../src/contracts/records.ts';
import type { DecisionLog } from '../../../src/ports/job-store.ts';
import { at, collect, freshJobId, tally } from './builders.ts';

const entry = (version: number, epoch: number, decisions: readonly unknown[] = []): LogEntry => ({
  version,
  epoch,
  at: at(version),
  decisions,
});

/** What every decision log must do. */
export function describeDecisionLog(name: string, make: () => DecisionLog | Promise<DecisionLog>): void {
  describe(`${name} as a decision log`, () => {
    it('gives entries back whole, in order of version, past the tenth', async () => {
      const log = await make();
      const jobId = freshJobId();
      const entries = Array.from({ length: 12 }, (_, index) =>
        entry(index + 1, 1, [{ kind: 'launch', attemptId: `map/${index}/0`, reason: 'first' }]),
      );
      for (const one of entries) expect(await log.append(jobId, one)).toBe('appended');
      expect(await collect(log.read(jobId))).toEqual(entries);
    });

    it('is empty before the first entry', async () => {
      const log = await make();
      expect(await collect(log.read(freshJobId()))).toEqual([]);
    });

    it('keeps a tick of 500 decisions with their reasons', async () => {
      const log = await make();
      const jobId = freshJobId();
      const decisions = Array.from({ length: 500 }, (_, index) => ({
        kind: 'refuse',
        attemptId: `a-long-name-of-a-stage/${index}/0`,
        reason: 'no-slots',
        free: index,
        remainingMs: index * 7,
      }));
      await log.append(jobId, entry(1, 1, decisions));
      expect(await collect(log.read(jobId))).toEqual([entry(1, 1, decisions)]);
    });

    it('refuses a version that another writer appended, and keeps the first entry', async () => {
      const log = await make();
      const jobId = freshJobId();
      expect(await log.append(jobId, entry(1, 1, ['a']))).toBe('appended');
      expect(await log.append(jobId, entry(1, 2, ['a']))).toBe('stale');
      expect(await log.append(jobId, entry(1, 1, ['b']))).toBe('stale');
      expect(await collect(log.read(jobId))).toEqual([entry(1, 1, ['a'])]);
    });

    it('takes the very same entry again, so that a lost answer does no harm', async () => {
      const log = await make();
      const jobId = freshJobId();
      await log.append(jobId, entry(1, 3, ['a']));
      expect(await log.append(jobId, entry(1, 3, ['a']))).toBe('appended');
      expect(await collect(log.read(jobId))).toEqual([entry(1, 3, ['a'])]);
    });

    it('lets one of two writers of each version through', async () => {
      const log = await make();
      const jobId = freshJobId();
      for (let version = 1; version <= 10; version++) {
        const answers = await Promise.all([1, 2].map((epoch) => log.append(jobId, entry(version, epoch))));
        expect(tally(answers)).toEqual({ appended: 1, stale: 1 });
      }
      expect((await collect(log.read(jobId))).map(({ version }) => version)).toEqual([
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
      ]);
    });

    it('keeps the logs of two jobs apart', async () => {
      const log = await make();
      const [one, other] = [freshJobId(), freshJobId()];
      await log.append(one, entry(1, 1, ['one']));
      expect(await log.append(other, entry(1, 1, ['other']))).toBe('appended');
      expect(await collect(log.read(one))).toEqual([entry(1, 1, ['one'])]);
    });
  });
}
