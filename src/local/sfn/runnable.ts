import type { StateMachineDefinition } from 'aws-local-stepfunctions';
import {
  assertSupportedDefinition,
  checkDefinition,
  type ChoiceRule,
  INVOKE_ARN,
  MAX_TIMER_SECONDS,
  TOKEN_PATH,
  TYPE_TESTS,
  WAITING_ARN,
} from './definition.ts';

/** How a Task calls its function: straight by ARN, or through the `lambda:invoke` integration. */
export type TaskCall =
  | { readonly kind: 'lambda'; readonly resource: string }
  /** `waits`: not for the function's answer but for that to the task's token. */
  | { readonly kind: 'invoke'; readonly waits: boolean };

/** A Task as the history and its call need it. Times in seconds. */
export interface RunnableTask {
  readonly call: TaskCall;
  readonly timeoutSeconds: number | undefined;
  /** Longest time between two signs of life of whoever has the token. */
  readonly heartbeatSeconds: number | undefined;
}

/** Errors of a Task whose time is up, and of one whose token's owner gave no sign of life. */
export const TIMEOUT = 'States.Timeout';
export const HEARTBEAT_TIMEOUT = 'States.HeartbeatTimeout';

/** Stands for the task's token until it is called: the interpreter's context object is one for all tasks. */
export const TOKEN_MARK = '(task token)';

function withTokenMark(parameters: unknown): unknown {
  if (Array.isArray(parameters)) return parameters.map(withTokenMark);
  if (typeof parameters !== 'object' || parameters === null) return parameters;
  return Object.fromEntries(
    Object.entries(parameters).map(([key, value]): [string, unknown] =>
      value === TOKEN_PATH && key.endsWith('.$')
        ? [key.slice(0, -2), TOKEN_MARK]
        : [key, withTokenMark(value)],
    ),
  );
}

/** A definition ready for the interpreter, and what the history needs to know of its Tasks. */
export interface RunnableDefinition {
  readonly definition: StateMachineDefinition;
  readonly tasks: ReadonlyMap<string, RunnableTask>;
}

/**
 * The same definition with the interpreter's own ways overridden by those of AWS: it would end
 * a Task without a time-out after 60 s, store a result path of `$` under a key `$`, and never
 * match `IsPresent: false` and the like.
 *
 * @throws UnsupportedDefinitionError as {@link assertSupportedDefinition}.
 */
export function runnableDefinition(definition: unknown): RunnableDefinition {
  const checked = structuredClone(checkDefinition(definition));
  const tasks = new Map<string, RunnableTask>();
  for (const [name, state] of Object.entries(checked.States)) {
    if ('ResultPath' in state && state.ResultPath === '$') delete state.ResultPath;
    if (state.Type === 'Choice') state.Choices = state.Choices.map(withoutTestsForFalse);
    if (state.Type !== 'Task') continue;
    tasks.set(name, {
      call: INVOKE_ARN.test(state.Resource)
        ? { kind: 'invoke', waits: WAITING_ARN.test(state.Resource) }
        : { kind: 'lambda', resource: state.Resource },
      timeoutSeconds: state.TimeoutSeconds,
      heartbeatSeconds: state.HeartbeatSeconds,
    });
    state.Resource = state.Resource.replace(WAITING_ARN, '');
    delete state.HeartbeatSeconds; // Told by our own clock, since the interpreter has none for it.
    if (state.Parameters !== undefined) state.Parameters = withTokenMark(state.Parameters);
    for (const rule of [...(state.Retry ?? []), ...(state.Catch ?? [])]) {
      // As AWS: a missed heartbeat is a time-out, too.
      if (rule.ErrorEquals.includes(TIMEOUT)) rule.ErrorEquals.push(HEARTBEAT_TIMEOUT);
    }
    if (state.TimeoutSecondsPath === undefined) state.TimeoutSeconds = timerSeconds(state.TimeoutSeconds);
    for (const rule of state.Retry ?? []) rule.MaxDelaySeconds = timerSeconds(rule.MaxDelaySeconds);
    for (const rule of state.Catch ?? []) if (rule.ResultPath === '$') delete rule.ResultPath;
  }
  if (checked.TimeoutSeconds !== undefined) checked.TimeoutSeconds = timerSeconds(checked.TimeoutSeconds);
  const runnable: unknown = checked;
  assertSupportedDefinition(runnable);
  return { definition: runnable, tasks };
}

function timerSeconds(given: number | undefined): number {
  return Math.min(given ?? MAX_TIMER_SECONDS, MAX_TIMER_SECONDS);
}

function withoutTestsForFalse(rule: ChoiceRule): ChoiceRule {
  const { Next, And, Or, Not, ...test } = rule;
  const next = Next === undefined ? {} : { Next };
  if (And !== undefined) return { ...next, And: And.map(withoutTestsForFalse) };
  if (Or !== undefined) return { ...next, Or: Or.map(withoutTestsForFalse) };
  if (Not !== undefined) return { ...next, Not: withoutTestsForFalse(Not) };
  const negated = TYPE_TESTS.find((name) => test[name] === false);
  return negated === undefined ? rule : { ...next, Not: { ...test, [negated]: true } };
}
