import type { ExplainedCause, ExplainedTask } from '../../contracts/explanation.ts';
import type { CancelReason, LaunchReason, LossReason } from '../../core/model/decision.ts';
import { ownValue } from '../../lib/own.ts';
import { formatBytes, formatCount, formatDuration, oneLine, plural, shortNode } from '../format.ts';
import { factorText } from './facts-text.ts';
import type { NodeEvidence } from './node-evidence.ts';

/** Of a task's time, a cause is worth a sentence from this share on. */
const worthTelling = 0.1;
/** Less would be told as 0.0s. */
const leastTold = 50;

/** What a task's time went to, in sentences; empty where it took no more than the usual. */
export function causeSentences(task: ExplainedTask): readonly string[] {
  const { causes, totalMs } = task;
  // What a task waits for now is told however long it took before.
  const leastOf = ({ kind }: ExplainedCause): number =>
    kind === 'waits-again' ? leastTold : Math.max(leastTold, worthTelling * totalMs);
  return causes
    .filter((cause) => (cause.ms ?? cause.facts['waitedMs'] ?? Infinity) >= leastOf(cause))
    .map((cause) => sentenceOf(cause, task));
}

function sentenceOf(cause: ExplainedCause, { taskId, attempts }: ExplainedTask): string {
  const { kind, attemptId, facts } = cause;
  const took = formatDuration(cause.ms);
  switch (kind) {
    case 'before-launch':
      return `${took} went by from the opening of its stage to the launch of ${attemptId}${reasonBeforeLaunch(facts)}.`;
    case 'earlier-failed':
      return `${took} went by before ${attemptId} was launched, since ${failuresText(attempts, attemptId)}.`;
    case 'copied':
      return `${took} went by before ${isCopy(attempts, attemptId) ? 'its copy ' : ''}${attemptId} was launched, since ${cameBeforeText(attempts, attemptId)}.`;
    case 'output-lost':
      return `${took} went by before ${attemptId} was launched, since the output of ${attempts[doneBefore(attempts, placeOf(attempts, attemptId))]?.attemptId ?? 'an attempt before it'} was lost later.`;
    case 'waits-again':
      return `${taskId} ${waitedText(facts, took)}, since ${failedText(attempts, attemptId)}${reasonBeforeLaunch(facts)}.`;
    case 'launch-refused':
      return `${attemptId} waited ${formatDuration(facts['waitedMs'])} for its launch, which the host's limits refused ${plural(facts['throttled'] ?? 0, 'time')}, to be made again.`;
    case 'ride':
      return `${attemptId} waited ${took} in its worker for other tasks that rode with it.`;
    case 'host-wait':
      return facts['unclaimed'] === undefined
        ? `${attemptId} waited ${took} ${waitedFor(facts)}.`
        : `${attemptId} had waited ${took} for a worker when it was seen last${refusedText(facts)}.`;
    case 'more-input':
      return `${attemptId} had more to read than its siblings: ${inputText(facts)}.${cause.ms === undefined ? '' : ` That explains ${took} of ${formatDuration(facts['runMs'])}.`}`;
    case 'stood-still':
      return `The worker of ${attemptId} (${shortNode(cause.node)}) stood still for ${formatDuration(facts['stalledMs'])}, and went on: ${slowText(facts)}.`;
    case 'slow-node':
      return `${attemptId} ran on a slow node (${shortNode(cause.node)}): ${slowText(facts)}; ${evidenceText(cause)}.`;
    case 'own-work':
      return `${attemptId} took long by its own work: ${slowText(facts)}, and ${factorText(facts['elsewhereSlowness'] ?? 0)} times on another node, too.`;
    case 'unexplained':
      return `${attemptId} was slow, and nothing in its records tells why: ${slowText(facts)}, spread over its phases.`;
    case 'slow-start':
    case 'slow-read':
    case 'slow-compute':
    case 'slow-write':
      return `${attemptId} ${phaseText[kind]}: ${formatDuration(facts['phaseMs'])} against ${formatDuration(facts['usualPhaseMs'])}; in all, ${slowText(facts)}.${kind === 'slow-compute' ? computeDoubt(facts) : ''}`;
  }
}

type Facts = ExplainedCause['facts'];

const inputText = ({ bytes = 0, usualBytes = 0, records, usualRecords = 0 }: Facts): string =>
  records === undefined
    ? `${formatBytes(bytes)} against ${formatBytes(usualBytes)}`
    : `${formatCount(Math.round(records))} records against ${formatCount(Math.round(usualRecords))}`;

function reasonBeforeLaunch({
  noSlot = 0,
  overBudget = 0,
  throttled = 0,
  othersThrottled = 0,
  renewedInputs = 0,
  lostInputs = 0,
}: Facts): string {
  const whiles = [
    ...(overBudget > 0 ? ['the job lacked the dollars for it'] : []),
    ...(noSlot > 0 ? ['the job had no slot free'] : []),
    ...(renewedInputs > 0 ? ['what it reads was gone and was made again'] : []),
    ...(lostInputs > 0 ? ['what it reads was gone and was to be made again'] : []),
  ];
  const fewer =
    noSlot > 0 && othersThrottled > 0
      ? `: the host's limits had refused ${plural(othersThrottled, 'launch', 'launches')}, and fewer were tried`
      : '';
  const refused = refusedText({ throttled });
  return `${whiles.length === 0 ? '' : `, while ${whiles.join(', or ')}`}${fewer}${refused}`;
}

const refusedText = ({ throttled = 0 }: Facts): string =>
  throttled > 0 ? `; its launch was refused ${plural(throttled, 'time')} by the host's limits` : '';

/** A host that had started its node before had nothing to start: then it waited in the queue alone. */
function waitedFor(facts: Facts): string {
  const why = refusedText(facts);
  return (facts['warm'] ?? 0) > 0
    ? `for its worker, which had run before: in the host's queue, not for a start${why}`
    : `for its worker, in the host's queue or for its start: the job had not used it before${why}`;
}

const waitedText = ({ jobOver = 0 }: Facts, took: string): string =>
  jobOver > 0
    ? `had waited ${took} for its next attempt as the job ended`
    : `has waited ${took} for its next attempt`;

type Attempts = ExplainedTask['attempts'];

const failedText = (attempts: Attempts, attemptId: string): string =>
  `${attemptId} ${failureText(attempts[placeOf(attempts, attemptId)] ?? { end: 'failed' })}`;

const placeOf = (attempts: Attempts, attemptId: string): number =>
  attempts.findIndex((each) => each.attemptId === attemptId);

/** Where among them the last attempt before one is that won, or made a lost output again; -1 for none. */
const doneBefore = (attempts: Attempts, place: number): number =>
  attempts.findLastIndex(({ end }, each) => each < place && (end === 'won' || end === 'again'));

/** The attempts that an attempt came after; of one that makes a lost output again those since the loss. */
function attemptsBefore(attempts: Attempts, attemptId: string): Attempts {
  const place = placeOf(attempts, attemptId);
  return attempts.slice(doneBefore(attempts, place) + 1, place);
}

const hasFailed = ({ end }: Attempts[number]): boolean => end === 'failed' || end === 'lost';

function failuresText(attempts: Attempts, before: string): string {
  const failed = attemptsBefore(attempts, before).filter(hasFailed);
  if (failed.length === 0) return 'those before it came to nothing';
  return failed.map((each) => `${each.attemptId} ${failureText(each)}`).join(', and ');
}

/** What became of the attempts before a copy: some may have failed before there was one that lagged. */
const cameBeforeText = (attempts: Attempts, copy: string): string =>
  attemptsBefore(attempts, copy)
    .map((each) => `${each.attemptId} ${hasFailed(each) ? failureText(each) : laggedText(each)}`)
    .join(', and ');

const laggedText = ({ stopReason }: Attempts[number]): string =>
  stopReason === 'outlasts-lambda' ? `was told to stop, as ${stopWords[stopReason]}` : 'lagged';

const owedReasons: readonly unknown[] = ['first', 'retry', 'recompute'] satisfies LaunchReason[];

/** Whether an attempt was launched beside others, as far as is known, and not since its task had none. */
const isCopy = (attempts: Attempts, id: string): boolean =>
  !owedReasons.includes(attempts.find(({ attemptId }) => attemptId === id)?.reason);

/** Why an attempt was told to stop. */
export const stopWords: Readonly<Record<CancelReason, string>> = {
  'sibling-won': 'another attempt of its task had won',
  'job-cancelled': 'the job was cancelled',
  'job-failed': 'the job had failed',
  restarted: 'a new attempt was to end sooner',
  pruned: 'others of its task were ahead',
  preempted: 'a smaller job was given its slot',
  'outlasts-lambda': 'it would not have been done when Lambda ends it',
};

/** Why an attempt was given up, as a part of a sentence. */
const lossWords: Readonly<Record<LossReason, string>> = {
  unclaimed: 'no worker took it up',
  silent: 'its worker stopped reporting',
  unheard: 'its worker did not stop as it was told to',
  unreadable: 'its record could not be read',
};

export const lossText = (reason: string): string => ownValue(lossWords, reason) ?? reason;

/** What a host or a program said, as a part of a sentence: on one line, without a full stop of its own. */
export const saidText = (message: string): string => oneLine(message).replace(/(?<!\.)\.$/, '');

/** How an attempt came to nothing: `failed (user-code: …)`. */
export function failureText({
  end,
  failure,
  givenUp,
}: Pick<ExplainedTask['attempts'][number], 'end' | 'failure' | 'givenUp'>): string {
  if (failure?.cause === 'declined') return `was declined (${saidText(failure.message)})`;
  const verb = end === 'lost' ? 'was lost' : 'failed';
  if (failure !== undefined) return `${verb} (${failure.cause}: ${saidText(failure.message)})`;
  return givenUp === undefined ? verb : `${verb} (${lossText(givenUp)})`;
}

function slowText({ slowness = 0, runMs, reportedMs, expectedMs, readShare }: Facts): string {
  const times = factorText(slowness);
  if (readShare === undefined)
    return `it took ${times} times what is usual for its input (${formatDuration(runMs)} against ${formatDuration(expectedMs)})`;
  const since =
    reportedMs === undefined ? ', and' : `, had run for ${formatDuration(runMs)} when it was seen last, and`;
  return `after ${formatDuration(reportedMs ?? runMs)} it had read ${String(Math.round(readShare * 100))} % of its input${since} was to take ${times} times what is usual`;
}

const evidenceWords: Readonly<Record<NodeEvidence, (facts: Facts) => string>> = {
  'every-phase': ({ startFactor = 0, restFactor = 0, firstStartFactor, firstRestFactor = 0 }) =>
    firstStartFactor === undefined
      ? `its start, which reads no input, took ${factorText(startFactor)} times the usual, and the rest ${factorText(restFactor)} times`
      : `its start, which reads no input, took ${factorText(firstStartFactor)} times as long as that of first attempts on other nodes, and the rest ${factorText(firstRestFactor)} times`,
  'other-tasks': ({ otherTasks = 0, otherTasksSlowness = 0 }) =>
    `${plural(otherTasks, 'other attempt')} there took ${factorText(otherTasksSlowness)} times the usual in the median`,
  'same-task': ({ elsewhereSlowness = 0 }) =>
    `the same task took ${factorText(elsewhereSlowness)} times the usual on another node`,
};

const evidenceText = ({ evidence = [], facts }: ExplainedCause): string =>
  evidence.map((each) => evidenceWords[each](facts)).join('; ');

const phaseText = {
  'slow-start': 'took long to start',
  'slow-read': 'read slowly',
  'slow-compute': 'computed for long',
  'slow-write': 'wrote slowly',
} as const;

/** Nothing but another run of the task, or of others on its node, tells dear records from a slow processor. */
const computeDoubt = ({ otherTasks = 0, otherTasksSlowness }: Facts): string =>
  otherTasks > 0 && otherTasksSlowness !== undefined
    ? ` ${plural(otherTasks, 'other attempt')} on its node took ${factorText(otherTasksSlowness)} times the usual: its records seem to be dearer.`
    : ' Whether its records are dearer or its node was slow, the records do not tell.';
