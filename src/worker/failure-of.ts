import { ErrorName } from '../contracts/errors.ts';
import type { Failure, FailureCause } from '../contracts/records.ts';

const longestMessage = 1_000;
/** Codes and messages by which V8 and Node say that memory ran out. */
const memoryCodes = new Set([
  'ERR_MEMORY_ALLOCATION_FAILED',
  'ERR_STRING_TOO_LONG',
  'ERR_BUFFER_TOO_LARGE',
  'ENOMEM',
]);
const memoryMessage =
  /allocation failed|out of memory|invalid (array|string) (buffer )?length|maximum size exceeded/i;

/** The failure to record for whatever was thrown; `where` tells whose code ran. The message is one line. */
export function failureOf(error: unknown, where: 'operator' | 'runtime'): Failure {
  return { cause: causeOf(error, where), message: messageOf(error) };
}

/** By name and not by class: a bundle of user code carries its own copies of the classes. */
const causeOfName: Readonly<Record<string, FailureCause>> = {
  BadRecord: 'bad-record',
  BadInput: 'bad-input',
  [ErrorName.InvalidInput]: 'bad-input',
  [ErrorName.StoreUnavailable]: 'storage',
  [ErrorName.NotFound]: 'storage',
  [ErrorName.Conflict]: 'storage',
  [ErrorName.BrokenInvariant]: 'internal',
};

function causeOf(error: unknown, where: 'operator' | 'runtime'): FailureCause {
  if (isOutOfMemory(error)) return 'out-of-memory';
  const known = error instanceof Error ? causeOfName[error.name] : undefined;
  return known ?? (where === 'operator' ? 'user-code' : 'internal');
}

function isOutOfMemory(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && typeof error.code === 'string' && memoryCodes.has(error.code)) return true;
  return error instanceof RangeError && memoryMessage.test(error.message);
}

function messageOf(error: unknown): string {
  const text =
    error instanceof Error ? `${isPlain(error) ? '' : `${error.name}: `}${error.message}` : String(error);
  const line = text.replaceAll(/\s*[\r\n]+\s*/g, ' ').trim();
  return line.length > longestMessage
    ? `${line.slice(0, longestMessage - 1)}…`
    : line || 'failed without a message';
}

/** Errors whose message says all; the names of others (TypeError …) help. */
const isPlain = (error: Error): boolean => error.name === 'Error' || causeOfName[error.name] !== undefined;
