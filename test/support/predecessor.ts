import { planJob } from '../../src/app/plan-job.ts';
import { submitJob } from '../../src/app/submit-job.ts';
import { type AttemptId, type JobId, taskOf } from '../../src/contracts/ids.ts';
import type { Decision } from '../../src/core/model/decision.ts';
import { attempt } from './job-states.ts';
import type { ScriptedSystem } from './scripted-job.ts';

/** A job of two maps, and a reduce stage of as many tasks as those have partitions. */
const wordsOf = (partitions: number) => ({
  name: 'words',
  policy: 'none' as const,
  stages: [
    {
      ...{ name: 'map', operator: 'tokenize' as const, partitions },
      inputs: [{ s3: ['s3://data/in/'], splitBytes: 1_000 }],
    },
    {
      ...{ name: 'reduce', operator: 'sum-counts' as const },
      inputs: [{ stage: 'map', pattern: 'all-to-all' as const }],
    },
  ],
});

/** The first launch of a task. */
export const launch = (id: string): Decision => ({
  ...{ kind: 'launch', attemptId: attempt(id), reason: 'first' },
});

/** The scheduler that had a job before: what it has decided, and what was done by then. */
export class Predecessor {
  readonly jobId: JobId;
  private readonly system: ScriptedSystem;
  private version = 0;

  private constructor(system: ScriptedSystem, jobId: JobId) {
    this.system = system;
    this.jobId = jobId;
  }

  /** Of a job of this spec, which was planned and nothing else; its input in the data bucket is `in/a`. */
  static async of(system: ScriptedSystem, spec: unknown, input: Buffer): Promise<Predecessor> {
    await system.objects.write({ bucket: 'data', key: 'in/a' }, input);
    const { jobId } = await submitJob(system, { spec });
    await planJob(system.deps, jobId);
    return new Predecessor(system, jobId);
  }

  /** Of a job of two maps and a reduce stage of so many tasks. */
  static ofWords(system: ScriptedSystem, partitions: number): Promise<Predecessor> {
    return Predecessor.of(system, wordsOf(partitions), Buffer.alloc(2_000, 'word\n'));
  }

  /** Decides now; answers what its entry has become. */
  async decide(...decisions: readonly Decision[]): Promise<string> {
    this.version += 1;
    const entry = { version: this.version, epoch: 1, at: this.system.clock.now(), decisions };
    return this.system.decisions.append(this.jobId, entry);
  }

  /** A worker commits its result, of ten bytes for each reader. */
  async commit(id: string, readers: number, replaces?: AttemptId): Promise<void> {
    const attemptId = attempt(id);
    const each = (value: number): number[] => Array.from({ length: readers }, () => value);
    await this.system.attempts.commit(
      { jobId: this.jobId, shards: 1 },
      {
        ...{ taskId: taskOf(attemptId), attemptId, committedAt: this.system.clock.now() },
        ...{ bytesIn: 1, bytesOut: 10 * readers, recordsIn: 2, recordsOut: 1, counters: {} },
        partitions: { lengths: each(10), crcs: each(1) },
      },
      undefined,
      replaces,
    );
  }
}
