import type { ExplainedAttempt, ToldAction, ToldRefusal } from '../../contracts/explanation.ts';
import type { LossKind } from '../../contracts/records.ts';
import type { AllocationReason, CopyOutput, RefusalReason } from '../../core/model/decision.ts';
import { ownValue } from '../../lib/own.ts';
import { formatCount, oneLine, plural } from '../format.ts';
import { lossText, stopWords } from './cause-sentences.ts';
import { factorText, factsText } from './facts-text.ts';

/** The time of day, UTC. */
export const timeText = (at: number): string => new Date(at).toISOString().slice(11, 19);

/** Why an attempt was launched, as a part of a sentence. */
export const launchWords: Readonly<Record<NonNullable<ExplainedAttempt['reason']>, string>> = {
  first: 'the first attempt',
  retry: 'launched again after one that came to nothing',
  recompute: 'launched since the output of its task was gone',
  restart: 'launched in place of one that was stopped for being slow',
  backup: 'a backup beside one that lagged',
  clone: 'a clone, launched from the start',
};

/** Why something was not done. What another version may have logged is told by its name. */
const refusalWords: Readonly<Record<RefusalReason, string>> = {
  'no-slot': 'the job had no slot free',
  'tick-full': 'the tick had enough to do',
  'backing-off': 'its next try was not due yet',
  'last-live-copy': 'it was the last attempt at work',
  'task-done': 'it was done by then',
  'copy-limit': 'it had as many copies as a task may have',
  'copy-cap': 'as many copies ran as may',
  'loss-limit': 'copies and kills had cost its stage as much as they may',
  'restart-limit': 'it was restarted as often as a task may be',
  'recent-copy': 'its last copy had not shown yet what it brings',
  'slow-node': 'none but slow nodes were free',
  'slow-zone': 'all zones where another attempt may run are slower',
  'input-explained': 'it was not slow for what it has to read, which no copy mends',
  'not-worth-it': 'another attempt would save too little, or too unlikely',
  'still-starting': 'it had not begun yet',
  'awaiting-copy': 'its clones wait for those of the stage that they read',
  'input-lost': 'what it reads was gone and was made again',
  budget: "the job's dollars did not suffice",
  'gives-way': 'the job meets its deadline without, and another lacks slots',
  'clone-budget': 'clones take as many slots as they may',
  utilization: 'too many slots were in use for clones',
  'replica-not-worth-it': 'its loss would cost less than the copy',
  'too-few-tokens': 'too few bytes may be copied',
  'precompute-budget': 'the time for outputs beside lost ones was used up',
  unmeasured: 'too few attempts have ended of late to tell how often they straggle',
  'deadline-slack': 'the job meets its deadline without clones',
};

/** What became of the slots that a job asks for as its own, for its deadline. */
const slotWords: Readonly<Record<AllocationReason, (slots: string) => string>> = {
  admitted: (slots) => `was given ${slots} of its own for its deadline`,
  adjusted: (slots) => `asked for ${slots} of its own from then on, by how far it was from its deadline`,
  'deadline-changed': (slots) => `asked for ${slots} of its own from then on, since its deadline was changed`,
  'best-effort': () =>
    'went on without slots of its own, since it could not meet its deadline with those that it might have',
  'wrong-forecast': () =>
    'went on without slots of its own, since it went otherwise than its forecast had said',
};

function slotSentence({ at, reason = '', facts }: ToldAction): string {
  const { slots = 0, ...others } = facts;
  const said = ownValue(slotWords, reason);
  const text =
    said === undefined
      ? `asked for slots of its own for its deadline (${reason})`
      : said(slots === 0 ? 'no slots' : plural(slots, 'slot'));
  return `${timeText(at)} the job ${text}${withFacts(others)}.`;
}

/** Why an output is copied, as a part of a sentence. */
const copyWords: Readonly<Record<CopyOutput['reason'], string>> = {
  worth: 'its loss was expected to cost more than the copy',
  spell: 'others were just lost where it lies',
};

/** How an output was found that was lost. */
const foundWords: Readonly<Record<LossKind, string>> = {
  missing: 'gone',
  short: 'cut short',
  damaged: 'changed',
  denied: 'closed to readers',
  unreachable: 'out of reach',
};

function lossSentence({ at, of = '', how, foundBy, readInstead, facts }: ToldAction): string {
  const found = how === undefined ? 'gone, cut short or changed' : (ownValue(foundWords, how) ?? how);
  const by = foundBy === undefined ? 'was found' : `${foundBy} found`;
  const instead = readInstead === undefined ? '' : `; ${readInstead} is read instead`;
  return `${timeText(at)} ${of} had left an output that ${by} ${found}${instead}${withFacts(facts)}.`;
}

const withFacts = (facts: ToldAction['facts']): string => {
  const text = factsText(facts);
  return text === '' ? '' : `: ${text}`;
};

const inZone = (zone: string | undefined): string => (zone === undefined ? '' : ` in ${zone}`);

const actionWords = {
  retry: 'was launched again, after an attempt that came to nothing',
  recompute: 'was launched since the output of its task was gone',
  copy: 'was to have its output copied',
  restart: 'was launched in place of a slow attempt',
  backup: 'was launched as a backup',
  clone: 'was launched as a clone',
  'give-up': 'was given up',
  decline: 'was declined by its worker, whose node its launch says to avoid',
  'clone-stage': 'was to be cloned',
  'take-clones': 'lost its clones to a smaller job',
  split:
    'had so much more to read than is usual, which no copy mends, that its partition was split among tasks',
  place: 'had its tasks sent to zones by where their input lies',
} as const;

/** What was done where an attempt went on with the work of one before it, which had to end. */
const goesOn = (attempt: number): string =>
  `was launched again, to go on where attempt ${String(attempt)} had to end`;

const endWords: Readonly<Record<ExplainedAttempt['end'], string>> = {
  won: 'It won.',
  second: 'It came second, and its output was kept.',
  again: 'It made that output again.',
  stopped: 'It came second, or was stopped.',
  failed: 'It failed.',
  lost: 'It was lost.',
  open: 'It was open when it was seen last.',
};

/** Whether first attempts were sent somewhere: those of a stage that went the same way are told together. */
const isSent = ({ kind }: ToldAction): boolean => kind === 'steer' || kind === 'move';

/** Which way first attempts of one stage were sent. */
const sentTo = ({ kind, of = '', zone = '', worker = '' }: ToldAction): string =>
  `${kind} ${of.split('/')[0] ?? ''} ${zone} ${worker}`;

/** Which attempts were sent so: those of a wide stage are logged together, by the name of their stage. */
function sentWords(of: string, all: readonly ToldAction[]): string {
  const count = all.reduce((sum, { facts }) => sum + (facts['attempts'] ?? 1), 0);
  if (!of.includes('/')) return `${plural(count, 'first attempt')} of ${of}`;
  return count === 1 ? of : `${of} and ${plural(count - 1, 'first attempt')} after it`;
}

/** Where first attempts that were sent the same way are told together, which of them are told, and with whom. */
type Sent = ReadonlyMap<string, readonly ToldAction[]>;

/** What is told of all that were sent the same way, with the numbers of the first. */
function sentSentence(action: ToldAction, all: readonly ToldAction[]): string {
  const { at, kind, of = '', zone, worker, facts } = action;
  const who = `${timeText(at)} ${sentWords(of, all)}`;
  if (kind === 'move') {
    const why = facts['lambdaMs'] === undefined ? '' : ', to have more time than Lambda gives';
    return `${who} went to ${worker ?? 'another worker'}${inZone(zone)}${why}${withFacts(facts)}.`;
  }
  return `${who} went to ${zone ?? 'another zone'}, since tasks are slower in ${zone === undefined ? 'one' : 'another zone'}${withFacts(facts)}.`;
}

function sentencesOf(action: ToldAction, sent: Sent): readonly string[] {
  const { at, kind, of = '', reason = '', zone, worker, takenUp, facts, end } = action;
  const head = `${timeText(at)} `;
  if (kind === 'steer' || kind === 'move') {
    const all = sent.get(sentTo(action)) ?? [];
    return all[0] === action ? [sentSentence(action, all)] : [];
  }
  if (kind === 'slots') return [slotSentence(action)];
  if (kind === 'lose-output') return [lossSentence(action)];
  if (kind === 'nothing-copied')
    return [`${head}the job copied no outputs, since ${oneLine(reason)}${withFacts(facts)}.`];
  if (kind === 'stop') {
    if (reason === 'sibling-won') return [];
    return [`${head}${of} was told to stop${becauseOf(kind, reason)}${withFacts(facts)}.`];
  }
  const after = end === undefined || kind === 'give-up' || kind === 'copy' ? '' : ` ${endWords[end]}`;
  if (kind === 'decline')
    return [`${head}${of} ${actionWords[kind]}${becauseOf(kind, reason)}${avoidedText(facts)}.`];
  const did = takenUp === undefined || kind !== 'retry' ? actionWords[kind] : goesOn(takenUp);
  const on = worker === undefined ? '' : `, on ${worker}`;
  return [`${head}${of} ${did}${becauseOf(kind, reason)}${on}${inZone(zone)}${withFacts(facts)}.${after}`];
}

/** Why a node is avoided; nothing where the log does not tell. */
function avoidedText({ slowdown, attempts, failedThere }: ToldAction['facts']): string {
  if (failedThere !== undefined) return `: ${plural(failedThere, 'attempt')} of its task failed there`;
  if (attempts === undefined) return '';
  const there = `: ${plural(attempts, 'attempt')} there `;
  return slowdown === undefined
    ? `${there}ended with ${attempts === 1 ? 'its process' : 'their processes'}, and none well`
    : `${there}took at least ${factorText(slowdown)} times the usual`;
}

function becauseOf(kind: ToldAction['kind'], reason: string): string {
  switch (kind) {
    case 'give-up':
      return `, since ${lossText(reason)}`;
    case 'stop':
      return `, since ${ownValue(stopWords, reason) ?? reason}`;
    case 'copy':
      return `, since ${ownValue(copyWords, reason) ?? reason}`;
    case 'decline':
    case 'place':
      return ` (${reason})`;
    default:
      return '';
  }
}

/** So many actions are told one by one; of more, so many of each kind and reason, and the others are counted. */
const actionsTold = 20;
const toldOfKind = 3;

/** Kinds of which the reason is one of a few: nodes and zones are not. */
const byReason: ReadonlySet<ToldAction['kind']> = new Set<ToldAction['kind']>([
  'stop',
  'give-up',
  'copy',
  'slots',
]);

/** What things of a kind are called, one and many. */
const nouns: Readonly<Record<ToldAction['kind'], readonly [string, string]>> = {
  retry: ['retry', 'retries'],
  recompute: ['launch for a lost output', 'launches for lost outputs'],
  'lose-output': ['lost output', 'lost outputs'],
  copy: ['copy of an output', 'copies of outputs'],
  'nothing-copied': ['reason to copy nothing', 'reasons to copy nothing'],
  restart: ['restart', 'restarts'],
  backup: ['backup', 'backups'],
  clone: ['clone', 'clones'],
  stop: ['stop', 'stops'],
  'give-up': ['attempt given up', 'attempts given up'],
  decline: ['declined attempt', 'declined attempts'],
  'clone-stage': ['cloned stage', 'cloned stages'],
  'take-clones': ['stage without its clones', 'stages without their clones'],
  split: ['split partition', 'split partitions'],
  place: ['placed stage', 'placed stages'],
  steer: ['zone chosen for first attempts', 'zones chosen for first attempts'],
  move: ['worker chosen for first attempts', 'workers chosen for first attempts'],
  slots: ['change of its slots', 'changes of its slots'],
};

/** Kinds that launch an attempt beside or after another, so that it counts how many of them won. */
const launching: ReadonlySet<ToldAction['kind']> = new Set<ToldAction['kind']>([
  'retry',
  'restart',
  'backup',
  'clone',
]);

/** How many of the attempts that are not told of one by one came first; nothing where that is not known. */
function winsText(kind: ToldAction['kind'], rest: readonly ToldAction[]): string {
  if (!launching.has(kind) || rest.every(({ end }) => end === undefined)) return '';
  const won = rest.filter(({ end }) => end === 'won').length;
  if (rest.length === 1) return won === 1 ? ', which won' : ', which did not win';
  return `, of which ${won === 0 ? 'none' : formatCount(won)} won`;
}

/** Things of one kind, and where that has some, one reason, that are counted and not told one by one. */
function moreText(rest: readonly ToldAction[]): string {
  const [first] = rest;
  if (first === undefined) return '';
  const { kind, reason = '' } = first;
  const why = byReason.has(kind) ? becauseOf(kind, reason) : '';
  const [one, many] = nouns[kind];
  const count = formatCount(rest.length);
  return `  and ${count} more ${rest.length === 1 ? one : many}${why}${winsText(kind, rest)}.`;
}

/** Each scheduler of a job says anew why nothing is copied. */
function saidOnce(actions: readonly ToldAction[]): readonly ToldAction[] {
  const said = new Set<string>();
  return actions.filter(({ kind, reason = '' }) => {
    if (kind !== 'nothing-copied') return true;
    const isNew = !said.has(reason);
    said.add(reason);
    return isNew;
  });
}

/** Launches without the end of those that were declined: that is told by itself. */
function withoutDeclined(actions: readonly ToldAction[]): readonly ToldAction[] {
  const declined = new Set(actions.flatMap(({ kind, of }) => (kind === 'decline' ? [of] : [])));
  if (declined.size === 0) return actions;
  return actions.map((action) => {
    const { end, ...rest } = action;
    return end !== undefined && declined.has(action.of) ? rest : action;
  });
}

/**
 * What was done, one sentence each; stops of attempts whose sibling had won go without saying, and first attempts that
 * were sent to a zone or to Fargate are told with the first of them. Of many the first of each kind and reason are told.
 */
export function actionSentences(actions: readonly ToldAction[]): readonly string[] {
  const all = withoutDeclined(actions);
  const sent = Map.groupBy(all.filter(isSent), sentTo);
  const told = saidOnce(all).flatMap((action) =>
    sentencesOf(action, sent).map((sentence) => ({ action, sentence })),
  );
  if (told.length <= actionsTold) return told.map(({ sentence }) => sentence);
  const alike = Map.groupBy(told, ({ action: { kind, reason = '' } }) =>
    byReason.has(kind) ? `${kind}, ${reason}` : kind,
  );
  return [...alike.values()].flatMap((each) => {
    const rest = each.slice(toldOfKind).map(({ action }) => action);
    return [
      ...each.slice(0, toldOfKind).map(({ sentence }) => sentence),
      ...(rest.length === 0 ? [] : [moreText(rest)]),
    ];
  });
}

/** Refusals of one reason that are told with their numbers; more are counted. */
const toldOfReason = 3;

/** What a whole stage is refused, by reason: its first task stands for it in the log. */
const refusedToStages: ReadonlyMap<string, string> = new Map<RefusalReason, string>([
  ['clone-budget', 'clones'],
  ['utilization', 'clones'],
  ['unmeasured', 'clones'],
  ['deadline-slack', 'clones'],
  ['replica-not-worth-it', 'copies of outputs'],
  ['too-few-tokens', 'copies of outputs'],
  ['precompute-budget', 'copies of outputs'],
]);

function proposals(count: number, reason: string): string {
  const what = refusedToStages.get(reason);
  return what === undefined ? plural(count, 'proposal') : `${what} of ${plural(count, 'stage')}`;
}

/** What a refusal is of: a task, or where it is of a whole stage, that. */
const refusedOf = ({ task, reason }: ToldRefusal): string =>
  refusedToStages.has(reason) ? (task.split('/')[0] ?? task) : task;

/** Of what a whole stage is refused, its latest refusal: each scheduler of a job says it anew, and of a dearer output. */
function latestOf(reason: string, all: readonly ToldRefusal[]): readonly ToldRefusal[] {
  return refusedToStages.has(reason)
    ? [...new Map(all.map((each) => [refusedOf(each), each])).values()]
    : all;
}

/** What was declined, by reason, the most frequent first: how often, and of some the numbers. */
export function refusalSentences(declined: readonly ToldRefusal[]): readonly string[] {
  return [...Map.groupBy(declined, ({ reason }) => reason)]
    .map(([reason, all]) => [reason, latestOf(reason, all)] as const)
    .toSorted(([, a], [, b]) => b.length - a.length)
    .flatMap(([reason, all]) => {
      const why = ownValue(refusalWords, reason) ?? reason;
      // What has no numbers was owed and not proposed: it waited, and nobody weighed it.
      const waited = all.filter(({ facts }) => Object.keys(facts).length === 0);
      const weighed = all.filter(({ facts }) => Object.keys(facts).length > 0);
      return [
        ...(weighed.length === 0
          ? []
          : [
              `${proposals(weighed.length, reason)}, since ${why} (${reason}):`,
              ...weighed
                .slice(0, toldOfReason)
                .map(
                  (each) =>
                    `  ${timeText(each.at)} ${refusedOf(each)}${inZone(each.zone)}${withFacts(each.facts)}.`,
                ),
              ...(weighed.length > toldOfReason
                ? [`  and ${String(weighed.length - toldOfReason)} more.`]
                : []),
            ]),
        ...(waited.length === 0
          ? []
          : [
              `${plural(waited.length, 'launch', 'launches')} that had to wait, since ${why} (${reason}): ${waited
                .slice(0, toldOfReason)
                .map(({ at, task }) => `${task} at ${timeText(at)}`)
                .join(', ')}${waited.length > toldOfReason ? ', …' : ''}.`,
            ]),
      ];
    });
}
