import type { PolicyConfig } from '../../../contracts/policy-config.ts';
import type { CloneAdmission, CloneRequest, CloneVictim } from '../../capacity/clone-admission.ts';
import type { Facts } from '../../model/decision.ts';
import { stageAt } from '../../model/job-state.ts';
import { type CloneAnswer, type CloneDecline, isAboutToStart, owedClones } from '../../model/stage-clones.ts';
import { slotDemand } from '../owed-launches.ts';
import { chargeOf } from './admission.ts';
import { cloneCount, phaseClones } from './clone-count.ts';
import { type JobState, type StageClones, type StageView, taskCountOf } from '../../model/job-view.ts';

/** What is known when a phase is about to start. */
export interface CloneOutlook {
  readonly config: PolicyConfig['dolly'];
  /** p, and on how many ended copies it rests: a prior while they are fewer than `minAttempts`. */
  readonly stragglerProbability: number;
  readonly copiesSeen: number;
  /** C. */
  readonly totalSlots: number;
  /** ω. */
  readonly waitMs: number;
  /** Tasks of a phase that tell enough of each other to say which of them lags. */
  readonly minSamples: number;
  /** Whether the job has a deadline and is expected to meet it with time to spare. */
  readonly hasSlack: boolean;
}

/** A phase that is to be cloned if the capacity ledger admits it, or would be but for the reason given. */
export interface CloneWish {
  readonly stage: number;
  /** c: copies of each task, the original included. */
  readonly copies: number;
  readonly request: CloneRequest;
  /** Why it is not asked for; absent: it is. */
  readonly declined?: CloneDecline;
  /** p, n, c, and the count before it was limited. */
  readonly facts: Facts;
}

/** Units in which the budget is asked: the whole phase, one more copy of every task, or all copies of one task. */
function unitsOf(
  tasks: number,
  copies: number,
  config: PolicyConfig['dolly'],
): Pick<CloneRequest, 'unitSlots' | 'leastUnits' | 'mostUnits'> {
  const { admission, charge } = config;
  switch (admission) {
    case 'all-or-nothing':
    case 'preemption':
      return { unitSlots: chargeOf(tasks, copies, charge), leastUnits: 1, mostUnits: 1 };
    case 'partial':
      return charge === 'all-copies'
        ? { unitSlots: tasks, leastUnits: 2, mostUnits: copies }
        : { unitSlots: tasks, leastUnits: 1, mostUnits: copies - 1 };
    case 'first-come':
      return { unitSlots: chargeOf(1, copies, charge), leastUnits: 1, mostUnits: tasks };
  }
}

/** Copies of each task of a phase: those that it is cloned with yet. */
const copiesIn = ({ clones }: StageView): number =>
  clones === undefined || clones.preempted === true ? 1 : clones.copies;

/** What preemption asks beside: by the size of the whole job, so that a job never takes from itself. */
const preempting = (state: JobState, tasks: number, copies: number): Partial<CloneRequest> => ({
  jobTasks: taskCountOf(state),
  addedUnitSlots: chargeOf(tasks, copies, 'extra-copies'),
});

function wishOf(stage: StageView, state: JobState, outlook: CloneOutlook): CloneWish | undefined {
  const { config, stragglerProbability } = outlook;
  const tasks = stage.tasks.length;
  const phase = { tasks, stragglerProbability, straggleRisk: config.straggleRisk };
  const upstreamClones = stage.shape.upstream.map((place) => copiesIn(stageAt(state, place)));
  const copies = phaseClones(phase, { mostClones: config.mostClones, upstreamClones });
  if (copies < 2) return undefined;
  // The stage's own tasks are in the charge, unless that is for the additional copies alone.
  const charged = config.charge === 'all-copies' && config.admission !== 'first-come' ? tasks : 0;
  const besideSlots = slotDemand(state) + owedClones(state.stages) - charged;
  return {
    stage: stage.index,
    copies,
    request: {
      phase: stage.shape.name,
      ...unitsOf(tasks, copies, config),
      besideSlots,
      ...(config.admission === 'preemption' ? preempting(state, tasks, copies) : {}),
    },
    facts: { stragglerProbability, tasks, copies, copiesWanted: cloneCount(phase) },
  };
}

/**
 * The open stages that are about to launch their first task and are to have clones. Stages that need none (c = 1),
 * also by the rule that no phase has more clones than one it reads, are left out.
 *
 * Source: Dolly §3.3, Pseudocode 1, by phase as in "multi-phase jobs".
 */
export function cloneWishes(state: JobState, outlook: CloneOutlook): readonly CloneWish[] {
  return state.stages.filter(isAboutToStart).flatMap((stage) => wishOf(stage, state, outlook) ?? []);
}

/** How the stage of a wish is cloned with the units that it got; undefined with none. */
function clonesOf(
  { copies, request }: CloneWish,
  units: number,
  config: PolicyConfig['dolly'],
  tasks: number,
): Pick<StageClones, 'copies' | 'tasks'> | undefined {
  if (units === 0) return undefined;
  switch (config.admission) {
    case 'all-or-nothing':
    case 'preemption':
      return { copies, tasks };
    case 'partial':
      return { copies: Math.min(copies, config.charge === 'all-copies' ? units : units + 1), tasks };
    case 'first-come':
      return { copies, tasks: Math.min(units, request.mostUnits) };
  }
}

/** How many phases have lost their clones, and what these were charged. */
const preemptionFacts = (victims: readonly CloneVictim[]): Facts => ({
  preemptedPhases: victims.length,
  preemptedSlots: victims.reduce((sum, { slots }) => sum + slots, 0),
});

/** Takes the ledger's answer to a wish over, with the numbers by which it was decided. */
export function answerOf(wish: CloneWish, admission: CloneAdmission, outlook: CloneOutlook): CloneAnswer {
  const { config, totalSlots, waitMs } = outlook;
  const { stage, facts, request } = wish;
  const { victims = [] } = admission;
  const clones = clonesOf(wish, admission.units, config, facts['tasks'] ?? 0);
  return {
    stage,
    clones: clones === undefined || waitMs === 0 ? clones : { ...clones, waitMs },
    reason: admission.reason,
    facts: {
      ...facts,
      waitMs,
      chargedSlots: admission.units * request.unitSlots,
      totalSlots,
      usedSlots: admission.usedSlots,
      cloneSlots: admission.cloneSlots,
      ...(admission.reservedSlots === undefined ? {} : { reservedSlots: admission.reservedSlots }),
      ...(victims.length === 0 ? {} : preemptionFacts(victims)),
    },
  };
}
