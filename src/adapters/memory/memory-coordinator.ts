import type { JobId } from '../../contracts/ids.ts';
import type { Coordinator } from '../../ports/coordinator.ts';

type ExecutionState = 'running' | 'succeeded' | 'failed' | 'aborted';

/** Executions in memory. Nothing runs by itself: the host drives the job and tells how it ended. */
export class MemoryCoordinator implements Coordinator {
  private readonly executions = new Map<JobId, ExecutionState>();
  private readonly onStart: (jobId: JobId) => void;

  /** @param onStart - called once for each execution that is started. */
  constructor(onStart: (jobId: JobId) => void = () => undefined) {
    this.onStart = onStart;
  }

  start(jobId: JobId): Promise<'started' | 'exists'> {
    if (this.executions.has(jobId)) return Promise.resolve('exists');
    this.executions.set(jobId, 'running');
    this.onStart(jobId);
    return Promise.resolve('started');
  }

  // The cause is for people who look at the execution; nobody does here.
  stop(jobId: JobId, _cause: string): Promise<void> {
    this.settle(jobId, 'aborted');
    return Promise.resolve();
  }

  status(jobId: JobId): Promise<ExecutionState | 'missing'> {
    return Promise.resolve(this.executions.get(jobId) ?? 'missing');
  }

  /** Tells how a running execution ended; no effect on others. */
  settle(jobId: JobId, state: Exclude<ExecutionState, 'running'>): void {
    if (this.executions.get(jobId) === 'running') this.executions.set(jobId, state);
  }
}
