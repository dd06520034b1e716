import {
  SendTaskFailureCommand,
  SendTaskHeartbeatCommand,
  SendTaskSuccessCommand,
  type SFNClient,
} from '@aws-sdk/client-sfn';
import { StoreUnavailableError } from '../../contracts/errors.ts';
import type { AnswerOutcome, TaskAnswers } from '../../ports/task-answers.ts';
import { denialOf } from './denials.ts';
import { faultOf } from './faults.ts';

const MAX_ERROR_CHARS = 256;
const MAX_CAUSE_CHARS = 32_768;
/** Of a task that was answered, has timed out, or whose execution has ended; and of what is no token of ours. */
const goneFaults = new Set(['TaskTimedOut', 'TaskDoesNotExist', 'InvalidToken']);

/** Answers to tasks of Step Functions that wait for their tokens. */
export class SfnTaskAnswers implements TaskAnswers {
  private readonly client: SFNClient;

  constructor(client: SFNClient) {
    this.client = client;
  }

  succeed(token: string, output: unknown): Promise<AnswerOutcome> {
    const command = new SendTaskSuccessCommand({ taskToken: token, output: JSON.stringify(output) });
    return send('SendTaskSuccess', () => this.client.send(command));
  }

  fail(
    token: string,
    { error, cause }: { readonly error: string; readonly cause: string },
  ): Promise<AnswerOutcome> {
    const command = new SendTaskFailureCommand({
      taskToken: token,
      error: error.slice(0, MAX_ERROR_CHARS),
      cause: cause.slice(0, MAX_CAUSE_CHARS),
    });
    return send('SendTaskFailure', () => this.client.send(command));
  }

  beat(token: string): Promise<AnswerOutcome> {
    const command = new SendTaskHeartbeatCommand({ taskToken: token });
    return send('SendTaskHeartbeat', () => this.client.send(command));
  }
}

async function send(operation: string, call: () => Promise<unknown>): Promise<AnswerOutcome> {
  try {
    await call();
    return 'answered';
  } catch (cause) {
    const { name } = faultOf(cause);
    if (goneFaults.has(name)) return 'gone';
    throw (
      denialOf(cause, { action: `states:${operation}`, resource: 'a task of the state machine' }) ??
      new StoreUnavailableError(`${operation} failed`, { fault: name }, { cause })
    );
  }
}
