import type { StateMachineDefinition } from 'aws-local-stepfunctions';
import type { ExecutionRecord } from './execution-log.ts';
import type { Failure, HistoryEvent } from './history.ts';

/** Where an execution goes on whose server went away. Inputs and outputs are JSON text. */
export type Resumption =
  | {
      readonly kind: 'enter';
      readonly state: string;
      readonly input: string;
      /** The id of the state's entry where the history has it already: it is not told again. */
      readonly enteredId?: number;
    }
  | { readonly kind: 'succeeded'; readonly output: string }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'timed-out' };

/** The last state that an execution was in, as its history tells. */
interface LastState {
  readonly enteredId: number;
  readonly name: string;
  readonly input: string;
  /** What it left with; absent while it was in it. */
  output?: string;
  /** Whether its last call ended well; a state that was left otherwise was left by a Catch. */
  hasAnswer: boolean;
}

const detailsOf = (event: HistoryEvent, key: string): ReadonlyMap<string, unknown> => {
  const details = event[key];
  return new Map(typeof details === 'object' && details !== null ? Object.entries(details) : []);
};

function lastStateOf(events: readonly HistoryEvent[]): LastState | undefined {
  let last: LastState | undefined;
  for (const event of events) {
    if (event.type.endsWith('StateEntered')) {
      const details = detailsOf(event, 'stateEnteredEventDetails');
      const [name, input] = [String(details.get('name')), String(details.get('input'))];
      last = { enteredId: event.id, name, input, hasAnswer: false };
    } else if (last === undefined) {
      continue;
    } else if (event.type.endsWith('StateExited')) {
      last.output = String(detailsOf(event, 'stateExitedEventDetails').get('output'));
    } else if (/^(LambdaFunction|Task)(Succeeded|Failed|TimedOut)$/.test(event.type)) {
      last.hasAnswer = event.type.endsWith('Succeeded');
    }
  }
  return last;
}

/**
 * Where an execution goes on that was running when its server went away: in the state that it was in, with the input
 * that this state had; or in the one after it where it had left that. A call that was under way is made again, as is
 * one whose failure was just being caught: steps must bear that anyway. Retries begin anew.
 */
export function resumptionOf(
  record: Pick<ExecutionRecord, 'input' | 'events' | 'startMs'>,
  definition: StateMachineDefinition,
  nowMs: number,
): Resumption {
  const { TimeoutSeconds: timeoutSeconds } = definition;
  if (timeoutSeconds !== undefined && nowMs >= record.startMs + timeoutSeconds * 1_000)
    return { kind: 'timed-out' };
  const last = lastStateOf(record.events);
  if (last === undefined) return { kind: 'enter', state: definition.StartAt, input: record.input };
  const { name, input, output, enteredId } = last;
  const state = Object.hasOwn(definition.States, name) ? definition.States[name] : undefined;
  if (state === undefined) {
    const cause = `The state machine was changed while the execution waited: it has no state '${name}' any more.`;
    return { kind: 'failed', failure: { error: 'States.Runtime', cause } };
  }
  if (output === undefined) return { kind: 'enter', state: name, input, enteredId };
  if (state.Type === 'Succeed') return { kind: 'succeeded', output };
  const isDecided =
    state.Type === 'Pass' || state.Type === 'Wait' || (state.Type === 'Task' && last.hasAnswer);
  if (!isDecided) return { kind: 'enter', state: name, input };
  return 'Next' in state
    ? { kind: 'enter', state: state.Next, input: output }
    : { kind: 'succeeded', output };
}

/** Name of a state that no definition of a template has. */
export const RESUMING = '(resuming)';

/**
 * The same machine, but so that it begins in a given state with a given input, while the execution's own input stays
 * what it is; and with the time that it has left.
 */
export function definitionFrom(
  definition: StateMachineDefinition,
  from: { readonly state: string; readonly input: unknown },
  leftMs: number | undefined,
): StateMachineDefinition {
  const resuming = {
    Type: 'Pass' as const,
    // In an object, since the interpreter ignores results that are empty.
    Result: { input: from.input },
    OutputPath: '$.input',
    Next: from.state,
  };
  return {
    ...definition,
    StartAt: RESUMING,
    States: { ...definition.States, [RESUMING]: resuming },
    ...(leftMs === undefined ? {} : { TimeoutSeconds: Math.max(1, Math.ceil(leftMs / 1_000)) }),
  } as StateMachineDefinition;
}
