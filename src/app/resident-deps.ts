import type { Roster } from '../ports/roster.ts';
import type { TaskAnswers } from '../ports/task-answers.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';

/** What a resident needs besides what it needs for each of its jobs. */
export interface ResidentDeps extends SchedulerDeps {
  readonly roster: Roster;
  readonly answers: TaskAnswers;
  /** Schedulers that may be resident at once. */
  readonly residents: number;
}
