/** `gone`: nobody waits for this token any more. */
export type AnswerOutcome = 'answered' | 'gone';

/** Answers to the tokens of the state machine's tasks. Throws `StoreUnavailableError` where it cannot be reached. */
export interface TaskAnswers {
  /** The task ends well; `output` is what the state machine goes on with. */
  succeed(token: string, output: unknown): Promise<AnswerOutcome>;
  /** The task fails; Retry and Catch match `error`. */
  fail(token: string, failure: { readonly error: string; readonly cause: string }): Promise<AnswerOutcome>;
  /** A sign of life. */
  beat(token: string): Promise<AnswerOutcome>;
}
