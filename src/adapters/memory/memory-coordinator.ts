import type { JobId } from '../../contracts/ids.ts';
import type { Coordinator, ExecutionState } from '../../ports/coordinator.ts';

/** Executions in memory. Nothing runs by itself: the host drives the job and tells how it ended. */
export class MemoryCoordinator implements Coordinator {
  private readonly executions = new Map<JobId, Exclude<ExecutionState, 'missing'>>();
  private readonly stopCauses = new Map<JobId, string>();
  /** Jobs whose ending was started. */
  readonly endings = new Set<JobId>();
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

  startEnding(jobId: JobId): Promise<void> {
    if (!this.endings.has(jobId)) this.onStart(jobId);
    this.endings.add(jobId);
    return Promise.resolve();
  }

  stop(jobId: JobId, cause: string): Promise<void> {
    if (this.executions.get(jobId) === 'running') this.stopCauses.set(jobId, cause);
    this.settle(jobId, 'aborted');
    return Promise.resolve();
  }

  /** Why an execution was stopped, or undefined where it was not. */
  stopCause(jobId: JobId): string | undefined {
    return this.stopCauses.get(jobId);
  }

  status(jobId: JobId): Promise<ExecutionState> {
    return Promise.resolve(this.executions.get(jobId) ?? 'missing');
  }

  /** Tells how a running execution ended; no effect on others. */
  settle(jobId: JobId, state: Exclude<ExecutionState, 'running' | 'missing'>): void {
    if (this.executions.get(jobId) === 'running') this.executions.set(jobId, state);
  }
}
