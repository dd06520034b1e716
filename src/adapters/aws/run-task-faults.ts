import { type Fault, isPassing } from './faults.ts';

/** What becomes of a launch that ECS does not carry out. */
export interface RunTaskRefusal {
  /** `throttled`: there may be room later. `refused`: it fails alike until somebody mends the deployment. */
  readonly outcome: 'throttled' | 'refused';
  readonly message: string;
}

/** Exceptions of ECS that only their words tell apart. */
const wordy = /^(InvalidParameter|Client|Server)(Exception|Error)?$/;

/**
 * ECS asks EC2 before it starts a task, and wraps what that answers: its limit of requests comes as
 * `InvalidParameterException` "Error retrieving security group information for [sg-…]: Request limit exceeded.
 * (ErrorCode: RequestLimitExceeded)". So do all that passes.
 */
const wrapped =
  /RequestLimitExceeded|request limit exceeded|rate (limit )?exceeded|Throttl(ed|ing)|TooManyRequests|too many requests|ServiceUnavailable|InternalError|InternalFailure|RequestTimeout|try again later/i;

/** No place just now in Fargate's zone, or among a subnet's addresses. */
const zoneFull =
  /capacity is unavailable|(insufficient|no) \w*\s?capacity|InsufficientCapacity|\bRESOURCE:|Insufficient\s?Free\s?Addresses|(insufficient|not enough|enough|sufficient) free (ipv4 )?addresses|Timeout waiting for (network interface|EphemeralStorage)/i;

/** None under the account's limits of what runs at once. */
const accountFull =
  /limit on the number of|vCPU (limit|quota)|(NetworkInterface|Address|vCpu|Task)\w*LimitExceeded/i;

const noRoom = (words: string): boolean => zoneFull.test(words) || accountFull.test(words);

/** What EC2 says where a subnet or a security group is not there, whatever else it says. */
const missing = /Invalid\w+\.(NotFound|Malformed)|does not exist/i;

const noRole = /service.linked role/i;
const roleHint =
  '; make it with: aws iam create-service-linked-role --aws-service-name ecs.amazonaws.com, and deploy again';

/** Whether a task may start later, by the words in which ECS says why it did not. */
export const mayStartLater = (words: string): boolean =>
  !missing.test(words) && !noRole.test(words) && (wrapped.test(words) || noRoom(words));

/** What of a network is used up, which tasks need wherever they run. */
const noAddress =
  /free (ipv4 )?addresses|FreeAddresses|(NetworkInterface|Address)\w*LimitExceeded|network interface/i;

/** Some zones of some regions have no Fargate at all. */
const noFargate =
  /not supported in (the |this )?(requested )?availability zone|unsupported availability zone/i;

/**
 * Whether it is for want of what another zone may have that a task did not start: its capacity, addresses of its subnets,
 * Fargate itself.
 */
export const lacksPlace = (words: string): boolean => zoneFull.test(words) || noFargate.test(words);

/**
 * Whether a cluster has not the capacity provider that was asked for: `FARGATE_SPOT` was taken from it while schedulers that were
 * started before still ask for it, or was not added to it yet.
 */
export const lacksProvider = (words: string): boolean => /capacity provider/i.test(words);

/** Whether it is for want of a place that a task did not start: on another provider there may be one. */
export const lacksRoom = (words: string): boolean => noRoom(words) && !noAddress.test(words);

const told = (message: string): string => (noRole.test(message) ? message + roleHint : message);

/** What becomes of a launch whose RunTask was answered by an error. */
export function refusalOfFault(fault: Fault): RunTaskRefusal {
  const isLater = wordy.test(fault.name)
    ? mayStartLater(fault.message) || (isPassing(fault) && !noRole.test(fault.message))
    : isPassing(fault);
  return { outcome: isLater ? 'throttled' : 'refused', message: told(`${fault.name}: ${fault.message}`) };
}

/**
 * What becomes of a launch that RunTask lists among its failures. Those that it repeats, to a client token that it has seen, have
 * no reason any more after an hour: the next call, under another token, is told whether there still is one.
 */
export function refusalOfFailure({
  reason,
  detail = '',
}: {
  readonly reason?: string | undefined;
  readonly detail?: string | undefined;
}): RunTaskRefusal {
  if (reason === undefined) return { outcome: 'throttled', message: 'ECS names no reason' };
  const message = `${reason} ${detail}`.trim();
  const isLater = mayStartLater(message) || /capacity|limit|throttl/i.test(reason);
  return { outcome: isLater ? 'throttled' : 'refused', message: told(message) };
}
