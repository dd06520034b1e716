import { MemoryObjectStore } from '../adapters/memory/memory-object-store.ts';
import { attemptIdOf, type JobId } from '../contracts/ids.ts';
import { attemptDataKey, isAttemptData, type ObjectRef } from '../contracts/keys.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { outputCopy, type SimJob } from './sim-job.ts';

/** Objects of a run: outputs of tasks are where the simulated machines have them, without their bytes. */
export class SimObjects extends MemoryObjectStore {
  private readonly jobs: ReadonlyMap<JobId, SimJob>;

  constructor(jobs: ReadonlyMap<JobId, SimJob>) {
    super();
    this.jobs = jobs;
  }

  override head(ref: ObjectRef): ReturnType<ObjectStore['head']> {
    if (!isAttemptData(ref.key)) return super.head(ref);
    const sizeBytes = this.bytesOf(ref.key);
    return Promise.resolve(
      sizeBytes === undefined ? undefined : { key: ref.key, sizeBytes, etag: '', metadata: {} },
    );
  }

  /** Bytes of an attempt's output; undefined where it is gone. */
  private bytesOf(key: string): number | undefined {
    const [, jobId, , , stage = '', task, attempt] = key.split('/');
    const job = this.jobs.get(jobId as JobId);
    if (job === undefined) return undefined;
    const [index, number] = [Number(task), Number(attempt)];
    if (attemptDataKey(job.id, attemptIdOf(stage, index, number)) !== key) return undefined;
    const producer = job.stages.find(({ scenario }) => scenario.name === stage);
    const copy = producer && outputCopy(producer, index, number);
    return copy === undefined || copy.isGone ? undefined : producer?.tasks[index]?.outputBytes;
  }
}
