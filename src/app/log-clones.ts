import type { TickDecision } from '../core/decide-tick.ts';
import { stageAt } from '../core/model/job-state.ts';
import type { Log } from '../ports/log.ts';
import type { Session } from './scheduler-session.ts';

/** Tells the log, which people read, how phases are cloned and why not, with the numbers that decided it. */
export function logClones(
  log: Log,
  { jobId, state }: Session,
  { decisions, refusals }: Pick<TickDecision, 'decisions' | 'refusals'>,
): void {
  for (const decision of decisions) {
    if (decision.kind !== 'clone-stage' && decision.kind !== 'preempt-clones') continue;
    const stage = stageAt(state, decision.stage).shape.name;
    log.info(decision.kind === 'clone-stage' ? 'cloned' : 'clones-preempted', {
      jobId,
      stage,
      ...decision.facts,
    });
  }
  for (const { taskId, reason, facts } of refusals)
    if (reason === 'clone-budget' || reason === 'utilization')
      log.info('not-cloned', { jobId, task: taskId, reason, ...facts });
}
