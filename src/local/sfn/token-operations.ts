import * as z from 'zod';
import { MAX_PAYLOAD_BYTES } from './payload.ts';
import { parseInput, StatesError } from './states-error.ts';
import { executionOfToken, type TaskTokens } from './task-tokens.ts';

const taskToken = z.string().min(1).max(2_048);
const inputs = {
  SendTaskSuccess: z.object({ taskToken, output: z.string() }),
  SendTaskFailure: z.object({
    taskToken,
    error: z.string().max(256).optional(),
    cause: z.string().max(32_768).optional(),
  }),
  SendTaskHeartbeat: z.object({ taskToken }),
};
type TokenOperation = keyof typeof inputs;

export const isTokenOperation = (operation: string): operation is TokenOperation =>
  Object.hasOwn(inputs, operation);

/**
 * Answers a task's token, or gives a sign of life for it.
 *
 * @throws StatesError `InvalidToken` for what was never given out, `TaskTimedOut` where nobody waits for it any more.
 */
export function performOnToken(
  tokens: TaskTokens,
  operation: TokenOperation,
  input: unknown,
): Readonly<Record<string, never>> {
  switch (operation) {
    case 'SendTaskSuccess': {
      const { taskToken: token, output } = parseInput(inputs.SendTaskSuccess, input);
      const parsed = parseOutput(output);
      check(token, tokens.settle(token, { kind: 'succeeded', output: parsed }));
      break;
    }
    case 'SendTaskFailure': {
      const { taskToken: token, error = '', cause = '' } = parseInput(inputs.SendTaskFailure, input);
      check(token, tokens.settle(token, { kind: 'failed', failure: { error, cause } }));
      break;
    }
    case 'SendTaskHeartbeat': {
      const { taskToken: token } = parseInput(inputs.SendTaskHeartbeat, input);
      check(token, tokens.beat(token));
    }
  }
  return {};
}

function parseOutput(output: string): unknown {
  const invalid = (why: string): StatesError => new StatesError('InvalidOutput', `Invalid Output: '${why}'`);
  if (Buffer.byteLength(output) > MAX_PAYLOAD_BYTES) throw invalid('the output is too large');
  try {
    return JSON.parse(output);
  } catch (cause) {
    throw invalid(String(cause));
  }
}

function check(token: string, isKnown: boolean): void {
  if (isKnown) return;
  if (executionOfToken(token) === undefined)
    throw new StatesError('InvalidToken', "Invalid Token: 'Invalid token'");
  throw new StatesError('TaskTimedOut', "Task Timed Out: 'Provided task does not exist anymore'");
}
