import {
  DescribeExecutionCommand,
  type SFNClient,
  StartExecutionCommand,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import { type AccessDeniedError, StoreRefusedError, StoreUnavailableError } from '../../contracts/errors.ts';
import type { JobId } from '../../contracts/ids.ts';
import { endingOf } from '../../contracts/payloads.ts';
import type { Coordinator, ExecutionState } from '../../ports/coordinator.ts';
import { denialOf } from './denials.ts';
import { faultOf, refusalOf } from './faults.ts';

const LONGEST_CAUSE_CHARS = 1_000;

/** Executions of the job state machine, one per job and named as the job. */
export class SfnCoordinator implements Coordinator {
  private readonly client: SFNClient;
  private readonly stateMachineArn: string;

  constructor(client: SFNClient, stateMachineArn: string) {
    this.client = client;
    this.stateMachineArn = stateMachineArn;
  }

  /** Asks first: starting a running execution of the same name and input again is no error on AWS. */
  async start(jobId: JobId): Promise<'started' | 'exists'> {
    if ((await this.status(jobId)) !== 'missing') return 'exists';
    return this.startNamed(jobId, jobId);
  }

  async startEnding(jobId: JobId): Promise<void> {
    await this.startNamed(jobId, endingOf(jobId));
  }

  async stop(jobId: JobId, cause: string): Promise<void> {
    try {
      await this.client.send(
        new StopExecutionCommand({
          executionArn: this.executionArn(jobId),
          error: 'Stopped',
          cause: cause.slice(0, LONGEST_CAUSE_CHARS),
        }),
      );
    } catch (fault) {
      // An execution that has ended, or was never there, is as stopped as can be.
      if (faultOf(fault).name === 'ExecutionDoesNotExist') return;
      throw unavailable('stop', jobId, fault);
    }
  }

  async status(jobId: JobId): Promise<ExecutionState> {
    try {
      const { status } = await this.client.send(
        new DescribeExecutionCommand({ executionArn: this.executionArn(jobId) }),
      );
      return statusOf(status ?? 'RUNNING');
    } catch (cause) {
      if (faultOf(cause).name === 'ExecutionDoesNotExist') return 'missing';
      throw unavailable('describe', jobId, cause);
    }
  }

  private async startNamed(jobId: JobId, name: string): Promise<'started' | 'exists'> {
    try {
      await this.client.send(
        new StartExecutionCommand({
          stateMachineArn: this.stateMachineArn,
          name,
          input: JSON.stringify({ jobId }),
        }),
      );
      return 'started';
    } catch (cause) {
      if (faultOf(cause).name === 'ExecutionAlreadyExists') return 'exists';
      throw unavailable('start', jobId, cause);
    }
  }

  private executionArn(jobId: JobId): string {
    return `${this.stateMachineArn.replace(':stateMachine:', ':execution:')}:${jobId}`;
  }
}

function statusOf(status: string): ExecutionState {
  switch (status) {
    case 'SUCCEEDED':
      return 'succeeded';
    case 'FAILED':
    case 'TIMED_OUT':
      return 'failed';
    case 'ABORTED':
      return 'aborted';
    default:
      return 'running';
  }
}

const actionOf = new Map([
  ['start', 'states:StartExecution'],
  ['stop', 'states:StopExecution'],
  ['describe', 'states:DescribeExecution'],
]);

function unavailable(
  operation: string,
  jobId: JobId,
  cause: unknown,
): AccessDeniedError | StoreUnavailableError {
  const resource = `execution ${jobId}`;
  const denial = denialOf(cause, { action: actionOf.get(operation) ?? 'states:*', resource });
  if (denial !== undefined) return denial;
  const fault = faultOf(cause);
  const details = { jobId, fault: fault.name };
  const words = refusalOf(fault);
  // In the message and not in the details: it is all that whoever submits is told.
  return words === undefined
    ? new StoreUnavailableError(`${operation} of an execution failed`, details, { cause })
    : new StoreRefusedError(`${operation} of an execution was refused: ${words}`, details, { cause });
}
