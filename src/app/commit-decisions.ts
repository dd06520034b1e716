import { LeaseHeldError } from '../contracts/errors.ts';
import type { EpochMs } from '../contracts/units.ts';
import { type TickDecision, applyDecisions } from '../core/decide-tick.ts';
import type { Decision } from '../core/model/decision.ts';
import type { JobState } from '../core/model/job-view.ts';
import { stageAt } from '../core/model/job-state.ts';
import type { OpenedStage } from '../core/replay/journal-lines.ts';
import { prepareStage } from './open-stage.ts';
import { queueLaunches } from './make-launches.ts';
import { performDecisions } from './perform-decisions.ts';
import { noteTold, queueCopy } from './protect-outputs.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Session } from './scheduler-session.ts';

/** Takes decisions over into the state of the job, and prepares the stages that they open. */
export function apply(session: Session, decisions: readonly Decision[], now: EpochMs): void {
  applyDecisions(session.state, decisions, {
    now,
    openStage: (stage) =>
      session.openStages.set(stage, prepareStage(session.state, session.plan, stage, now)),
  });
}

/** What the tasks of the stages read from stages that these decisions have opened, which follows from no decision. */
export function opened(
  state: JobState,
  decisions: readonly Decision[],
): { readonly opened?: readonly OpenedStage[] } {
  const stages = decisions.flatMap((each): OpenedStage[] => {
    if (each.kind !== 'open-stage') return [];
    const { tasks, shape } = stageAt(state, each.stage);
    return [[each.stage, tasks.map(({ inputBytes, index }) => inputBytes - (shape.sourceBytes[index] ?? 0))]];
  });
  return stages.length === 0 ? {} : { opened: stages };
}

/** Does what was decided and committed. Launches are made in their turn, beside this tick and later ones. */
export async function perform(
  deps: SchedulerDeps,
  session: Session,
  decisions: readonly Decision[],
  now: EpochMs,
): Promise<void> {
  await performDecisions(deps, session, decisions, now);
  for (const each of decisions) if (each.kind === 'copy-output') queueCopy(deps, session, each.attemptId);
  queueLaunches(session, decisions);
}

/** Commits what a tick decided under the next version. Throws `LeaseHeldError` where another has taken over. */
export async function append(
  deps: SchedulerDeps,
  session: Session,
  decided: Pick<TickDecision, 'decisions' | 'refusals'>,
  now: EpochMs,
): Promise<void> {
  const entry = {
    version: session.version + 1,
    epoch: session.epoch,
    at: now,
    decisions: [...decided.decisions, ...decided.refusals],
  };
  if ((await deps.decisions.append(session.jobId, entry)) === 'stale') {
    throw new LeaseHeldError('another scheduler has taken over', {
      jobId: session.jobId,
      version: entry.version,
    });
  }
  session.version += 1;
  noteTold(session, decided.refusals);
}
