import { elapsedMs } from '../../../contracts/units.ts';
import { stageAt } from '../../model/job-state.ts';
import type { AttemptView, JobState, TaskView } from '../../model/job-view.ts';
import { isNeeded } from '../../model/lost-outputs.ts';
import { meanMs } from '../../model/stage-statistics.ts';
import { worksOf } from '../../model/taken-up.ts';
import { copiesOf, sourcesOf } from '../../model/upstream-copies.ts';
import { lossOfAll } from './loss-rate.ts';
import { RedoTimes } from './redo-time.ts';
import type { ReplicaCandidate } from './replicate.ts';

/** What is known of storage when outputs are valued. */
export interface RiskTerms {
  /** r of what an attempt has left, by its task and number: of a copy, that of where copies lie. */
  readonly lossOf: (task: TaskView, attempt: number) => number;
  /** r of where the next copy would lie. */
  readonly copyLoss: number;
  readonly copying: CopyTerms;
}

/** What copying takes. */
export interface CopyTerms {
  readonly copyLatencyMs: number;
  readonly copyBytesPerSecond: number;
}

/** t_rep: what it takes to copy so many bytes. */
export const copyMsOf = (bytes: number, { copyLatencyMs, copyBytesPerSecond }: CopyTerms): number =>
  copyLatencyMs + (bytes * 1_000) / copyBytesPerSecond;

/** An output of which there might be another copy. */
export interface OutputAtRisk extends ReplicaCandidate {
  readonly task: TaskView;
}

const ownMs = ({ claimedAt, endedAt }: AttemptView): number | undefined =>
  claimedAt === undefined || endedAt === undefined ? undefined : elapsedMs(claimedAt, endedAt);

/** What a task's result took to make: with the time of those whose work the winner took up, which goes with its output. */
function madeInMs(task: TaskView, winner: AttemptView): number | undefined {
  const own = ownMs(winner);
  if (own === undefined) return undefined;
  return worksOf(task, winner)
    .slice(1)
    .reduce((sum, each) => sum + (ownMs(each) ?? 0), own);
}

/** t_v: what a task's own execution took from its launch on; of one that was not seen to run, what its stage's do. */
function takesMs(state: JobState, task: TaskView): number {
  const { statistics } = stageAt(state, task.stage);
  const { result } = task;
  const winner = result === undefined ? undefined : state.attempts.get(result.attemptId);
  const { runMs, lag } = statistics;
  const own = winner === undefined ? undefined : madeInMs(task, winner);
  return (own ?? (runMs.size === 0 ? 0 : runMs.sum / runMs.size)) + meanMs(lag);
}

/**
 * What outputs of a job are worth, by its tasks as they stand and r as it is known now: made anew when either has
 * changed.
 *
 * Source: Mantri §5.3.
 */
export class OutputValues {
  private readonly terms: RiskTerms;
  private readonly redo: RedoTimes<TaskView>;

  constructor(state: JobState, terms: RiskTerms) {
    this.terms = terms;
    this.redo = new RedoTimes({
      takesMs: (task) => takesMs(state, task),
      lossProbability: (task) => this.lossOf(task),
      inputsOf(task) {
        const sources = sourcesOf(state, task);
        return {
          key: sources.map(({ producer, from, to }) => `${producer.index}/${from}/${to}`).join(),
          tasks: () => sources.flatMap(({ producer, from, to }) => producer.tasks.slice(from, to)),
        };
      },
    });
  }

  /** What a finished task's output is worth, and what another copy of it would cost. */
  valueOf(task: TaskView): OutputAtRisk {
    const bytes = task.result?.bytesOut ?? 0;
    const { copyLoss, copying } = this.terms;
    return {
      task,
      lossProbability: this.lossOf(task),
      copyLossProbability: copyLoss,
      redoMs: this.redo.of(task),
      copyMs: copyMsOf(bytes, copying),
      bytes,
    };
  }

  /** r over all copies of an output that are left; 1 where there are none. */
  private lossOf(task: TaskView): number {
    return lossOfAll(copiesOf(task).map((number) => this.terms.lossOf(task, number)));
  }
}

/** Whether a task's output lies where other tasks read it that are not done, and is not copied or about to be. */
export function isUnprotected(state: JobState, task: TaskView): boolean {
  const { result, replicas, stage } = task;
  if (result === undefined || result.bytesOut === 0 || replicas.length > 0) return false;
  if (state.copied.has(result.attemptId)) return false;
  // What the last one leaves nobody reads: it is published.
  return stage < state.stages.length - 1 && isNeeded(state, task);
}
