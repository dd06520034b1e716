import { cancelReasons, launchReasons } from '../../contracts/decision-log.ts';
import type { ToldAction, ToldRefusal } from '../../contracts/explanation.ts';
import type { LogEvent } from '../log-lines.ts';

type Numbers = Readonly<Record<string, number>>;
type LaunchReason = (typeof launchReasons)[number];
type CancelReason = (typeof cancelReasons)[number];

/** What a job's log tells of its decisions. Ids are attempts', tasks' or stages', as they were logged. */
export interface ToldDecisions {
  /** By attempt: why it was launched, and by which numbers. */
  readonly launches: ReadonlyMap<string, { readonly reason: LaunchReason; readonly facts: Numbers }>;
  /** By attempt: why and when it was told to stop. */
  readonly stops: ReadonlyMap<string, { readonly reason: CancelReason; readonly at: number }>;
  readonly givenUp: ReadonlyMap<string, string>;
  /** Launches that the host refused for its limits, by time: of an attempt as often as it was. */
  readonly throttled: readonly { readonly at: number; readonly attemptId: string }[];
  /** By attempt, when it was launched for the last time: what the host has refused is launched again. */
  readonly launchedAt: ReadonlyMap<string, number>;
  /** By time, the stages whose inputs were there again after some of them were found gone. */
  readonly renewed: readonly { readonly at: number; readonly stage: string }[];
  /** Attempts that were done after another of their task, and whose output was kept all the same. */
  readonly seconds: ReadonlySet<string>;
  /** When a stage was opened. */
  readonly opened: ReadonlyMap<string, number>;
  readonly actions: readonly ToldAction[];
  readonly declined: readonly ToldRefusal[];
  readonly state: 'whole' | 'part' | 'none';
}

const numbersOf = (facts: LogEvent['facts']): Numbers =>
  Object.fromEntries(
    Object.entries(facts).filter((each): each is [string, number] => typeof each[1] === 'number'),
  );

const textOf = ({ facts }: LogEvent, name: string): string | undefined => {
  const value = facts[name];
  return typeof value === 'string' ? value : undefined;
};

/** Events that only decisions leave. */
const decisive = new Set(['stage-opened', 'launched', 'refused', 'told-to-stop', 'given-up', 'entered']);

/** Reads the decisions of a job out of its log, in any order of lines. Lines of other kinds tell nothing. */
export function readDecisions(events: readonly LogEvent[]): ToldDecisions {
  const sorted = events.toSorted((a, b) => a.at - b.at);
  const about = (name: string): readonly (LogEvent & { readonly about: string })[] =>
    sorted.filter(
      (each): each is LogEvent & { readonly about: string } =>
        each.event === name && each.about !== undefined,
    );
  const launched = [...about('launched'), ...about('launched-alone')];
  return {
    launches: new Map(
      launched.flatMap((event) => {
        const reason = launchReasons.find((each) => each === event.facts['reason']);
        return reason === undefined ? [] : [[event.about, { reason, facts: numbersOf(event.facts) }]];
      }),
    ),
    stops: new Map(
      about('told-to-stop').flatMap((event) => {
        const reason = cancelReasons.find((each) => each === event.facts['reason']);
        return reason === undefined ? [] : [[event.about, { reason, at: event.at }]];
      }),
    ),
    givenUp: new Map(about('given-up').map((event) => [event.about, textOf(event, 'reason') ?? 'unknown'])),
    throttled: about('throttled').map(({ at, about: attemptId }) => ({ at, attemptId })),
    launchedAt: new Map(launched.map(({ at, about: attemptId }) => [attemptId, at])),
    renewed: about('inputs-renewed').map(({ at, about: stage }) => ({ at, stage })),
    seconds: new Set(
      about('attempt-ended').flatMap(({ about: id, facts }) => (facts['outcome'] === 'replica' ? [id] : [])),
    ),
    opened: firstOf(about('stage-opened').map(({ about: id, at }) => [id, at])),
    actions: withReasons(withoutUnmade(sorted).flatMap(actionOf), sorted),
    declined: sorted.flatMap(refusalOf),
    state: stateOf(sorted),
  };
}

/** Declined attempts with why their nodes are avoided, where the log tells: how slow attempts there were, or that all died. */
function withReasons(actions: readonly ToldAction[], sorted: readonly LogEvent[]): readonly ToldAction[] {
  const avoided = new Map(
    sorted.flatMap((event) => {
      const node = event.event === 'node-avoided' ? textOf(event, 'node') : undefined;
      return node === undefined ? [] : [[node, numbersOf(event.facts)] as const];
    }),
  );
  if (avoided.size === 0) return actions;
  return actions.map((action) => {
    const why = action.kind === 'decline' ? avoided.get(action.reason ?? '') : undefined;
    return why === undefined ? action : { ...action, facts: { ...action.facts, ...why } };
  });
}

/** A log that begins with the planning of its job holds all; one without any decision holds none. */
function stateOf(sorted: readonly LogEvent[]): ToldDecisions['state'] {
  if (!sorted.some(({ event }) => event !== undefined && decisive.has(event))) return 'none';
  return sorted.some(({ event }) => event === 'planned') ? 'whole' : 'part';
}

/**
 * Events without the launches that came to nothing by themselves: a launch that the host refused is withdrawn and decided on
 * again, as is one of a scheduler that went before it was made. The last of an attempt counts, unless that was refused too.
 * Launches that were logged together are of as many attempts.
 */
function withoutUnmade(sorted: readonly LogEvent[]): readonly LogEvent[] {
  const last = new Map<string, LogEvent>();
  for (const event of sorted)
    if (event.about !== undefined && (event.event === 'launched' || event.event === 'throttled'))
      last.set(event.about, event);
  return sorted.filter(
    (event) =>
      event.event !== 'launched' ||
      event.about === undefined ||
      event.facts['attempts'] !== undefined ||
      last.get(event.about) === event,
  );
}

/** The first of each name: a scheduler that takes a job over opens its stages again. */
function firstOf(entries: readonly (readonly [string, number])[]): ReadonlyMap<string, number> {
  const first = new Map<string, number>();
  for (const [name, at] of entries) if (!first.has(name)) first.set(name, at);
  return first;
}

const kinds: Readonly<Record<string, ToldAction['kind']>> = {
  'told-to-stop': 'stop',
  'given-up': 'give-up',
  'attempt-declined': 'decline',
  'output-lost': 'lose-output',
  copied: 'copy',
  'nothing-copied': 'nothing-copied',
  cloned: 'clone-stage',
  'clones-preempted': 'take-clones',
  'partition-split': 'split',
  'stage-placed': 'place',
  allocated: 'slots',
};

/** What tells more of an action than its kind, where that is not its reason. */
const reasonFields: Readonly<Record<string, string>> = {
  'attempt-declined': 'node',
  'stage-placed': 'zones',
  'nothing-copied': 'why',
};

/** Fields of an event that an action tells as they are. */
const toldFields = ['zone', 'worker', 'how', 'foundBy', 'readInstead'] as const;

/** The fields of an event that hold a text, of those that are wanted. */
function fieldsOf<Name extends (typeof toldFields)[number]>(
  event: LogEvent,
  names: readonly Name[],
): { readonly [Field in Name]?: string } {
  const found = names.flatMap((name) => {
    const text = textOf(event, name);
    return text === undefined ? [] : [[name, text] as const];
  });
  return Object.fromEntries(found) as { readonly [Field in Name]?: string };
}

function actionOf(event: LogEvent): readonly ToldAction[] {
  const reason = textOf(event, reasonFields[event.event ?? ''] ?? 'reason');
  const kind = kindOf(event, reason);
  if (kind === undefined) return [];
  return [
    {
      at: event.at,
      kind,
      ...(event.about === undefined || kind === 'slots' ? {} : { of: event.about }),
      ...(reason === undefined ? {} : { reason }),
      ...fieldsOf(event, toldFields),
      facts: numbersOf(event.facts),
    },
  ];
}

function kindOf({ event = '', facts }: LogEvent, reason: string | undefined): ToldAction['kind'] | undefined {
  if (event !== 'launched') return kinds[event];
  switch (reason) {
    case 'retry':
    case 'recompute':
    case 'restart':
    case 'backup':
    case 'clone':
      return reason;
    case 'first':
      // It is told where that is not its stage's own.
      if (facts['worker'] !== undefined) return 'move';
      return facts['locationFactor'] === undefined ? undefined : 'steer';
    default:
      return undefined;
  }
}

/** Events of refusals. A `not-copied` without a reason is of a copy that failed. */
const refusalEvents: ReadonlySet<string> = new Set(['refused', 'not-cloned', 'not-copied']);

function refusalOf(event: LogEvent): readonly ToldRefusal[] {
  const reason = textOf(event, 'reason');
  if (!refusalEvents.has(event.event ?? '') || event.about === undefined || reason === undefined) return [];
  return [
    { at: event.at, task: event.about, reason, ...fieldsOf(event, ['zone']), facts: numbersOf(event.facts) },
  ];
}
