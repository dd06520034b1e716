import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobId } from '../../src/contracts/ids.ts';
import type { JobStore } from '../../src/ports/job-store.ts';
import type { JournalStore } from '../../src/ports/journal-store.ts';
import type { PolicyName } from '../../src/contracts/policy-names.ts';
import type { LogEntry } from '../../src/contracts/records.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { listJournal } from '../../src/app/list-journal.ts';
import { OtherPolicy } from '../../src/core/replay/compare-policy.ts';
import { replayJob } from '../../src/app/replay-job.ts';
import { HardAccount } from '../support/hard-account.ts';
import { HardProcess, type Ill } from '../support/hard-process.ts';
import { storesInMemory } from '../support/record-stores.ts';

interface Drawn {
  readonly ills: Readonly<Record<string, readonly Ill[]>>;
  readonly policy: PolicyName;
  readonly taskMs: number;
  readonly tasks: number;
  readonly totalSlots: number;
}

const arbIll: fc.Arbitrary<Ill> = fc.record({
  kind: fc.constantFrom('freeze-before', 'freeze-after', 'dies', 'slow', 'lost', 'failed'),
  call: fc.integer({ min: 1, max: 50 }),
  ms: fc.constantFrom(6_000, 60_000),
});
const arbDrawn: fc.Arbitrary<Drawn> = fc.record({
  ills: fc.dictionary(
    fc.constantFrom('scheduler 1', 'scheduler 2', 'tokenize/0/0 1', 'tokenize/3/0 1', 'count/0/0 1'),
    fc.array(arbIll, { minLength: 1, maxLength: 2 }).map((ills) => ills.toSorted((a, b) => a.call - b.call)),
    { maxKeys: 3 },
  ),
  policy: fc.constantFrom('none', 'late', 'mantri', 'dolly', 'outrider', 'hadoop'),
  taskMs: fc.constantFrom(500, 5_000, 40_000),
  tasks: fc.integer({ min: 1, max: 12 }),
  totalSlots: fc.constantFrom(2, 8, 30),
});

/** Its only worker is told that it may not claim, and whoever takes the job over finds that launch to be repeated. */
const takenOver: Drawn = {
  ills: { 'tokenize/0/0 1': [{ kind: 'failed', call: 1, ms: 6_000 }] },
  policy: 'none',
  taskMs: 500,
  tasks: 1,
  totalSlots: 2,
};

interface Logged {
  readonly kind: string;
  readonly attemptId?: string;
  readonly reason?: string;
}

const copyReasons = ['backup', 'restart', 'clone'];

interface Recorded {
  readonly jobId: JobId;
  readonly jobs: JobStore;
  readonly journals: JournalStore;
  readonly log: readonly LogEntry[];
}

/** Runs a job under its ills; answers its journal and the entries of its decision log. */
async function recorded(drawn: Drawn): Promise<Recorded> {
  const stores = storesInMemory();
  const { journals, decisions } = stores;
  if (journals === undefined) throw new Error('no journals');
  const log: LogEntry[] = [];
  let found: JobId | undefined;
  await HardAccount.use(
    {
      stores,
      taskMs: drawn.taskMs,
      totalSlots: drawn.totalSlots,
      deathToldMs: 500,
      process: (name, clock) => new HardProcess(clock, drawn.ills[name] ?? []),
    },
    async (account) => {
      const line = 'one two three\n';
      await account.objects.write({ bucket: 'input', key: 'a' }, Buffer.from(line.repeat(drawn.tasks)));
      const spec = builtinJob('wordcount', {
        inputs: ['s3://input/a'],
        splitBytes: line.length,
        partitions: 2,
      });
      return account.run({ ...spec, policy: drawn.policy });
    },
    async (_account, jobId) => {
      found = jobId;
      for await (const entry of decisions.read(jobId)) log.push(entry);
    },
  );
  if (found === undefined) throw new Error('the job vanished');
  return { jobId: found, jobs: stores.jobs, journals, log };
}

describe('the journal of a job', () => {
  it('gives the same decisions again, byte for byte, whoever of its schedulers froze or died', async () => {
    await fc.assert(
      fc.asyncProperty(arbDrawn, async (drawn) => {
        const { jobId, jobs, journals, log } = await recorded(drawn);
        const none = new OtherPolicy('none');
        const report = await replayJob(
          (cursor) => listJournal({ jobs, journals }, jobId, { cursor }),
          none.onTick,
        );
        const { would, wouldNot } = none.comparison();
        const isCopy = ({ reason }: { readonly reason: string }): boolean => copyReasons.includes(reason);
        expect(would.filter(isCopy)).toEqual([]);
        if (drawn.policy === 'none') expect([would, wouldNot]).toEqual([[], []]);
        expect(report.firstDifference).toBeUndefined();
        expect(report.reproduced).toBe(report.ticks);
        expect(report.ticks).toBeGreaterThan(0);
        expect(report.jobId).toBe(jobId);
        // A scheduler that died or was lied to does not know of all that it has logged.
        if (Object.keys(drawn.ills).some((name) => name.startsWith('scheduler'))) return;
        expect(report.sessions.map(({ end }) => end)).toEqual(report.sessions.map(() => 'left'));
        expect(report.unseen).toEqual([]);
        // A scheduler's first entry repeats what the last one decided: no tick has come to it.
        const decided = log
          .filter(({ epoch }, entry) => entry > 0 && epoch === log[entry - 1]?.epoch)
          .flatMap(({ decisions }) => decisions as readonly Logged[]);
        const copied = decided.filter(({ reason }) => copyReasons.includes(reason ?? ''));
        const tasks = (all: readonly { readonly attemptId?: string }[]): string[] =>
          [...new Set(all.map(({ attemptId = '' }) => attemptId.replace(/\d+$/, '')))].toSorted();
        expect(tasks(wouldNot.filter(isCopy))).toEqual(tasks(copied));
        expect(report.decisions).toBe(decided.filter(({ kind }) => kind !== 'refuse').length);
      }),
      { numRuns: 12, examples: [[takenOver]] },
    );
  }, 300_000);
});
