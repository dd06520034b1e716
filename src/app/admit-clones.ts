import { defaultPolicyConfig } from '../contracts/policy-config.ts';
import { type DurationMs, type EpochMs, later } from '../contracts/units.ts';
import { addedCopies, type CloneAnswer, type ClonesTaken, chargeLeft } from '../core/model/stage-clones.ts';
import { addTallies, noStragglers } from '../core/model/straggler-tally.ts';
import { neverMs } from '../core/model/assignment-tally.ts';
import { assignmentsOfJob, learntWaitMs } from '../core/policy/dolly/assignment-samples.ts';
import { jobBin } from '../core/policy/dolly/delay-assignment.ts';
import type { AssignmentStatistics } from '../ports/assignment-statistics.ts';
import { cloneTerms } from '../core/policy/dolly/admission.ts';
import { answerOf, type CloneOutlook, mayClone } from '../core/policy/dolly/clone-wishes.ts';
import { stragglerProbability, stragglersOfJob } from '../core/policy/dolly/straggler-rate.ts';
import { policySetOf } from '../core/policy/policy-sets.ts';
import type { CapacityLedger } from '../ports/capacity-ledger.ts';
import type { StragglerStatistics } from '../ports/straggler-statistics.ts';
import type { Session } from './scheduler-session.ts';

export interface CloneDeps {
  readonly ledger: CapacityLedger;
  /** How often copies have straggled in all jobs; without it a job knows its own. */
  readonly stragglers?: StragglerStatistics;
  /** What jobs have seen of copies and of reading them; without it ω is its prior. */
  readonly assignments?: AssignmentStatistics;
}

/** When it is, and the terms of a grant. */
export interface CloneTick {
  readonly now: EpochMs;
  readonly totalSlots: number;
  readonly length: DurationMs;
}

const configOf = ({ tickConfig }: Session) => (tickConfig.policyConfig ?? defaultPolicyConfig).dolly;

/**
 * Gives the cloning budget back as clones end. What was given back is remembered, so that the ledger is written
 * only when something has changed; whoever takes the job over writes it once more, to no effect.
 */
export async function releaseEndedClones(deps: CloneDeps, session: Session): Promise<void> {
  const { charge } = configOf(session);
  for (const stage of session.state.stages) {
    if (stage.clones === undefined) continue;
    const left = chargeLeft(stage, charge);
    if (left >= (session.cloneCharges.get(stage.index) ?? Infinity)) continue;
    const added = chargeLeft(stage, 'extra-copies');
    await deps.ledger.releaseClones(session.jobId, stage.shape.name, left, Math.min(left, added));
    session.cloneCharges.set(stage.index, left);
  }
}

/**
 * Stages of the job whose clones were taken away for smaller jobs, of which it does not know yet. Reads the ledger
 * where the job's admission is by preemption and a stage is charged for clones; else it answers none at once. Whoever
 * dies here or before the log says it leaves the mark to its successor: it ends with the release that follows the log.
 */
export async function clonesTaken(deps: CloneDeps, session: Session): Promise<readonly ClonesTaken[]> {
  const { admission, charge } = configOf(session);
  if (admission !== 'preemption') return [];
  const { stages } = session.state;
  const charged = stages.filter((stage) => chargeLeft(stage, charge) > 0);
  if (charged.length === 0) return [];
  const preemptions = await deps.ledger.preemptions(session.jobId);
  const jobTasks = stages.reduce((sum, { tasks }) => sum + tasks.length, 0);
  return charged.flatMap(({ index, shape }): readonly ClonesTaken[] => {
    const preemption = preemptions[shape.name];
    if (preemption === undefined) return [];
    const { by, byTasks, slots } = preemption;
    return [{ stage: index, by, facts: { jobTasks, byTasks, slots } }];
  });
}

/**
 * ω, by the job's assignment of copies. Learnt once per job, from this hour's jobs of its size and the last's: the
 * paper works it out each hour and finds that 30 minutes to 3 hours make little difference.
 */
async function waitMsOf(deps: CloneDeps, session: Session, now: EpochMs): Promise<number> {
  const { assignment, assignmentWaitMs, priorWaitMs } = configOf(session);
  if (assignment === 'cc') return 0;
  if (assignment === 'cac') return neverMs;
  if (assignmentWaitMs !== undefined) return assignmentWaitMs;
  if (session.learntWaitMs === undefined) {
    const seen = await deps.assignments?.recent(binOf(session), now);
    session.learntWaitMs = (seen === undefined ? undefined : learntWaitMs(seen)) ?? priorWaitMs;
  }
  return session.learntWaitMs;
}

const binOf = ({ state }: Session): number =>
  jobBin(state.stages.reduce((sum, { tasks }) => sum + tasks.length, 0));

/** Adds what a job that has ended tells to what is known of jobs like it. */
export async function keepStatistics(deps: CloneDeps, session: Session, now: EpochMs): Promise<void> {
  await deps.stragglers?.add(stragglersOfJob(session.state), now);
  if (policySetOf(session.tickConfig.policy).wishes === undefined) return;
  const tally = assignmentsOfJob(session.state);
  if (tally.reads.length + tally.gapsMs.length === 0) return;
  await deps.assignments?.add(binOf(session), tally, now);
}

async function outlookOf(deps: CloneDeps, session: Session, tick: CloneTick): Promise<CloneOutlook> {
  const config = configOf(session);
  const others = (await deps.stragglers?.recent(tick.now)) ?? noStragglers;
  const seen = addTallies(others, stragglersOfJob(session.state));
  const terms = { prior: config.priorStragglerProbability, minAttempts: config.minAttempts };
  return {
    config,
    stragglerProbability: stragglerProbability(seen, terms),
    totalSlots: tick.totalSlots,
    waitMs: await waitMsOf(deps, session, tick.now),
  };
}

/**
 * Asks the ledger for the clones that the job's policy wants for stages about to start. What is admitted is charged
 * at once, slots included; it becomes part of the job with the tick that follows. A scheduler that dies in between
 * leaves a charge that its successor finds again by asking the same, or that runs out with the job's grant.
 */
export async function admitClones(
  deps: CloneDeps,
  session: Session,
  tick: CloneTick,
): Promise<readonly CloneAnswer[]> {
  const policy = policySetOf(session.tickConfig.policy);
  if (policy.wishes === undefined || !mayClone(session.state)) return [];
  const outlook = await outlookOf(deps, session, tick);
  const context = { ...tick, ...cloneTerms(tick.totalSlots, outlook.config) };
  const answers: CloneAnswer[] = [];
  for (const wish of policy.wishes(session.state, outlook)) {
    const request = { ...wish.request, besideSlots: wish.request.besideSlots + addedCopies(answers) };
    const admission = await deps.ledger.admitClones(session.jobId, request, context);
    const answer = answerOf(wish, admission, outlook);
    answers.push(answer);
    if (answer.clones === undefined) {
      // Admitted to a scheduler that died, for fewer copies than are wanted by now: of no use any more.
      if (admission.reason === undefined) await deps.ledger.releaseClones(session.jobId, request.phase, 0);
      continue;
    }
    const charged = answer.facts['chargedSlots'] ?? 0;
    session.cloneCharges.set(wish.stage, charged);
    session.grant = request.besideSlots + charged;
    session.grantUntil = later(tick.now, tick.length);
  }
  return answers;
}
