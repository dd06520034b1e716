/**
 * Names of errors. Thrown by handlers, matched by Retry and Catch in the state machine, and mapped to HTTP
 * states and exit codes at the edges.
 */
export const ErrorName = {
  InvalidInput: 'InvalidInput',
  TooLarge: 'TooLarge',
  UnsupportedMediaType: 'UnsupportedMediaType',
  NotFound: 'NotFound',
  Conflict: 'Conflict',
  StoreUnavailable: 'StoreUnavailable',
  StoreRefused: 'StoreRefused',
  LaunchThrottled: 'LaunchThrottled',
  LeaseHeld: 'LeaseHeld',
  /** No failure: a resident's time is up, and the next one is to be started. */
  HandOver: 'HandOver',
  JobFailed: 'JobFailed',
  /** A job that has used up the dollars that it may cost. */
  BudgetReached: 'BudgetReached',
  /** A job whose execution was stopped from outside, or ended without a word. */
  ExecutionEnded: 'ExecutionEnded',
  /** A function that plans, schedules or finishes jobs died, so that its job ends: of memory, of time, or by itself. */
  OutOfMemory: 'OutOfMemory',
  TimedOut: 'TimedOut',
  FunctionExited: 'FunctionExited',
  /** No failure: parts of the output are gone before they were published, and their tasks are to be done again. */
  OutputLost: 'OutputLost',
  AccessDenied: 'AccessDenied',
  UnreadableRecord: 'UnreadableRecord',
  BrokenInvariant: 'BrokenInvariant',
} as const;

/** What the services of a local stack call it that their disk is full. AWS has no such name: it is never full. */
export const STORAGE_FULL = 'StorageFull';

/** Facts that belong to an error; they go here and not into its message. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** Root of every error that the product throws on purpose. */
export class OutriderError extends Error {
  readonly details: ErrorDetails;

  constructor(message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options);
    this.details = details;
  }
}

/** The caller's mistake. `field` is the path of what is wrong; the message says what would be right. */
export class InvalidInputError extends OutriderError {
  override readonly name = ErrorName.InvalidInput;
}

/**
 * What was thrown of a part of a request, with its `field` named from the root of the whole, in which the part is `root`; what names
 * no field is as it was. Messages stay: whoever sends the part alone, as the command does, reads them too.
 */
export function underField(root: string, cause: unknown): unknown {
  if (!(cause instanceof InvalidInputError || cause instanceof ConflictError)) return cause;
  const inner = cause.details['field'];
  if (typeof inner !== 'string') return cause;
  const details = { ...cause.details, field: `${root}.${inner}` };
  return cause instanceof ConflictError
    ? new ConflictError(cause.message, details, { cause })
    : new InvalidInputError(cause.message, details, { cause });
}

/** A request that is larger than any that could be served; the message says the limit. */
export class TooLargeError extends OutriderError {
  override readonly name = ErrorName.TooLarge;
}

/** A request whose body says that it is something else than what is read here. */
export class MediaTypeError extends OutriderError {
  override readonly name = ErrorName.UnsupportedMediaType;
}

/** What was asked for is not there. */
export class NotFoundError extends OutriderError {
  override readonly name = ErrorName.NotFound;
}

/** The request contradicts an earlier one (same client token, other spec; output already there). */
export class ConflictError extends OutriderError {
  override readonly name = ErrorName.Conflict;
}

/** A passing fault of a store: try again with backoff. */
export class StoreUnavailableError extends OutriderError {
  override readonly name: typeof ErrorName.StoreUnavailable | typeof ErrorName.StoreRefused =
    ErrorName.StoreUnavailable;
}

/**
 * A store refuses a request for what it asks, and would refuse it again; the message holds the store's words. Where a store
 * that is away can be borne this can, too, but no step is tried again for it.
 */
export class StoreRefusedError extends StoreUnavailableError {
  override readonly name = ErrorName.StoreRefused;
}

/** Another scheduler of the same job holds the lease: come back when it has run out. */
export class LeaseHeldError extends OutriderError {
  override readonly name = ErrorName.LeaseHeld;
}

/** The job cannot end well; its cause is in the job's record. Not retried. */
export class JobFailedError extends OutriderError {
  override readonly name = ErrorName.JobFailed;
}

/** The job has used up the dollars that it may cost. Not retried. */
export class BudgetReachedError extends OutriderError {
  override readonly name = ErrorName.BudgetReached;
}

/**
 * The deployment or the caller lacks a right: the same call fails alike until somebody grants it, so it is not tried
 * again. The message names the action and what it was asked of.
 */
export class AccessDeniedError extends OutriderError {
  override readonly name = ErrorName.AccessDenied;
}

/** A stored record that cannot be read. Not retried: it stays as it is. The message names it and what is wrong. */
export class UnreadableRecordError extends OutriderError {
  override readonly name = ErrorName.UnreadableRecord;
}

/** Parts of a job's output are gone before they could be published: the job is to be scheduled once more. */
export class OutputLostError extends OutriderError {
  override readonly name = ErrorName.OutputLost;
}

/** Our own bug: stop, alarm, do not retry. */
export class BrokenInvariantError extends OutriderError {
  override readonly name = ErrorName.BrokenInvariant; // Minifiers rename classes, hence the literal.
}

/** Throws `BrokenInvariantError` unless `holds`. */
export function invariant(holds: boolean, message: string, details: ErrorDetails = {}): asserts holds {
  if (!holds) throw new BrokenInvariantError(message, details);
}
