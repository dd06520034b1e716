import type { JobRecord } from '../contracts/records.ts';
import { type EpochMs, epochMs } from '../contracts/units.ts';
import { noBid, type SlotBid } from '../core/capacity/ledger.ts';
import type { Predictor } from '../core/forecast/predictor.ts';
import type { Allocate } from '../core/model/decision.ts';
import { controlTerms } from '../core/policy/jockey/deadline-scaling.ts';
import { type DeadlineOutlook, fractionsOf, lookAhead, termsOf } from '../core/policy/jockey/look-ahead.ts';
import { observedWork } from '../core/policy/jockey/observed-work.ts';
import { isOutOfControl, mayReturn } from '../core/policy/jockey/return-to-control.ts';
import { grantContext } from './ask-slots.ts';
import { findForecast, lacksOthers, withFirstWave } from './find-forecast.ts';
import { mostPlaces } from './observe-launches.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { DeadlineControl, FoundForecast, Session } from './scheduler-session.ts';

/** What a tick does for the deadline of its job. */
export interface DeadlineTurn {
  /** To be committed with what else the tick decides. */
  readonly allocation?: Allocate;
  /** Why the job is not taken on. */
  readonly refused?: string;
  /** Nothing may be launched yet: whether the job is taken on is not known. */
  readonly isHeldBack?: boolean;
  /** The job can do without copies, and another lacks slots for its deadline. */
  readonly givesWay?: boolean;
}

const nothing: DeadlineTurn = {};
/** Ticks for which a job waits until the ledger can be asked whether there is room for it. */
const mostTries = 20;
/** How often a job without a deadline looks when it ends. */
const lookEveryMs = 5_000;

const open = (forecast: FoundForecast): DeadlineControl => ({
  forecast,
  lookedAt: undefined,
  deadlineAt: undefined,
  smoothed: undefined,
  hasSlack: false,
  mayHaveBid: true,
  triedAt: undefined,
  tries: 0,
  told: undefined,
});

/** What is expected of a job that has no deadline. */
function foresee({ state, grant }: Session, control: DeadlineControl, now: EpochMs): void {
  const { lookedAt } = control;
  const { basis, predictor, runs } = control.forecast;
  if (lookedAt !== undefined && now >= lookedAt && now - lookedAt < lookEveryMs) return;
  control.lookedAt = now;
  if (predictor === undefined) {
    if (control.told?.basis !== 'nothing') control.told = { at: now, basis: 'nothing', runs: 0 };
    return;
  }
  const { factor } = observedWork(state, predictor, now);
  const leftMs = factor * predictor.remainingMs(fractionsOf(state), Math.max(1, grant), 'mean');
  control.told = { at: now, basis, runs, expectedEndAt: epochMs(now + leftMs) };
}

/** Slots of its own that the job asks for from now on, beside those that its spec asks for. */
function ask(session: Session, job: JobRecord, slots: number): void {
  session.share = { ...session.share, guaranteed: Math.max(job.spec.guaranteedSlots ?? 0, slots) };
}

const allocate = (
  slots: number,
  smoothed: number,
  reason: Allocate['reason'],
  facts: Allocate['facts'],
): Allocate => ({ kind: 'allocate', slots, smoothed, reason, facts });

/**
 * Slots that the job may count on: of its own, or granted, by whoever had it before as long as it has not asked itself, as
 * far as there is room for them: an account may have fewer than the deployment was told.
 */
function slotsHeld(deps: SchedulerDeps, session: Session): number {
  const { ledger } = deps;
  const { jobId, grant } = session;
  const granted = grant === 0 ? ledger.admitted(jobId, 'slots') : grant;
  return Math.min(Math.max(ledger.admitted(jobId, 'guaranteed'), granted), mostPlaces(deps, session));
}

/** Numbers that tell why so many slots are asked for. */
const factsOf = (
  { step, work, needed, chancesOn }: DeadlineOutlook,
  { guaranteed, held }: { readonly guaranteed: number; readonly held: number },
): Allocate['facts'] => ({
  raw: step.raw,
  guaranteed,
  probability: chancesOn(held).probability,
  workFactor: work.factor,
  ...(needed === undefined ? {} : { needed }),
});

/**
 * A job that does not fit is refused, or goes on without slots of its own, as one does that has launched something, or
 * that others' runs alone foretell: nobody's work is thrown away for a deadline that was set late, or for a guess.
 */
function turnAway(
  session: Session,
  job: JobRecord,
  { own, outlook }: Look,
  totalSlots: number,
): DeadlineTurn {
  const { needed } = outlook;
  const { attempts, allocation } = session.state;
  const facts: Allocate['facts'] = { ...(needed === undefined ? {} : { needed }), totalSlots };
  ask(session, job, 0);
  // It was told so already.
  if (isOutOfControl(allocation?.reason)) return nothing;
  const isGuess = own.forecast.basis !== 'profile';
  const isBestEffort = job.spec.admission === 'best-effort' || attempts.size > 0 || isGuess;
  if (isBestEffort) return { allocation: allocate(0, 0, 'best-effort', facts) };
  const why =
    needed === undefined
      ? `is foretold to take longer than its deadline, also on all ${totalSlots} slots`
      : `needs ${needed} slots of its own for its deadline, more than others have left of ${totalSlots}`;
  return {
    refused: `the job ${why}: give it more time, or "admission": "best-effort" to run it without a promise`,
  };
}

/** What a job bids, and at least for what its spec guarantees it in any case. */
const bidWith = (bid: SlotBid, guaranteed: number): SlotBid => ({
  ...bid,
  asks: Math.max(bid.asks, guaranteed),
});

/** Whether the last look had its answer: what a busy ledger was asked for is asked for again, as news if it was. */
const isAnswered = ({ lookedAt }: DeadlineControl): boolean => lookedAt !== undefined;

/** A look of the control loop: bids for what it comes to. */
async function control(
  deps: SchedulerDeps,
  session: Session,
  job: JobRecord,
  look: Look,
): Promise<DeadlineTurn> {
  const { own, outlook, now, isNew } = look;
  const { state, jobId, plan } = session;
  const { admits, arbiter } = plan.policyConfig.jockey;
  const { totalSlots } = deps.config;
  const { allocation: before } = state;
  const { step, needed } = outlook;
  const bid = bidWith(outlook.bid, job.spec.guaranteedSlots ?? 0);
  if (isNew && admits && needed === undefined) return turnAway(session, job, look, totalSlots);
  const terms = { alone: !arbiter, ...(isNew && admits && needed !== undefined ? { needed } : {}) };
  const answer = await deps.ledger.bid(jobId, bid, { ...grantContext(deps, session, now), ...terms });
  if (answer === 'refused') return turnAway(session, job, look, totalSlots);
  if (answer === 'busy') {
    own.lookedAt = undefined;
    own.tries += 1;
    // What runs goes on meanwhile.
    return isNew && state.attempts.size === 0 && own.tries < mostTries ? { isHeldBack: true } : nothing;
  }
  own.smoothed = step.smoothed;
  own.mayHaveBid = true;
  ask(session, job, step.slots);
  if (!isNew && before?.slots === step.slots) return nothing;
  const isChanged = own.deadlineAt !== undefined && own.deadlineAt !== job.deadlineAt;
  const reason = isNew ? 'admitted' : isChanged ? 'deadline-changed' : 'adjusted';
  const facts = factsOf(outlook, { guaranteed: answer, held: slotsHeld(deps, session) });
  return { allocation: allocate(step.slots, step.smoothed, reason, facts) };
}

/**
 * Its control is over: it has no deadline any more, or its forecast told nothing of it. What it bid for is taken back:
 * else others would be refused for its sake, and give way to it.
 */
async function letGo(
  deps: SchedulerDeps,
  session: Session,
  job: JobRecord,
  over: Pick<Allocate, 'reason' | 'facts'> & { readonly own: DeadlineControl; readonly now: EpochMs },
): Promise<DeadlineTurn> {
  const { own, now, reason, facts } = over;
  const { allocation } = session.state;
  ask(session, job, 0);
  if (own.mayHaveBid)
    own.mayHaveBid =
      (await deps.ledger.bid(session.jobId, noBid, grantContext(deps, session, now))) === 'busy';
  const isKnown = allocation?.reason === reason && allocation.slots === 0;
  return isKnown ? nothing : { allocation: allocate(0, 0, reason, facts) };
}

/** One look of the control loop at its job. */
interface Look {
  readonly own: DeadlineControl;
  readonly outlook: DeadlineOutlook;
  readonly now: EpochMs;
  /** Whether the job is to be taken on, or was let go of before. */
  readonly isNew: boolean;
}

/** What the job is expected to do under its deadline; of a guess with more slack. */
function outlookOf(
  { config: { totalSlots } }: SchedulerDeps,
  { state, plan }: Session,
  job: JobRecord & { readonly deadlineAt: EpochMs },
  { own, now, isNew, predictor }: Pick<Look, 'own' | 'now' | 'isNew'> & { readonly predictor: Predictor },
): DeadlineOutlook {
  const { deadlineAt, createdAt: since, spec } = job;
  const { jockey } = plan.policyConfig;
  const slack = controlTerms(jockey, deadlineAt - since).slack * own.forecast.slackFactor;
  return lookAhead({
    ...{ state, now, since, deadlineAt, predictor, totalSlots },
    config: { ...jockey, slack },
    kind: spec.deadlineKind ?? 'soft',
    before: isNew ? undefined : (own.smoothed ?? state.allocation?.smoothed),
  });
}

/**
 * Looks after the deadline of a job, as often as its control loop is due: what it is expected to take, how many slots are
 * to be its own, and whether it is taken on at all. Costs a few writes to the ledger each time; nothing where nothing
 * is known of the job. What was learned before is read once, and again where a deadline comes later; what its own tasks tell
 * is looked at as they end.
 */
export async function controlDeadline(
  deps: SchedulerDeps,
  session: Session,
  job: JobRecord,
  now: EpochMs,
): Promise<DeadlineTurn> {
  if (deps.forecasts === undefined) return nothing;
  const { state, plan, jobId } = session;
  const { allocation } = state;
  const { deadlineAt } = job;
  const hasDeadline = deadlineAt !== undefined;
  const own = (session.deadlineControl ??= open(await findForecast(deps, session, hasDeadline)));
  if (hasDeadline && lacksOthers(own.forecast)) own.forecast = await findForecast(deps, session, true);
  own.forecast = withFirstWave(own.forecast, state, now);
  const { basis, runs, predictor } = own.forecast;
  if (!hasDeadline || predictor === undefined) {
    foresee(session, own, now);
    const isOver = allocation !== undefined && (allocation.slots > 0 || own.mayHaveBid);
    const { reason } =
      isOver && allocation.slots === 0 ? allocation : { reason: 'deadline-changed' as const };
    return isOver ? letGo(deps, session, job, { own, now, reason, facts: {} }) : nothing;
  }
  const { periodMs } = termsOf({ config: plan.policyConfig.jockey, deadlineAt, since: job.createdAt });
  const isDue = own.lookedAt === undefined || now < own.lookedAt || now - own.lookedAt >= periodMs;
  const givingWay = (): DeadlineTurn =>
    own.hasSlack && deps.ledger.isAnyOwed(jobId) ? { givesWay: true } : nothing;
  if (!isDue && own.deadlineAt === deadlineAt) return givingWay();
  const isNew = allocation === undefined || allocation.slots === 0;
  const outlook = outlookOf(deps, session, { ...job, deadlineAt }, { own, now, isNew, predictor });
  own.lookedAt = now;
  const turn = await turnOf(deps, session, job, { own, outlook, now, isNew }, periodMs);
  if (isAnswered(own)) own.deadlineAt = deadlineAt;
  // By then the ledger has answered: before, the first look of a scheduler knows of no slots.
  const { hasSlack, expectedEndAt, probability } = outlook.chancesOn(slotsHeld(deps, session));
  own.hasSlack = hasSlack;
  const isOut = isOutOfControl((turn.allocation ?? allocation)?.reason);
  own.told = {
    ...{ at: now, basis, runs },
    ...(isOut ? {} : { slotsWanted: outlook.step.slots }),
    expectedEndAt: epochMs(expectedEndAt),
    probability,
  };
  return { ...turn, ...givingWay() };
}

/** A job that has gone out of its control loop stays out of it until it may be tried again. */
async function turnOf(
  deps: SchedulerDeps,
  session: Session,
  job: JobRecord,
  look: Look,
  periodMs: number,
): Promise<DeadlineTurn> {
  const { own, now, outlook } = look;
  const { work, isWrong } = outlook;
  const { allocation } = session.state;
  if (allocation !== undefined && isOutOfControl(allocation.reason)) {
    const { reason, at } = allocation;
    const isChanged = own.deadlineAt !== undefined && own.deadlineAt !== job.deadlineAt;
    const sinceMs = now - (own.triedAt ?? at);
    if (!mayReturn({ reason, sinceMs, periodMs, isChanged, work }))
      return letGo(deps, session, job, { own, now, reason, facts: {} });
    const turn = await control(deps, session, job, look);
    if (isAnswered(own)) own.triedAt = now;
    return turn;
  }
  const facts: Allocate['facts'] = { workFactor: work.factor, finishedTasks: work.tasks };
  if (isWrong) return letGo(deps, session, job, { own, now, reason: 'wrong-forecast', facts });
  return control(deps, session, job, look);
}
