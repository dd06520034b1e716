import { elapsedMs } from '../../../contracts/units.ts';
import { ranMs, scoreOf } from '../../estimate/progress-rate.ts';
import type { Facts } from '../../model/decision.ts';
import { finiteMs } from '../merit.ts';
import type { PolicyView, Proposal, StageRuns } from '../policy-set.ts';
import type { AttemptView, TaskView } from '../../model/job-view.ts';

/** A task with one running attempt. */
export interface Uncopied {
  readonly task: TaskView;
  readonly attempt: AttemptView;
  /** Since its claim; 0 before. */
  readonly ranMs: number;
  /** Since its launch, on our clock. */
  readonly sinceLaunchMs: number;
  /** 0 before its first report. */
  readonly score: number;
}

/** The tasks of a stage that have one running attempt and thus may be copied by the rules that allow one copy. */
export function uncopied(runs: StageRuns, view: PolicyView): readonly Uncopied[] {
  return runs.tasks.flatMap(({ task, copies }) => {
    const [attempt] = copies;
    if (copies.length > 1) return [];
    return [
      {
        task,
        attempt,
        ranMs: ranMs(attempt, view.now),
        sinceLaunchMs: elapsedMs(attempt.launchedAt, view.now),
        score: scoreOf(attempt) ?? 0,
      },
    ];
  });
}

/** Fraction of a stage's tasks that have a result. */
export const doneFraction = ({ stage }: StageRuns): number =>
  stage.tasks.length === 0 ? 1 : stage.done / stage.tasks.length;

/** A copy that gives way to tasks that wait. `gainMs` ranks it. */
export const backup = (
  task: TaskView,
  gainMs: number,
  facts: Facts,
  avoidNodes: readonly string[] = [],
): Proposal => ({ kind: 'backup', task, gainMs: finiteMs(gainMs), urgent: false, avoidNodes, facts });
