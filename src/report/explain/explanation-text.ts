import type {
  ExplainedAttempt,
  ExplainedStage,
  ExplainedTask,
  Explanation,
  NotUsual,
  PathSpan,
} from '../../contracts/explanation.ts';
import { type FailureCause, finalJobStates } from '../../contracts/records.ts';
import {
  formatBytes,
  formatDollars,
  formatDuration,
  formatTime,
  oneLine,
  plural,
  shortNode,
} from '../format.ts';
import type { Style } from '../style.ts';
import { causeSentences, failureText, lossText, saidText, stopWords } from './cause-sentences.ts';
import { actionSentences, launchWords, refusalSentences, timeText } from './decision-sentences.ts';
import { factorText, factsText } from './facts-text.ts';

/** An explanation in sentences, line by line. */
export function renderExplanation(explanation: Explanation, style: Style): readonly string[] {
  const { about, stages, failures, actions, declined, cost, state, error } = explanation;
  const isTask = about?.includes('/') === true;
  const section = (title: string, lines: readonly string[]): readonly string[] =>
    lines.length === 0 ? [] : ['', style.heading(title), ...lines.map((line) => `  ${line}`)];
  return [
    headLine(explanation),
    ...(error === null ? [] : [`Why: ${oneLine(error)}`]),
    ...deadlineLines(explanation),
    ...budgetLines(explanation),
    ...logLines(explanation),
    ...section(
      'Where the time went',
      explanation.path.filter(isShown).map((span) => spanLine(span, state)),
    ),
    ...stages.flatMap((stage) =>
      section(
        `Stage ${stage.stage}`,
        isTask ? taskLines(stage, !isEnded(state)) : stageLines(stage, explanation),
      ),
    ),
    ...(isTask
      ? stages.flatMap(({ told }) =>
          told.flatMap(({ attempts }) => section('Its attempts', attempts.flatMap(attemptLines))),
        )
      : []),
    ...section('Slow nodes', explanation.slowNodes.map(nodeLine)),
    // Of one task, each attempt is told with what became of it.
    ...(isTask ? [] : section('What failed', failureLines(failures))),
    ...section('What was done', actionSentences(actions.filter(({ kind }) => kind !== 'nothing-copied'))),
    ...section('What was declined', [
      ...refusalSentences(declined),
      ...actionSentences(actions.filter(({ kind }) => kind === 'nothing-copied')),
    ]),
    ...section('What it cost', [costLine(cost, about)]),
  ];
}

function headLine({ jobId, state, policy, about, wallMs }: Explanation): string {
  const head = about === null ? jobId : `${about} of ${jobId}, which`;
  return `${head} ${stateText(state, formatDuration(wallMs))} (policy ${policy}).`;
}

function stateText(state: string, time: string): string {
  switch (state) {
    case 'submitted':
      return `was submitted ${time} ago`;
    case 'running':
      return `has been running for ${time}`;
    case 'cancelled':
      return `was cancelled after ${time}`;
    default:
      return `${state} after ${time}`;
  }
}

const isEnded = (state: string): boolean => finalJobStates.some((final) => final === state);

/** Of the job alone: a stage has none. */
function deadlineLines({ about, deadline, state }: Explanation): readonly string[] {
  if (about !== null || deadline === null) return [];
  const { at, isMet, lateMs } = deadline;
  const was = `Its deadline ${isMet === null ? 'is' : 'was'} ${formatTime(at)}`;
  if (isMet === null) return [`${was}.`];
  if (isMet) return [`${was}: it met it.`];
  if (!isEnded(state)) return [`${was}: it has passed, and the job goes on.`];
  return [
    `${was}: ${lateMs === undefined ? `the job ${state === 'cancelled' ? 'was cancelled' : state} before it` : `it ended ${formatDuration(lateMs)} late`}.`,
  ];
}

function budgetLines({ about, budget, state }: Explanation): readonly string[] {
  if (about !== null || budget === null) return [];
  const { dollars, overDollars } = budget;
  const isOver = isEnded(state);
  const spent = overDollars === undefined ? 'no more' : `${formatDollars(overDollars)} more`;
  return [
    `Its budget ${isOver ? 'was' : 'is'} ${formatDollars(dollars)}: it ${isOver ? '' : 'has '}cost ${spent}${isOver ? '' : ' so far'}.`,
  ];
}

const logWords = {
  part: 'The beginning of its log is gone: what was decided then, and why, is not told here.',
  none: 'Its log holds none of its decisions: lines that are not there yet, or have expired. What was decided, and why, is not told here.',
} as const;

function logLines({ log: { state, why } }: Explanation): readonly string[] {
  if (why !== undefined)
    return [`What was decided, and why, is ${state === 'unread' ? 'not' : 'only partly'} told here: ${why}`];
  return state === 'part' || state === 'none' ? [logWords[state]] : [];
}

const spanWords: Readonly<Record<PathSpan['kind'], (span: PathSpan, state: string) => string>> = {
  plan: () => 'to take the job up and plan it',
  'before-launch': ({ attemptId, stage = '' }) =>
    attemptId === undefined
      ? `in which no task of ${stage} was launched`
      : `before ${attemptId} was launched`,
  'earlier-attempts': ({ attemptId = '', to = 'the attempt that counted' }) =>
    `from the launch of ${attemptId} to that of ${to}`,
  ride: ({ attemptId = '' }) => `of ${attemptId}, which waited for tasks that rode with it`,
  'host-wait': ({ attemptId = '' }) => `of ${attemptId}, which waited for its worker`,
  run: ({ attemptId = '' }) => `of ${attemptId}, which ran`,
  wait: ({ attemptId }) =>
    attemptId === undefined
      ? 'in which none of its attempts was at work'
      : `after ${attemptId}, whose task waited for its next attempt`,
  end: (_span, state) => (state === 'succeeded' ? 'to publish the output and end' : 'to end'),
};

/** Less would be shown as 0.0s. */
const leastShown = 50;
const isShown = ({ ms }: PathSpan): boolean => ms >= leastShown;

const msColumn = 7;

const spanLine = (span: PathSpan, state: string): string =>
  `${formatDuration(span.ms).padStart(msColumn)}  ${oneLine(spanWords[span.kind](span, state))}`;

/** Of what a stage has too few, `yet` or for good. */
const notUsualWords: Readonly<Record<NotUsual, (yet: boolean) => string>> = {
  'few-tasks': () => 'too few',
  'few-won': (yet) => `of which too few ${yet ? 'have won yet' : 'won'}`,
  'few-reading': (yet) =>
    `of which too few ${yet ? 'have won yet that had anything to read' : 'had anything to read'}`,
  'few-timed': (yet) =>
    `of which too few ${yet ? 'have won yet that were timed' : 'were timed'} from the begin`,
};

/** @param goesOn - whether the job does, so that more may win. */
function usualLines(
  { usual, notUsual = 'few-won', tasks, done }: ExplainedStage,
  goesOn: boolean,
): readonly string[] {
  if (usual === null) {
    const why = notUsualWords[notUsual](goesOn && done < tasks);
    return [`It has ${plural(tasks, 'task')}, ${why} to say what is usual.`];
  }
  const { runMs, bytes, phaseMs } = usual;
  return [
    `A task usually runs for ${formatDuration(runMs)} (${phasesText(phaseMs)}) and reads ${formatBytes(bytes)}: medians of ${plural(usual.tasks, 'task')}.`,
  ];
}

/** Of one task, what held it up; its attempts come apart. */
function taskLines(stage: ExplainedStage, goesOn: boolean): readonly string[] {
  const [task] = stage.told;
  const usual = usualLines(stage, goesOn);
  if (task === undefined) return [...usual, 'No attempt of the task is known.'];
  const causes = causeSentences(task);
  return [...usual, ...(causes.length === 0 ? unheldLines('the task', task, stage, goesOn) : causes)];
}

function stageLines(
  stage: ExplainedStage,
  { failedTask, state }: Pick<Explanation, 'failedTask' | 'state'>,
): readonly string[] {
  const { last, told, stragglers, tasks, done } = stage;
  const others = told.filter(({ taskId }) => taskId !== last);
  const lastTask = told.find(({ taskId }) => taskId === last);
  const lastCauses = lastTask === undefined ? [] : causeSentences(lastTask);
  const untold = stragglers - told.filter(({ straggler }) => straggler).length;
  return [
    ...(done < tasks
      ? [`${String(done)} of ${plural(tasks, 'task')} ${tasks === 1 ? 'is' : 'are'} done.`]
      : []),
    ...usualLines(stage, !isEnded(state)),
    ...(lastTask === undefined
      ? ['No attempt of it is known.']
      : [
          lastTask.taskId === failedTask
            ? `The job failed over ${lastTask.taskId}, ${formatDuration(lastTask.totalMs)} after the stage began.`
            : !isDone(lastTask)
              ? `${lastTask.taskId} is not done ${formatDuration(lastTask.totalMs)} after the stage began.`
              : `${done < tasks ? `Of those that are done, the last was ${lastTask.taskId}` : `It ended with ${lastTask.taskId}`}, ${formatDuration(lastTask.totalMs)} after the stage began.`,
        ]),
    ...(lastCauses.length === 0 && lastTask !== undefined
      ? unheldLines('that task', lastTask, stage, !isEnded(state))
      : lastCauses),
    ...(stage.usual === null ? ranLines(lastTask) : []),
    ...others.flatMap(causeSentences),
    ...(untold > 0 ? [`${plural(untold, 'task')} more took over 1.5 times the usual.`] : []),
  ];
}

/** Of a task without a cause that took any time: of one that is not done it is said as long as it may still be. */
function unheldLines(
  name: string,
  task: ExplainedTask,
  { usual }: ExplainedStage,
  goesOn: boolean,
): readonly string[] {
  if (usual === null) return [];
  if (isDone(task)) return [`Nothing held ${name} up.`];
  return goesOn ? [`Nothing has held ${name} up so far.`] : [];
}

/** Whether it has its result, as far as is seen: of one whose output was lost, and that is done again, a cause says so. */
const isDone = ({ winner, causes }: ExplainedTask): boolean =>
  winner !== null && !causes.some(({ kind }) => kind === 'output-lost');

/** Where nobody can say what is usual, what the one that won spent its time on. */
function ranLines(task: ExplainedTask | undefined): readonly string[] {
  const won = task?.attempts.find(({ attemptId }) => attemptId === task.winner);
  if (won?.phaseMs === undefined) return [];
  return [`${won.attemptId} ran for ${formatDuration(won.runMs)} (${phasesText(won.phaseMs)}).`];
}

const phasesText = ({ init, read, compute, write }: NonNullable<ExplainedAttempt['phaseMs']>): string =>
  `start ${formatDuration(init)}, read ${formatDuration(read)}, compute ${formatDuration(compute)}, write ${formatDuration(write)}`;

/** How an attempt ended, after "it". */
function endText(attempt: ExplainedAttempt): string {
  const { end, stopReason } = attempt;
  const why = stopReason === undefined ? '' : `, since ${stopWords[stopReason]}`;
  switch (end) {
    case 'won':
      return 'won';
    case 'second':
      return 'was done after another, and its output was kept';
    case 'again':
      return 'made the output again that was lost';
    case 'stopped':
      return stopReason === undefined ? 'came second, or was stopped' : `was stopped${why}`;
    case 'failed':
    case 'lost':
      return failureText(attempt);
    case 'open':
      return stopReason === undefined
        ? attempt.claimedAt === undefined
          ? 'had not begun when it was seen last'
          : 'was at work when it was seen last'
        : `was told to stop${why}, and had not answered when it was seen last`;
  }
}

/** Failures that a host tells of, when a worker has ended. */
const workerEnds: ReadonlySet<string> = new Set<FailureCause>([
  'exited',
  'out-of-memory',
  'timeout',
  'interrupted',
]);

/** Of one that no worker has claimed: a worker may have had it all the same, and have ended before it could say so. */
function unclaimedText({ failure, unclaimedMs }: ExplainedAttempt): string {
  if (unclaimedMs !== undefined) return `had waited ${formatDuration(unclaimedMs)} for a worker`;
  return failure !== undefined && workerEnds.has(failure.cause)
    ? 'its worker ended before it had said that it began'
    : 'no worker took it up';
}

function attemptLines(attempt: ExplainedAttempt): readonly string[] {
  const {
    attemptId,
    reason,
    launchedAt,
    waitMs,
    rideMs = 0,
    runMs,
    phaseMs,
    bytesRead,
    bytesTotal = 0,
  } = attempt;
  const why =
    reason === null
      ? 'why it was launched, the log does not say'
      : reason === 'retry' && attempt.takenUp !== undefined
        ? 'launched again after one that had to end'
        : launchWords[reason];
  const facts = factsText(attempt.facts);
  const waited =
    waitMs === undefined
      ? unclaimedText(attempt)
      : `waited ${formatDuration(waitMs)}${rideMs > 0 ? ` (${formatDuration(rideMs)} for tasks that rode with it)` : ''}`;
  const ran =
    runMs === undefined
      ? ''
      : `, ran for ${formatDuration(runMs)}${phaseMs === undefined ? '' : ` (${phasesText(phaseMs)})`}`;
  const read =
    bytesRead === undefined
      ? ''
      : `, read ${formatBytes(bytesRead)} of ${formatBytes(Math.max(bytesRead, bytesTotal))}`;
  const where =
    attempt.node === undefined
      ? ''
      : `, on ${shortNode(attempt.node)} in ${oneLine(attempt.zone ?? 'an unknown zone')}`;
  const slow =
    attempt.slowness === undefined
      ? ''
      : ` That is ${factorText(attempt.slowness)} times the usual for its input.`;
  return [
    `${attemptId}, ${why}${facts === '' ? '' : ` (${facts})`}:`,
    `  launched at ${timeText(launchedAt)}, ${waited}${ran}${read}${where}.${slow}`,
    ...(attempt.takenUp === undefined ? [] : [takenUpLine(attempt.takenUp, bytesTotal)]),
    `  It ${endText(attempt)}.`,
  ];
}

const takenUpLine = (
  { attempt, bytes }: NonNullable<ExplainedAttempt['takenUp']>,
  bytesTotal: number,
): string =>
  `  It took up what attempt ${String(attempt)} had done when that had to end: ${formatBytes(bytes)} of ${formatBytes(bytes + bytesTotal)}.`;

const nodeLine = ({ node, slowness, attempts }: Explanation['slowNodes'][number]): string =>
  `${oneLine(node)}: up to ${factorText(slowness)} times slower than usual, shown by ${oneLine(attempts.slice(0, 5).join(', '))}${attempts.length > 5 ? ', …' : ''}.`;

/** Failures that are told one by one. */
const mostFailures = 10;

const failureLines = (failures: Explanation['failures']): readonly string[] => [
  ...failures.slice(0, mostFailures).map(failureLine),
  ...(failures.length > mostFailures ? [`and ${String(failures.length - mostFailures)} more.`] : []),
];

const failureLine = ({ attemptId, cause, message }: Explanation['failures'][number]): string => {
  const said = message === '' ? lossText(cause) : saidText(message);
  return `${oneLine(attemptId)}: ${cause}${said === cause ? '' : `, ${said}`}.`;
};

function costLine(
  { dollars, costs, workerMs, wonMs, otherMs, unheardMs }: Explanation['cost'],
  about: string | null,
): string {
  const parts = Object.entries(costs).map(([name, each]) => `${name} ${formatDollars(each)}`);
  const job =
    about === null
      ? `${formatDollars(dollars)}${parts.length === 0 ? '' : ` (${parts.join(', ')})`} and ${formatDuration(workerMs)} of workers. `
      : '';
  const lost = otherMs + unheardMs;
  const share = wonMs + lost === 0 ? '' : ` (${String(Math.round((100 * lost) / (wonMs + lost)))} %)`;
  const unheard =
    unheardMs < leastShown
      ? ''
      : ` and are billed at most ${formatDuration(unheardMs)} more, in which nothing was heard of them`;
  return `${job}Attempts that won ran for ${formatDuration(wonMs)}, all others for ${formatDuration(otherMs)}${unheard}${share}.`;
}
