import { ErrorName } from '../../src/contracts/errors.ts';

/** A rule by which the state machine tries a step again. Times in whole seconds. */
export interface StepRetry {
  readonly errors: readonly string[];
  readonly intervalSeconds: number;
  readonly backoffRate: number;
  readonly maxAttempts: number;
  readonly maxDelaySeconds?: number;
  /** Draws each pause evenly between nothing and its length. */
  readonly hasJitter?: boolean;
}

/**
 * Lambda has no room for a step now ("Rate Exceeded."), cannot serve, gave Step Functions no answer in time, or is updating
 * the step's function: nothing is wrong with the job.
 *
 * Source: the four that AWS would have retried, docs.aws.amazon.com/step-functions/latest/dg/bp-lambda-serviceexception.html,
 * throttling, and the conflict of an update, for the seconds that one takes.
 */
const busyErrors = [
  'Lambda.TooManyRequestsException',
  'Lambda.ServiceException',
  'Lambda.AWSLambdaException',
  'Lambda.SdkClientException',
  'Lambda.ClientExecutionTimeoutException',
  'Lambda.ResourceConflictException',
] as const;

/** Faults that pass: of stores, and of a sandbox that died under its function. */
const passingErrors = [
  ErrorName.StoreUnavailable,
  ErrorName.LaunchThrottled,
  'Lambda.Unknown',
  'Runtime.ExitError',
  'Sandbox.Timedout',
  'States.Timeout',
] as const;

/** How every step is tried again. */
export const stepRetries: readonly StepRetry[] = [
  // Half a minute apart on average, for twelve hours: so long may other work fill an account's concurrency.
  {
    errors: busyErrors,
    intervalSeconds: 2,
    backoffRate: 2,
    maxDelaySeconds: 60,
    maxAttempts: 1_500,
    hasJitter: true,
  },
  {
    errors: passingErrors,
    intervalSeconds: 1,
    backoffRate: 2,
    maxDelaySeconds: 30,
    maxAttempts: 12,
    hasJitter: true,
  },
];

/** How Schedule is, before those: where its scheduler's time was up, or nobody hears of it any more. */
export const scheduleRetries: readonly StepRetry[] = [
  {
    errors: [ErrorName.HandOver, 'States.HeartbeatTimeout', 'States.Timeout'],
    intervalSeconds: 1,
    backoffRate: 1,
    maxAttempts: 2_000,
  },
  // A scheduler that nobody hears of may hold a job's lease until its function ends.
  { errors: [ErrorName.LeaseHeld], intervalSeconds: 3, backoffRate: 1, maxAttempts: 320 },
  ...stepRetries,
];
