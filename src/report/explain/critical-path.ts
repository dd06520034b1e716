import type { PathSpan } from '../../contracts/explanation.ts';
import type { JobRecord } from '../../contracts/records.ts';
import { type AttemptRun, endOf } from './attempt-runs.ts';
import { decidingRun, type TaskRuns } from './task-causes.ts';

/**
 * The tasks that ended last, one of each stage on the way, first stage first.
 *
 * @param end - the stage that the way leads to; absent: the one that ended last.
 */
export function lastTasks(
  { spec }: Pick<JobRecord, 'spec'>,
  lastOf: ReadonlyMap<string, TaskRuns>,
  end?: string,
): readonly TaskRuns[] {
  const endMs = (stage: string): number => {
    const task = lastOf.get(stage);
    const run = task && decidingRun(task);
    return run === undefined ? -Infinity : endOf(run);
  };
  const latest = (stages: readonly string[]): string | undefined =>
    stages.filter((stage) => lastOf.has(stage)).toSorted((a, b) => endMs(b) - endMs(a))[0];
  const upstream = new Map(
    spec.stages.map(({ name, inputs }) => [
      name,
      inputs.flatMap((input) => ('stage' in input ? [input.stage] : [])),
    ]),
  );
  const path: TaskRuns[] = [];
  let next = end ?? latest([...lastOf.keys()]);
  // A graph of stages has no cycles; a damaged record may.
  for (let steps = 0; next !== undefined && steps <= spec.stages.length; steps++) {
    const task = lastOf.get(next);
    if (task !== undefined) path.unshift(task);
    next = latest(upstream.get(next) ?? []);
  }
  return path;
}

interface Marks {
  readonly createdAt: number;
  readonly endedAt: number;
  /** When stages were opened, as far as that is known. */
  readonly opened: ReadonlyMap<string, number>;
  /** Whether the job goes on, so that `endedAt` is now. */
  readonly isRunning: boolean;
  /** A stage that was opened and of which nothing was launched; absent where there is none. */
  readonly waiting?: string;
}

/**
 * The way of a job from its submission to its end, through the task of each stage that ended last. Its spans follow one
 * another and add up to the whole; those of no length are left out. Clocks of different machines may disagree by a little:
 * a span ends no sooner than it began, and takes that from the next.
 */
export function criticalPath(
  tasks: readonly TaskRuns[],
  { createdAt, endedAt, opened, isRunning, waiting }: Marks,
): readonly PathSpan[] {
  const spans: PathSpan[] = [];
  let at = createdAt;
  const until = (end: number, kind: PathSpan['kind'], where: Partial<PathSpan> = {}): void => {
    const to = Math.min(endedAt, Math.max(at, end));
    if (to > at) spans.push({ kind, ms: to - at, ...where });
    at = to;
  };
  for (const [place, task] of tasks.entries()) {
    const [first] = task.runs;
    const run = decidingRun(task);
    if (first === undefined || run === undefined) continue;
    const { stage } = first;
    // Until the first stage is opened, the job is planned; where that is not known, until its first launch.
    if (place === 0) until(opened.get(stage) ?? first.attempt.launchedAt, 'plan');
    until(first.attempt.launchedAt, 'before-launch', { stage, attemptId: first.attempt.attemptId });
    until(run.attempt.launchedAt, 'earlier-attempts', {
      ...{ stage, attemptId: first.attempt.attemptId },
      ...(run !== task.winner ? { to: run.attempt.attemptId } : {}),
    });
    alongRun(run, until);
  }
  const { waits } = tasks.at(-1) ?? {};
  if (waiting === undefined && waits !== undefined) {
    const { attempt, stage } = waits.after;
    // Given up, it may have been silent before.
    until(waits.since, 'wait');
    until(waits.until, 'wait', { stage, attemptId: attempt.attemptId });
  }
  if (waiting !== undefined) {
    if (tasks.length === 0) until(opened.get(waiting) ?? endedAt, 'plan');
    until(endedAt, 'before-launch', { stage: waiting });
  }
  until(endedAt, tasks.length === 0 ? 'plan' : isRunning ? 'wait' : 'end');
  return spans;
}

function alongRun(
  { attempt, stage, rideMs = 0, runMs = 0, unclaimedMs = 0 }: AttemptRun,
  until: (end: number, kind: PathSpan['kind'], where: Partial<PathSpan>) => void,
): void {
  const { attemptId, launchedAt, claimedAt } = attempt;
  const where = { stage, attemptId };
  if (claimedAt === undefined) {
    until(launchedAt + unclaimedMs, 'host-wait', where);
    return;
  }
  until(launchedAt + rideMs, 'ride', where);
  until(claimedAt, 'host-wait', where);
  until(claimedAt + runMs, 'run', where);
}
