import type { AnswerOutcome, TaskAnswers } from '../../ports/task-answers.ts';

/** What was answered to a token. */
export type MemoryAnswer =
  | { readonly kind: 'succeeded'; readonly output: unknown }
  | { readonly kind: 'failed'; readonly error: string; readonly cause: string };

/** Tokens in memory, each of which is answered once. */
export class MemoryTaskAnswers implements TaskAnswers {
  /** Told of each token's one answer. */
  onAnswer: (token: string, answer: MemoryAnswer) => void = () => undefined;
  /** Told of each sign of life. */
  onBeat: (token: string) => void = () => undefined;
  private readonly open = new Set<string>();

  /** From then on somebody waits for this token. */
  wait(token: string): void {
    this.open.add(token);
  }

  /** From then on nobody does. */
  close(token: string): void {
    this.open.delete(token);
  }

  succeed(token: string, output: unknown): Promise<AnswerOutcome> {
    return this.answer(token, { kind: 'succeeded', output });
  }

  fail(token: string, failure: { readonly error: string; readonly cause: string }): Promise<AnswerOutcome> {
    return this.answer(token, { kind: 'failed', ...failure });
  }

  beat(token: string): Promise<AnswerOutcome> {
    if (!this.open.has(token)) return Promise.resolve('gone');
    this.onBeat(token);
    return Promise.resolve('answered');
  }

  private answer(token: string, answer: MemoryAnswer): Promise<AnswerOutcome> {
    if (!this.open.delete(token)) return Promise.resolve('gone');
    this.onAnswer(token, answer);
    return Promise.resolve('answered');
  }
}
