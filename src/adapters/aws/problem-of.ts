import * as z from 'zod';
import { firstProblem } from '../../contracts/invalid.ts';

const longest = 300;

/** What is wrong with a stored record that could not be decoded, in one line. */
export function problemOf(cause: unknown): string {
  if (cause instanceof z.ZodError) return firstProblem(cause);
  return (cause instanceof Error ? cause.message : String(cause)).slice(0, longest).toWellFormed();
}
