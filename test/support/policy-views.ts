import { attemptIdOf } from '../../src/contracts/ids.ts';
import type { Worker } from '../../src/contracts/job-spec.ts';
import type { Progress } from '../../src/contracts/progress.ts';
import { type PolicyConfigInput, policyConfigSchema } from '../../src/contracts/policy-config.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import {
  addAttempt,
  applyAttempt,
  applyResult,
  createJobState,
  openStage,
} from '../../src/core/model/job-state.ts';
import type { PolicyView, Proposal } from '../../src/core/policy/policy-set.ts';
import { runningTasks } from '../../src/core/policy/running-tasks.ts';
import { attemptRecord, progressOf, resultOf } from './job-states.ts';
import type { JobState } from '../../src/core/model/job-view.ts';

/** The time at which a built view is looked at. */
export const nowMs = 100_000_000;

export interface RunningSpec {
  readonly ranMs: number;
  readonly bytesRead: number;
  /** Records in each byte that it has read; absent: none are counted. */
  readonly density?: number;
  readonly node?: string;
  readonly zone?: string;
  /** Earlier reports as [run time, bytes read]; the last one is `ranMs` and `bytesRead`. */
  readonly before?: readonly (readonly [number, number])[];
  /** How long its last report is ago; it had run `ranMs` then. */
  readonly silentMs?: number;
  /** How long the claim came after the launch. */
  readonly lagMs?: number;
  /** How long it took to take up what an attempt before it had done, where one had. */
  readonly takeUpMs?: number;
}

export interface TaskSpec {
  readonly bytes?: number;
  /** Run time of the winner … */
  readonly doneMs?: number;
  /** Records in each byte that the winner read; absent: none are counted. */
  readonly density?: number;
  readonly node?: string;
  readonly zone?: string;
  /** … or the running copies; without either the task waits. */
  readonly running?: readonly RunningSpec[];
  /** The share of its input that an attempt before those has handed on: they have the rest to read. Absent: none has. */
  readonly handedOn?: number;
}

/** The same task a number of times. */
export const times = (count: number, task: TaskSpec): TaskSpec[] => Array.from({ length: count }, () => task);

/** Of one that has read all. */
const readAll = (bytes: number, density: number, ms: number): Progress =>
  progressOf(bytes, bytes, Math.round(density * bytes), ms);

function run(
  state: JobState,
  place: { task: number; number: number; bytes: number; takenUp?: Progress['takenUp'] },
  spec: RunningSpec,
): void {
  const id = attemptIdOf('map', place.task, place.number);
  const reportedAt = nowMs - (spec.silentMs ?? 0);
  const claimedAt = epochMs(reportedAt - spec.ranMs);
  addAttempt(state, id, place.number === 0 ? 'first' : 'backup', epochMs(claimedAt - (spec.lagMs ?? 0)));
  for (const [ranMs, bytesRead] of [...(spec.before ?? []), [spec.ranMs, spec.bytesRead] as const]) {
    const { takenUp } = place;
    const progress = {
      ...progressOf(bytesRead, place.bytes, Math.round((spec.density ?? 0) * bytesRead), ranMs),
      ...(takenUp === undefined ? {} : { takenUp: { ...takenUp, ms: spec.takeUpMs ?? 0 } }),
    };
    const record = attemptRecord(id, 'running', claimedAt + ranMs, {
      claimedAt,
      progress,
      node: spec.node ?? 'node',
      zone: spec.zone ?? 'zone',
    });
    applyAttempt(state, record, epochMs(claimedAt + ranMs));
  }
}

/** The attempts of a task that run, with the one before them, if that has handed on what it had done. */
function runAll(state: JobState, task: number, bytes: number, { running = [], handedOn }: TaskSpec): void {
  if (handedOn === undefined) {
    for (const [number, each] of running.entries()) run(state, { task, number, bytes }, each);
    return;
  }
  const id = attemptIdOf('map', task, 0);
  const bytesDone = handedOn * bytes;
  addAttempt(state, id, 'first', epochMs(1_000));
  const record = attemptRecord(id, 'failed', 2_000, {
    ...{ claimedAt: epochMs(1_000), node: 'spot', progress: progressOf(bytesDone, bytes, 0, 1_000) },
    failure: { cause: 'interrupted', message: 'Spot' },
    saved: { dataBytes: 1, noteBytes: 1, noteCrc: 1, bytesDone, bytesTotal: bytes },
  });
  applyAttempt(state, record, epochMs(2_000));
  const takenUp = { attempt: 0, bytes: bytesDone };
  for (const [place, each] of running.entries())
    run(state, { task, number: place + 1, bytes: bytes - bytesDone, takenUp }, each);
}

/** A job of one open stage `map` with tasks as given. Finished ones were claimed as they were launched. */
export function jobOf(tasks: readonly TaskSpec[], kind: Worker['kind'] = 'lambda'): JobState {
  const sizes = tasks.map(({ bytes }) => bytes ?? 1_000_000);
  const state = createJobState([
    {
      ...{ name: 'map', tasks: tasks.length, upstream: [], sourceBytes: sizes },
      worker: { kind, size: 'medium' },
    },
  ]);
  openStage(state, 0, [], epochMs(0));
  for (const [task, spec] of tasks.entries()) {
    runAll(state, task, sizes[task] ?? 0, spec);
    if (spec.doneMs === undefined) continue;
    const id = attemptIdOf('map', task, 0);
    addAttempt(state, id, 'first', epochMs(1_000));
    const end = 1_000 + spec.doneMs;
    applyAttempt(
      state,
      attemptRecord(id, 'done', end, {
        ...{ claimedAt: epochMs(1_000), node: spec.node ?? 'node', zone: spec.zone ?? 'zone' },
        ...(spec.density === undefined
          ? {}
          : { progress: readAll(sizes[task] ?? 0, spec.density, spec.doneMs) }),
      }),
      epochMs(end),
    );
    applyResult(state, resultOf(id, end), epochMs(end));
  }
  state.justDone.length = 0;
  return state;
}

/** What a policy sees of such a job. `waiting` is derived; slots default to plenty; with zones it is on Fargate. */
export function viewOf(
  tasks: readonly TaskSpec[],
  more: {
    config?: PolicyConfigInput;
    free?: number;
    cluster?: number;
    reportMs?: number;
    zones?: readonly string[];
  } = {},
): PolicyView {
  const state = jobOf(tasks, more.zones === undefined ? 'lambda' : 'fargate');
  const waiting = tasks.filter(({ doneMs, running }) => doneMs === undefined && running === undefined).length;
  const free = more.free ?? 1_000;
  return {
    state,
    now: epochMs(nowMs),
    config: policyConfigSchema.parse(more.config ?? {}),
    runs: runningTasks(state, new Set()),
    slots: { granted: free + state.live.size, cluster: more.cluster ?? 1_000, free, waiting },
    reportMs: durationMs(more.reportMs ?? 0),
    zones: more.zones,
  };
}

/** Proposals as `kind task gain`, largest gain first. */
export const told = (proposals: readonly Proposal[]): string[] =>
  proposals
    .toSorted((a, b) => b.gainMs - a.gainMs || a.task.index - b.task.index)
    .map(({ kind, task, gainMs }) => `${kind} ${task.index} ${gainMs}`);
