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
  /\b(ECONN[A-Z]+|EAI_AGAIN|ENOTFOUND|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOSPC|EDQUOT|EIO|EROFS|EMFILE|ENFILE|EAGAIN|EBUSY)\b|fetch failed|socket hang up|timed? ?out|too many requests|throttl|service unavailable/i;

const month = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const clock = String.raw`\d\d?:\d\d:\d\d(?:[.,]\d+)?`;
const signal =
  'Killed|Terminated|Aborted|Segmentation fault|Bus error|Illegal instruction|Floating point exception';

/** What differs between two executions that fail alike, and what stands for it; in this order. */
const passingParts: readonly (readonly [RegExp, string])[] = [
  [/\s+/g, ' '],
  [/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '<id>'],
  [/\b(request ?id)([: ="']+)[\w/+=-]+/gi, '$1$2<id>'],
  [new RegExp(String.raw`\d{4}[-/]\d\d[-/]\d\d[T ]${clock}(?:Z| ?[+-]\d\d:?\d\d)?`, 'g'), '<time>'],
  [new RegExp(String.raw`\d\d?/${month}/\d{4}:${clock}(?: [+-]\d{4})?`, 'g'), '<time>'],
  [
    new RegExp(
      String.raw`\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?(?:${month} \d\d?|\d\d? ${month}),?(?: \d{4})? ${clock}(?: [A-Z]{3,4}\b| [+-]\d{4}\b)?(?: \d{4}\b)?`,
      'g',
    ),
    '<time>',
  ],
  [new RegExp(String.raw`\b${clock}(?: ?[AP]M\b|Z\b)?`, 'g'), '<time>'],
  // Seconds with a fraction, and milliseconds, since 1970.
  [/\b1[5-9]\d{8}\.\d+\b|\b1[5-9]\d{11}\b/g, '<time>'],
  [/\b\d+(?:\.\d+)? ?(?:ns|us|µs|ms|s|sec|secs|seconds?|milliseconds?)\b/g, '<duration>'],
  [/\battempt-[A-Za-z0-9]{6}\b/g, '<scratch>'],
  [/\/tmp[a-z0-9_]{8}\b|\/tmp\.[A-Za-z0-9]{6,12}\b/g, '/<temporary>'],
  // The digits by which keys of attempts are spread.
  [/\/data\/[0-9a-f]{2}\//g, '/data/'],
  [/([a-z][a-z0-9-]{0,31}\/\d+)\/\d+\b/g, '$1/<attempt>'],
  [/\[\d+:0x[0-9a-f]+\]/gi, '[<pid>]'],
  [/\b0x[0-9a-f]+\b/gi, '<address>'],
  [/\bpid[ :=]*\d+/gi, '<pid>'],
  [/\(node:\d+\)/g, '(node:<pid>)'],
  [/(^|[ |])([A-Za-z][\w./-]*)\[\d+\]: /g, '$1$2[<pid>]: '],
  [new RegExp(String.raw`(\bline \d+: )\d+ (${signal})`, 'g'), '$1<pid> $2'],
  [/\b(\d{1,3}(?:\.\d{1,3}){3}|localhost):\d{2,5}\b/g, '$1:<port>'],
];

/**
 * A message without what differs between two executions of one task: the attempt's own number and directory, random
 * ids, addresses, processes, ports, times and how long something took. Other numbers stay: that a failure comes at
 * another place tells it from the first.
 */
export function normalizedMessage(message: string): string {
  return passingParts.reduce((text, [pattern, stand]) => text.replaceAll(pattern, stand), message).trim();
}

/** What of an attempt the rule looks at. */
export type FailedAttempt = Pick<AttemptView, 'failure' | 'node'>;

const mayRepeat = ({ failure }: FailedAttempt): boolean =>
  failure !== undefined && repeatable.has(failure.cause) && !passing.test(failure.message);

/**
 * Nodes on which attempts of a task have failed by themselves, which may be the nodes' fault: elsewhere the next tells more. None
 * where no other node is known (`nodes` of the job so far): two failures on the only one tell as much (`hasFailedAlike`).
 */
export function nodesFailedOn(
  { attempts }: Pick<TaskView, 'attempts'>,
  nodes: ReadonlyMap<string, unknown>,
): readonly string[] {
  const failed = new Set<string>();
  for (const each of attempts)
    if (each.state === 'failed' && each.node !== undefined && mayRepeat(each)) failed.add(each.node);
  return failed.size > 0 && [...nodes.keys()].some((node) => !failed.has(node)) ? [...failed] : [];
}

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
