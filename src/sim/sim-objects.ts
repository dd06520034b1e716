import { MemoryObjectStore } from '../adapters/memory/memory-object-store.ts';
import { attemptIdOf, type JobId } from '../contracts/ids.ts';
import { attemptDataKey, isAttemptData, type ObjectRef } from '../contracts/keys.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { type OutputCopy, outputCopy, type SimJob, type SimStage } from './sim-job.ts';

/** The output of a task, where it lies. */
export interface LyingOutput {
  readonly job: SimJob;
  readonly stage: SimStage;
  readonly task: number;
  readonly copy: OutputCopy;
}

/** Puts a copy of an output, under another attempt's number, on another machine. */
export type PlaceCopy = (output: LyingOutput, number: number) => void;

/** Objects of a run: outputs of tasks are where the simulated machines have them, without their bytes. */
export class SimObjects extends MemoryObjectStore {
  private readonly jobs: ReadonlyMap<JobId, SimJob>;
  private readonly place: PlaceCopy;

  constructor(jobs: ReadonlyMap<JobId, SimJob>, place: PlaceCopy) {
    super();
    this.jobs = jobs;
    this.place = place;
  }

  override head(ref: ObjectRef): ReturnType<ObjectStore['head']> {
    if (!isAttemptData(ref.key)) return super.head(ref);
    const found = this.find(ref.key);
    const sizeBytes = found?.stage.tasks[found.task]?.outputBytes;
    return Promise.resolve(
      sizeBytes === undefined ? undefined : { key: ref.key, sizeBytes, etag: '', metadata: {} },
    );
  }

  /** The copy is there at once. */
  override copy(from: Parameters<ObjectStore['copy']>[0], to: ObjectRef): ReturnType<ObjectStore['copy']> {
    if (!isAttemptData(from.key)) return super.copy(from, to);
    const found = this.find(from.key);
    if (found === undefined) return Promise.resolve('gone');
    this.place(found, Number(to.key.split('/').at(-1)));
    return Promise.resolve('copied');
  }

  /** An attempt's output; undefined where it is gone. */
  private find(key: string): LyingOutput | undefined {
    const [, jobId, , , stage = '', task, attempt] = key.split('/');
    const job = this.jobs.get(jobId as JobId);
    if (job === undefined) return undefined;
    const [index, number] = [Number(task), Number(attempt)];
    if (attemptDataKey(job.id, attemptIdOf(stage, index, number)) !== key) return undefined;
    const producer = job.stages.find(({ scenario }) => scenario.name === stage);
    const copy = producer && outputCopy(producer, index, number);
    if (producer === undefined || copy === undefined || copy.isGone) return undefined;
    return { job, stage: producer, task: index, copy };
  }
}
