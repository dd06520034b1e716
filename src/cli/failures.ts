import { ErrorName, InvalidInputError, OutriderError } from '../contracts/errors.ts';
import { oneLine } from '../report/format.ts';

/** What the command's exit code tells scripts (design §8). */
export const ExitCode = {
  done: 0,
  jobFailed: 1,
  badInput: 2,
  unavailable: 3,
  interrupted: 130,
} as const;

/** The service does not answer, or answers that it cannot serve now. */
export class ServiceUnavailableError extends OutriderError {
  override readonly name = 'ServiceUnavailable';
}

/**
 * An output cannot be written, and not all that had been done for it could be undone; the message names what stays.
 * `details.parts` says how many parts of the output lie there and may be nowhere else.
 */
export class LeftBehindError extends InvalidInputError {}

/** Thrown where a signal ends what is under way. */
export class InterruptedError extends OutriderError {
  override readonly name = 'Interrupted';
}

/** A mistake in what the user gave; the message says what is wrong and what would be right. */
export const badInput = (message: string, cause?: unknown): InvalidInputError =>
  new InvalidInputError(message, {}, cause === undefined ? undefined : { cause });

const inputMistakes: ReadonlySet<string> = new Set([
  ErrorName.InvalidInput,
  ErrorName.NotFound,
  ErrorName.Conflict,
  // Of the user or of the deployment: asked again, it would be missing still.
  ErrorName.AccessDenied,
  ErrorName.StoreRefused,
  'PortTakenError',
  'NotPrivateError',
]);
const outages: ReadonlySet<string> = new Set([
  'ServiceUnavailable',
  ErrorName.StoreUnavailable,
  ErrorName.LaunchThrottled,
  'DynamoDbUnavailableError',
]);

/**
 * The exit code for an error that ended the command. Unforeseen ones count as a failed job, but for what the system refuses: a
 * job that has failed is never thrown.
 */
export function exitCodeOf(error: unknown): number {
  if (!(error instanceof Error)) return ExitCode.jobFailed;
  // By name, not by class: the embedded stack has errors of its own.
  if (error.name === 'Interrupted') return ExitCode.interrupted;
  if (inputMistakes.has(error.name)) return ExitCode.badInput;
  if (outages.has(error.name)) return ExitCode.unavailable;
  return refusalInWords(error) === undefined ? ExitCode.jobFailed : ExitCode.badInput;
}

/** One line for the user; the stack too where `OUTRIDER_DEBUG` is set. */
export function describeFailure(error: unknown, env: Readonly<Record<string, string | undefined>>): string {
  const said = error instanceof Error ? error.message || error.name : String(error);
  const refusal = refusalInWords(error);
  const message = refusal === undefined ? said : `${refusal} (${said})`;
  const line = `outrider: ${oneLine(message)}${factsOf(error, message)}`;
  const isDebugging = env.OUTRIDER_DEBUG !== undefined && env.OUTRIDER_DEBUG !== '';
  return isDebugging && error instanceof Error ? `${line}\n${debugText(error)}` : line;
}

/** What an error of a store was about, where its message does not say it. */
function factsOf(error: unknown, message: string): string {
  if (!(error instanceof OutriderError)) return '';
  const facts = [error.details['uri'], error.details['fault']].flatMap((fact) =>
    typeof fact === 'string' && fact !== '' && !message.includes(fact) ? [oneLine(fact)] : [],
  );
  return facts.length === 0 ? '' : ` (${facts.join(': ')})`;
}

const deepestCause = 5;

function debugText(error: Error): string {
  const lines: string[] = [];
  let current: unknown = error;
  for (let depth = 0; depth < deepestCause && current instanceof Error; depth++) {
    lines.push(`${depth === 0 ? '' : 'caused by: '}${current.stack ?? current.message}`);
    current = current.cause;
  }
  return lines.join('\n');
}

/** The code of a system error such as `ENOENT`, or undefined. */
export function systemCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

const systemReasons: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ENOENT: 'there is no such file or directory',
    EACCES: 'permission denied',
    EPERM: 'not permitted',
    ENOTDIR: 'a part of its path is not a directory',
    EISDIR: 'it is a directory',
    EEXIST: 'there is already a file of that name',
    ELOOP: 'its symbolic links go round in a circle',
    ENAMETOOLONG: 'its name is too long',
    ENOSPC: 'the disk is full',
    EDQUOT: 'the quota of disk space is used up',
    EROFS: 'the file system is read-only',
    EMFILE: 'too many files are open',
  }),
);

/** Why the system refused something about files, in words; undefined where the error is of another kind. */
export function refusalInWords(error: unknown): string | undefined {
  const code = systemCode(error);
  return code === undefined ? undefined : systemReasons.get(code);
}

/** Why the system refused, in words where we have them. */
export function systemReason(error: unknown): string {
  const reason = refusalInWords(error);
  if (reason !== undefined) return reason;
  return error instanceof Error ? error.message : String(error);
}
