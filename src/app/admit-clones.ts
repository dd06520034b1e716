import {
  addedCopies,
  type CloneAnswer,
  type ClonesTaken,
  chargeLeft,
  isAboutToStart,
} from '../core/model/stage-clones.ts';
import type { CloneTerms } from '../core/capacity/clone-admission.ts';
import { stageAt } from '../core/model/job-state.ts';
import { type StageView, taskCountOf } from '../core/model/job-view.ts';
import { cloneTerms } from '../core/policy/dolly/admission.ts';
import { answerOf, type CloneOutlook, type CloneWish } from '../core/policy/dolly/clone-wishes.ts';
import type { BudgetTerms } from '../core/model/tick-config.ts';
import { policySetOf } from '../core/policy/policy-sets.ts';
import { ownValue } from '../lib/own.ts';
import type { CapacityLedger, GrantContext } from './capacity-ledger.ts';
import { cloneConfigOf, outlookOf, type StatisticsDeps } from './clone-statistics.ts';
import { affordedWishes } from './job-budget.ts';
import type { Session } from './scheduler-session.ts';

export interface CloneDeps extends StatisticsDeps {
  readonly ledger: CapacityLedger;
}

/**
 * Gives the cloning budget back as clones end. What was given back is remembered, so that the ledger is written
 * only when something has changed; whoever takes the job over writes it once more, to no effect.
 */
export async function releaseEndedClones(deps: CloneDeps, session: Session): Promise<void> {
  const { charge } = cloneConfigOf(session);
  for (const stage of session.state.stages) {
    if (stage.clones === undefined) continue;
    const left = chargeLeft(stage, charge);
    if (left >= (session.cloneCharges.get(stage.index) ?? Infinity)) continue;
    const addedSlots = Math.min(left, chargeLeft(stage, 'extra-copies'));
    const { jobId, epoch } = session;
    await deps.ledger.releaseClones(jobId, stage.shape.name, left, { addedSlots, epoch });
    session.cloneCharges.set(stage.index, left);
  }
}

/**
 * Stages of the job whose clones were taken away for smaller jobs, of which it does not know yet. Reads the ledger
 * where the job's admission is by preemption and a stage is charged for clones; else it answers none at once. Whoever
 * dies here or before the log says it leaves the mark to its successor: it ends with the release that follows the log.
 */
export async function clonesTaken(deps: CloneDeps, session: Session): Promise<readonly ClonesTaken[]> {
  const { admission, charge } = cloneConfigOf(session);
  if (admission !== 'preemption') return [];
  const { stages } = session.state;
  const charged = stages.filter((stage) => chargeLeft(stage, charge) > 0);
  if (charged.length === 0) return [];
  const preemptions = await deps.ledger.preemptions(session.jobId);
  const jobTasks = taskCountOf(session.state);
  return charged.flatMap(({ index, shape }): readonly ClonesTaken[] => {
    const preemption = ownValue(preemptions, shape.name);
    if (preemption === undefined) return [];
    const { by, byTasks, slots } = preemption;
    return [{ stage: index, by, facts: { jobTasks, byTasks, slots } }];
  });
}

/** What a wish is asked with. */
interface Asking {
  readonly wish: CloneWish;
  readonly outlook: CloneOutlook;
  readonly context: GrantContext & CloneTerms;
  readonly besideSlots: number;
}

/** Stages that a stage reads whose late copies are charged to the budget yet. */
const chargedUpstream = ({ state, cloneCharges }: Session, place: number): readonly StageView[] =>
  stageAt(state, place)
    .shape.upstream.map((upstream) => stageAt(state, upstream))
    .filter(({ index }) => (cloneCharges.get(index) ?? 0) > 0);

/**
 * Asks for one phase. Where the copies that go on to serve its clones stand in the way of these, once more without
 * them: they would serve nobody else, so that their share of the budget goes to the phase, whose clones then read at
 * once, and the tick tells them to stop.
 */
async function ask(deps: CloneDeps, session: Session, asking: Asking): Promise<CloneAnswer> {
  const { wish, outlook, context, besideSlots } = asking;
  const request = { ...wish.request, besideSlots };
  const admission = await deps.ledger.admitClones(session.jobId, request, context);
  const held = chargedUpstream(session, wish.stage);
  const isRefused = admission.reason !== undefined;
  if (!isRefused || held.length === 0 || outlook.config.assignment !== 'delay')
    return answerOf(wish, admission, outlook);
  for (const { index, shape } of held) {
    await deps.ledger.releaseClones(session.jobId, shape.name, 0, { epoch: session.epoch });
    session.cloneCharges.set(index, 0);
  }
  const again = await deps.ledger.admitClones(session.jobId, request, context);
  return answerOf(wish, again, { ...outlook, waitMs: 0 });
}

/** The answer to a wish that is for the log alone; none to one that is asked for. */
const declinedAnswer = ({ stage, declined, facts }: CloneWish): readonly CloneAnswer[] =>
  declined === undefined ? [] : [{ stage, clones: undefined, reason: declined, facts }];

/**
 * Asks the ledger for the clones that the job's policy wants for stages about to start. What is admitted is charged
 * at once, slots included; it becomes part of the job with the tick that follows. A scheduler that dies in between
 * leaves a charge that its successor finds again by asking the same, or that runs out with the job's grant.
 */
export async function admitClones(
  deps: CloneDeps,
  session: Session,
  tick: GrantContext,
  dollars?: BudgetTerms,
): Promise<readonly CloneAnswer[]> {
  const policy = policySetOf(session.tickConfig.policy);
  const { policyConfig } = session.tickConfig;
  const mayClone = session.state.stages.some(
    (stage) => isAboutToStart(stage) && policy.mayWish?.(stage, policyConfig) !== false,
  );
  if (policy.wishes === undefined || !mayClone) return [];
  const outlook = await outlookOf(deps, session, tick);
  const context = { ...tick, ...cloneTerms(tick.totalSlots, outlook.config) };
  const wishes = policy.wishes(session.state, outlook);
  const asked = wishes.filter(({ declined }) => declined === undefined);
  const { afforded, refused } = affordedWishes(session, asked, tick.now, dollars);
  const answers: CloneAnswer[] = [...wishes.flatMap(declinedAnswer), ...refused];
  for (const wish of afforded) {
    const besideSlots = wish.request.besideSlots + addedCopies(answers);
    const answer = await ask(deps, session, { wish, outlook, context, besideSlots });
    answers.push(answer);
    if (answer.clones === undefined) {
      // Admitted to a scheduler that died, for fewer copies than are wanted by now: of no use any more.
      if (answer.reason === undefined)
        await deps.ledger.releaseClones(session.jobId, wish.request.phase, 0, { epoch: session.epoch });
      continue;
    }
    const charged = answer.facts['chargedSlots'] ?? 0;
    session.cloneCharges.set(wish.stage, charged);
    session.grant = besideSlots + charged;
  }
  return answers;
}
