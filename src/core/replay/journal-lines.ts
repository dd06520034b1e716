import type { JobId } from '../../contracts/ids.ts';
import type { PolicyConfig } from '../../contracts/policy-config.ts';
import type { AttemptRecord, TaskResult } from '../../contracts/records.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { outputPlace } from '../../contracts/worker-places.ts';
import type { TickOutcome } from '../model/decision.ts';
import { taskAt } from '../model/job-state.ts';
import type { JobState, LaunchOrder, StageShape } from '../model/job-view.ts';
import type { Observation } from '../model/observation.ts';
import { withoutHistory } from '../model/progress-history.ts';
import type { LaunchRoom, RefusedRoom, TickBudget, TickConfig } from '../model/tick-config.ts';

/** Version of what a journal's lines look like. One in another is not gone through. */
export const journalFormat = 1;

/** Begins what one scheduler has written: the job as it knew it before it had learned anything. */
export interface SessionLine {
  readonly kind: 'session';
  readonly format: number;
  readonly jobId: JobId;
  readonly epoch: number;
  readonly at: EpochMs;
  readonly shapes: readonly StageShape[];
  readonly launchOrder: LaunchOrder;
  readonly config: Omit<TickConfig, 'policy' | 'policyConfig'> & {
    readonly policy: string;
    readonly policyConfig: PolicyConfig;
  };
}

/** Bytes that the tasks of a stage read from stages, as they were when it was opened. */
export type OpenedStage = readonly [stage: number, inputBytes: readonly number[]];

/** An entry of the decision log that a scheduler which took the job over has followed. */
export interface EntryLine {
  readonly kind: 'entry';
  readonly version: number;
  readonly at: EpochMs;
  /** JSON of its decisions and refusals, as the log has it. */
  readonly decided: string;
  readonly opened?: readonly OpenedStage[];
}

/** The entry by which a scheduler has fenced off those before it: it repeats the last one's decisions. */
export interface FenceLine {
  readonly kind: 'fence';
  readonly version: number;
}

/** A decision: when, with what, and what it came to. Without a version nothing was decided, and nothing was logged. */
export interface TickLine {
  readonly kind: 'tick';
  readonly at: EpochMs;
  /** What the tick might use, as `encodeBudget` writes it; absent: as at the tick before. */
  readonly budget?: EncodedBudget;
  readonly version?: number;
  readonly decided?: string;
  /** Absent: the job goes on. */
  readonly outcome?: TickOutcome;
  readonly opened?: readonly OpenedStage[];
}

/** The last line of a scheduler that left in order, or why it wrote down no more. */
export interface EndLine {
  readonly kind: 'end';
  readonly why: 'left' | 'too-long';
}

export type JournalLine = SessionLine | EntryLine | FenceLine | TickLine | EndLine | Observation;

/** A tick's budget with places instead of tasks, and lists instead of sets and maps. */
export type EncodedBudget = Omit<TickBudget, 'own' | 'room' | 'freeNodes'> & {
  readonly room?: Omit<LaunchRoom, 'stages' | 'elsewhere' | 'refused'> & {
    readonly stages: readonly number[];
    readonly elsewhere?: readonly (readonly [stage: number, task: number])[];
    readonly refused?: Omit<RefusedRoom, 'stages'> & { readonly stages: readonly number[] };
  };
  readonly freeNodes?: readonly (readonly [node: string, slots: number])[];
};

const without = <T extends object, Name extends keyof T>(from: T, ...names: readonly Name[]): Omit<T, Name> =>
  Object.fromEntries(Object.entries(from).filter(([name]) => !names.includes(name as Name))) as Omit<T, Name>;

/** What follows from the job's state alone (`own`) is left out: whoever decides again finds it again. */
export function encodeBudget(budget: TickBudget): EncodedBudget {
  const { room, freeNodes } = budget;
  const others = without(budget, 'own', 'room', 'freeNodes');
  const elsewhere = [...(room?.elsewhere ?? [])].map(({ stage, index }) => [stage, index] as const);
  return {
    ...others,
    ...(room === undefined
      ? {}
      : {
          room: {
            launches: room.launches,
            stages: [...room.stages],
            ...(elsewhere.length === 0 ? {} : { elsewhere }),
            ...(room.refused && { refused: { ...room.refused, stages: [...room.refused.stages] } }),
          },
        }),
    ...(freeNodes === undefined ? {} : { freeNodes: [...freeNodes] }),
  };
}

/** What `encodeBudget` wrote, with the tasks of a state. */
export function decodeBudget({ room, freeNodes, ...others }: EncodedBudget, state: JobState): TickBudget {
  return {
    ...others,
    ...(room === undefined
      ? {}
      : {
          room: {
            launches: room.launches,
            stages: new Set(room.stages),
            elsewhere: new Set((room.elsewhere ?? []).map(([stage, task]) => taskAt(state, stage, task))),
            ...(room.refused && { refused: { ...room.refused, stages: new Set(room.refused.stages) } }),
          },
        }),
    ...(freeNodes === undefined ? {} : { freeNodes: new Map(freeNodes) }),
  };
}

/**
 * Of a result what no decision hangs on is left out: lists of partitions are long, and its progress is told with the record of
 * its attempt. A worker that keeps its output costs.
 */
const leanResult = (result: TaskResult): TaskResult => {
  const { taskId, attemptId, committedAt, bytesIn, bytesOut, recordsIn, recordsOut } = result;
  return {
    ...{ taskId, attemptId, committedAt, bytesIn, bytesOut, recordsIn, recordsOut, counters: {} },
    ...outputPlace(result),
  };
};

/** The record of an attempt whose reports are known tells nothing by telling them again. */
function leanRecord(record: AttemptRecord, isKnown: boolean): AttemptRecord {
  const others = without(record, 'invocation', 'upload');
  return isKnown && record.progress !== undefined
    ? { ...others, progress: withoutHistory(record.progress) }
    : others;
}

/** An observation without what no decision hangs on; `isKnown`: it is of an attempt of which there are reports. */
export function lean(seen: Observation, isKnown: boolean): Observation {
  switch (seen.kind) {
    case 'result':
    case 'replica':
      return { ...seen, result: leanResult(seen.result) };
    case 'attempt':
      return { ...seen, record: leanRecord(seen.record, isKnown) };
    default:
      return seen;
  }
}

const beyondAscii = /[\u007f-\uffff]/g;
/** JSON has no such numbers. */
const notFinite = 'not-finite';

/** A line of a journal: JSON in ASCII, whose text may be cut anywhere. */
export function encodeLine(line: JournalLine): string {
  const text = JSON.stringify(line, (_key, value: unknown) =>
    typeof value === 'number' && !Number.isFinite(value) ? { [notFinite]: String(value) } : value,
  );
  return `${text.replace(beyondAscii, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`;
}

/** What `encodeLine` wrote. Throws `SyntaxError` on anything that is no JSON. */
export function decodeLine(text: string): unknown {
  return JSON.parse(text, (_key, value: unknown) =>
    typeof value === 'object' && value !== null && notFinite in value && typeof value[notFinite] === 'string'
      ? Number(value[notFinite])
      : value,
  );
}
