import type { z } from 'zod';

/** A refusal in AWS's words; `code` is the exception's name on the wire. */
export class StatesError extends Error {
  override readonly name = 'StatesError';
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/** An operation's input, checked. @throws StatesError naming the first field at fault. */
export function parseInput<T>(schema: z.ZodType<T>, input: unknown): T {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new StatesError(
    'ValidationException',
    `1 validation error detected: Value at '${issue?.path.join('.') ?? ''}' failed to satisfy constraint: ${issue?.message ?? ''}`,
  );
}
