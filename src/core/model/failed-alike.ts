import type { FailureCause } from '../../contracts/records.ts';
import type { AttemptView, TaskView } from './job-view.ts';

/**
 * Causes by which the same input may be expected to fail the same way again. Not among them: faults of stores, which
 * pass; attempts that were lost or ran out of time, which says more of a node than of the input; and those that fail
 * the job at once.
 */
const repeatable: ReadonlySet<FailureCause> = new Set([
  'user-code',
  'out-of-memory',
  'internal',
  'unreadable',
]);

/** What the network or a full machine does to any code: a second attempt may well be spared. */
const passing =
  /\b(ECONN[A-Z]+|EAI_AGAIN|ENOTFOUND|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOSPC|EMFILE|ENFILE|EAGAIN|EBUSY)\b|fetch failed|socket hang up|timed? ?out|too many requests|throttl|service unavailable/i;

/**
 * A message without what differs between two executions of one task: the attempt's own number and directory, random
 * ids, addresses and times of day. Other numbers stay: that a failure comes at another place tells it from the first.
 */
export function normalizedMessage(message: string): string {
  return (
    message
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '<id>')
      .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?/g, '<time>')
      .replaceAll(/\battempt-[A-Za-z0-9]{6}\b/g, '<scratch>')
      // The digits by which keys of attempts are spread.
      .replaceAll(/\/data\/[0-9a-f]{2}\//g, '/data/')
      .replaceAll(/([a-z][a-z0-9-]{0,31}\/\d+)\/\d+\b/g, '$1/<attempt>')
      .replaceAll(/\b0x[0-9a-f]+\b/gi, '<address>')
      .replaceAll(/\bpid[ :=]+\d+/gi, '<pid>')
      .replaceAll(/\s+/g, ' ')
      .trim()
  );
}

/** What of an attempt the rule looks at. */
export type FailedAttempt = Pick<AttemptView, 'failure' | 'node'>;

const mayRepeat = ({ failure }: FailedAttempt): boolean =>
  failure !== undefined && repeatable.has(failure.cause) && !passing.test(failure.message);

/** Whether two attempts of one task failed of the same cause with the same message. */
export function areAlike(a: FailedAttempt, b: FailedAttempt): boolean {
  if (!mayRepeat(a) || !mayRepeat(b)) return false;
  return (
    a.failure?.cause === b.failure?.cause &&
    normalizedMessage(a.failure?.message ?? '') === normalizedMessage(b.failure?.message ?? '')
  );
}

/**
 * Whether a task has failed alike in two environments, the last time by `attempt`: it would again, so that no retry
 * is of use. A clone or a backup counts like any other attempt. Two attempts on one node count only where no other
 * node is known (`nodes` of the job so far): the fault may be the node's.
 */
export function hasFailedAlike(
  { attempts }: Pick<TaskView, 'attempts'>,
  attempt: AttemptView,
  nodes: ReadonlyMap<string, unknown>,
): boolean {
  const hasOtherNode = [...nodes.keys()].some((node) => node !== attempt.node);
  return attempts.some(
    (other) =>
      other !== attempt && (other.node !== attempt.node || !hasOtherNode) && areAlike(other, attempt),
  );
}
