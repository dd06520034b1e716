import type { PolicyConfig } from '../contracts/policy-config.ts';
import type { EpochMs } from '../contracts/units.ts';
import { neverMs } from '../core/model/assignment-tally.ts';
import { taskCountOf } from '../core/model/job-view.ts';
import { addTallies, noStragglers } from '../core/model/straggler-tally.ts';
import { assignmentsOfJob, learntWaitMs } from '../core/policy/dolly/assignment-samples.ts';
import type { CloneOutlook } from '../core/policy/dolly/clone-wishes.ts';
import { jobBin } from '../core/policy/dolly/delay-assignment.ts';
import { stragglerProbability, stragglersOfJob } from '../core/policy/dolly/straggler-rate.ts';
import { policySetOf } from '../core/policy/policy-sets.ts';
import type { AssignmentStatistics } from '../ports/assignment-statistics.ts';
import type { Log } from '../ports/log.ts';
import type { StragglerStatistics } from '../ports/straggler-statistics.ts';
import type { Session } from './scheduler-session.ts';

export interface StatisticsDeps {
  /** How often copies have straggled in all jobs; without it a job knows its own. */
  readonly stragglers?: StragglerStatistics;
  /** What jobs have seen of copies and of reading them; without it ω is its prior. */
  readonly assignments?: AssignmentStatistics;
  readonly log?: Log;
}

/** What statistics answer, or undefined where they fail: they are good to know, and no job fails for want of them. */
async function tolerated<T>({ log }: StatisticsDeps, answer: Promise<T> | undefined): Promise<T | undefined> {
  try {
    return await answer;
  } catch (cause) {
    log?.warn('statistics-failed', { cause: String(cause) });
    return undefined;
  }
}

/** The job's parameters of cloning. */
export const cloneConfigOf = ({ tickConfig }: Session): PolicyConfig['dolly'] =>
  tickConfig.policyConfig.dolly;

/**
 * ω, by the job's assignment of copies. Learnt once per job, from this hour's jobs of its size and the last's: the
 * paper works it out each hour and finds that 30 minutes to 3 hours make little difference.
 */
async function waitMsOf(deps: StatisticsDeps, session: Session, now: EpochMs): Promise<number> {
  const { assignment, assignmentWaitMs, priorWaitMs } = cloneConfigOf(session);
  if (assignment === 'cc') return 0;
  if (assignment === 'cac') return neverMs;
  if (assignmentWaitMs !== undefined) return assignmentWaitMs;
  if (session.learntWaitMs === undefined) {
    const seen = await tolerated(deps, deps.assignments?.recent(binOf(session), now));
    session.learntWaitMs = (seen === undefined ? undefined : learntWaitMs(seen)) ?? priorWaitMs;
  }
  return session.learntWaitMs;
}

const binOf = ({ state }: Session): number => jobBin(taskCountOf(state));

/** Adds what a job that is over tells of copies and of reading them to what is known of jobs like it. */
export async function keepAssignments(deps: StatisticsDeps, session: Session, now: EpochMs): Promise<void> {
  const policy = policySetOf(session.tickConfig.policy);
  // Where few phases are ever cloned, a job without clones tells nothing that is worth a write.
  const isAsked =
    policy.mayWish === undefined || session.state.stages.some(({ clones }) => clones !== undefined);
  if (policy.wishes === undefined || !isAsked) return;
  const tally = assignmentsOfJob(session.state);
  if (tally.reads.length + tally.gapsMs.length === 0) return;
  await tolerated(deps, deps.assignments?.add(binOf(session), tally, now));
}

/** What is known when a phase is about to start: p, ω, C, and whether the deadline leaves slack. */
export async function outlookOf(
  deps: StatisticsDeps,
  session: Session,
  tick: { readonly now: EpochMs; readonly totalSlots: number },
): Promise<CloneOutlook> {
  const config = cloneConfigOf(session);
  const others = (await tolerated(deps, deps.stragglers?.recent(tick.now))) ?? noStragglers;
  const seen = addTallies(others, stragglersOfJob(session.state));
  const terms = { prior: config.priorStragglerProbability, minAttempts: config.minAttempts };
  return {
    config,
    stragglerProbability: stragglerProbability(seen, terms),
    copiesSeen: seen.attempts,
    totalSlots: tick.totalSlots,
    waitMs: await waitMsOf(deps, session, tick.now),
    minSamples: session.tickConfig.policyConfig.outrider.minSamples,
    hasSlack: session.deadlineControl?.hasSlack ?? false,
  };
}
