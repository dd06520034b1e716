import * as z from 'zod';

export const probability = z.number().min(0).max(1);
export const atLeastZero = z.number().nonnegative();
export const name = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,31}$/, 'must be 1 to 32 of a-z, 0-9 and "-", and begin with a letter');

/** Notes what is wrong with a field, by its path. */
export type Refuse = (path: (string | number)[], message: string) => void;
