import { ErrorName } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import type { Failure, FailureCause } from '../contracts/records.ts';

/** Codes and messages by which V8 and Node say that memory ran out. */
const memoryCodes = new Set([
  'ERR_MEMORY_ALLOCATION_FAILED',
  'ERR_STRING_TOO_LONG',
  'ERR_BUFFER_TOO_LARGE',
  'ENOMEM',
]);
const memoryMessage =
  /allocation failed|out of memory|invalid (array|string) (buffer )?length|maximum size exceeded/i;

/** Codes by which the system tells that its disk or its table of files is full or broken. */
const diskCodes = new Set(['ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EMFILE', 'ENFILE']);

/** By name and not by class: a bundle of user code carries its own copies of the classes. */
const causeOfName: ReadonlyMap<string, FailureCause> = new Map<string, FailureCause>([
  ['UserCode', 'user-code'],
  ['ProgramFailed', 'user-code'],
  ['BadRecord', 'bad-record'],
  ['BadInput', 'bad-input'],
  [ErrorName.OutOfMemory, 'out-of-memory'],
  [ErrorName.InvalidInput, 'bad-input'],
  [ErrorName.StoreUnavailable, 'storage'],
  [ErrorName.StoreRefused, 'storage'],
  [ErrorName.AccessDenied, 'access-denied'],
  [ErrorName.NotFound, 'storage'],
  [ErrorName.Conflict, 'storage'],
  [ErrorName.BrokenInvariant, 'internal'],
]);

/** What user code in a process of its own may fail with. Stores are not among them: its worker reads its inputs. Its process may fail by its disk besides. */
export const causesOfUserCode = [
  'user-code',
  'bad-record',
  'bad-input',
  'out-of-memory',
  'internal',
] as const satisfies readonly FailureCause[];

/** The names that mean something there: a library of the user's has a NotFound or a Conflict of its own. */
const causeOfUserName: typeof causeOfName = new Map(
  [...causeOfName].filter(([, cause]) => causesOfUserCode.some((each) => each === cause)),
);

/** Whose code ran: an operator of ours or the worker, in the worker's process; or user code, in one of its own, whose files are its own matter. */
type Where = 'operator' | 'runtime' | 'user-code';

const namesIn = (where: Where): typeof causeOfName => (where === 'user-code' ? causeOfUserName : causeOfName);

/** What was thrown, read once: user code may throw anything, also what throws when it is looked at. */
interface Thrown {
  /** Empty where it is no error or has no name of its own. */
  readonly name: string;
  readonly message: string;
  readonly code: string;
  readonly isRangeError: boolean;
}

/** Thrown for what failed in another process, where it was recognised already. */
export class ReportedFailure extends Error {
  override readonly name = 'ReportedFailure';
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/**
 * The failure to record for whatever was thrown; `where` tells whose code ran. The message is one line of at most
 * 1,000 characters of Unicode. Never throws.
 */
export function failureOf(error: unknown, where: Where): Failure {
  const reported = attempt(() => (error instanceof ReportedFailure ? error.failure : undefined));
  if (reported !== undefined) return reported;
  const thrown = read(error);
  const names = namesIn(where);
  const cause = causeOf(thrown, names) ?? unnamedCause(thrown, where);
  return { cause, message: messageOf(thrown, names) };
}

/** The name of an error, for whoever cannot tell it by its class; empty where it has none of its own. Never throws. */
export const nameOfThrown = (thrown: unknown): string => read(thrown).name;

/** Whether it was thrown for want of memory. Never throws. */
export const isOfMemory = (thrown: unknown): boolean =>
  causeOf(read(thrown), causeOfName) === 'out-of-memory';

/** What `look` finds; undefined where looking throws. */
function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

function textOf(holder: object, field: 'name' | 'message' | 'code'): string {
  const value = attempt((): unknown => (holder as Readonly<Record<string, unknown>>)[field]);
  return typeof value === 'string' ? value : '';
}

function read(error: unknown): Thrown {
  const isRangeError = attempt(() => error instanceof RangeError) === true;
  if (attempt(() => error instanceof Error) === true && typeof error === 'object' && error !== null) {
    return {
      name: textOf(error, 'name'),
      message: textOf(error, 'message'),
      code: textOf(error, 'code'),
      isRangeError,
    };
  }
  return { name: '', message: wordsOfThrown(error), code: '', isRangeError };
}

/** What was thrown and is no error, as a message. Never throws. */
export const wordsOfThrown = (thrown: unknown): string =>
  attempt(() => (typeof thrown === 'string' ? thrown : plainText(thrown))) ??
  'something that cannot be shown was thrown';

/** Something else than an error or a text, as one would write it. */
function plainText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return `${String(value)} was thrown, which is no error`;
  const message = textOf(value, 'message');
  if (message !== '') return message;
  // Its own toString where it has one; else its JSON, which says more than "[object Object]".
  const thing: unknown = value;
  const text = String(thing);
  return text.startsWith('[object ') ? (attempt(() => JSON.stringify(value)) ?? text) : text;
}

const causeOf = (thrown: Thrown, names: typeof causeOfName): FailureCause | undefined =>
  isOutOfMemory(thrown) ? 'out-of-memory' : names.get(thrown.name);

function unnamedCause({ code }: Thrown, where: Where): FailureCause {
  // A full or broken scratch disk is a fault of the place: elsewhere the same may pass.
  if (where !== 'user-code' && diskCodes.has(code)) return 'storage';
  return where === 'runtime' ? 'internal' : 'user-code';
}

const isOutOfMemory = ({ code, isRangeError, message }: Thrown): boolean =>
  memoryCodes.has(code) || (isRangeError && memoryMessage.test(message.slice(0, limits.failureChars)));

function messageOf({ name, message }: Thrown, names = causeOfName): string {
  // Cut before anything else is done with it: a message may be as long as memory allows.
  const cut = message.slice(0, 2 * limits.failureChars);
  const label = isPlain(name, names) ? '' : `${name.slice(0, limits.failureChars / 10)}: `;
  const line = boundedLine(label + cut, limits.failureChars);
  return line === '' ? 'failed without a message' : line;
}

/** Errors whose message says all; the names of others (TypeError …) help. */
const isPlain = (name: string, names: typeof causeOfName): boolean =>
  name === '' || name === 'Error' || names.has(name);

/** A failure whose cause is known; its message is as `failureOf` makes it. */
export const failureWith = (cause: FailureCause, message: string): Failure => ({
  cause,
  message: messageOf({ name: '', message, code: '', isRangeError: false }),
});

/** Failures of a task by what it did with its input; others name what they are about by themselves. */
const ofInput: ReadonlySet<FailureCause> = new Set<FailureCause>(['user-code', 'out-of-memory']);

/**
 * The failure with what its task was reading, which says where to look. Not where the message names an object already:
 * that place is nearer. What was read stays whole, however long the message.
 */
export function failureReading({ cause, message }: Failure, reads: string): Failure {
  if (reads === '' || !ofInput.has(cause) || message.includes('s3://')) return { cause, message };
  const place = ` (${boundedLine(reads, limits.failureChars / 2)})`;
  return { cause, message: boundedLine(message, limits.failureChars - place.length) + place };
}

/** One line of well-formed Unicode without control characters, cut to `chars`. */
export function boundedLine(text: string, chars: number): string {
  const line = text
    .slice(0, 2 * chars)
    .replaceAll(/\s*[\p{Cc}\u2028\u2029]+\s*/gu, ' ')
    .toWellFormed()
    .trim();
  // Cut again before it is made well-formed: the cut may part a pair of surrogates.
  return line.length > chars || text.length > 2 * chars
    ? `${line.slice(0, chars - 1).toWellFormed()}…`
    : line;
}
