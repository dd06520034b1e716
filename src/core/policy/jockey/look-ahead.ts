import type { SlotBid } from '../../capacity/ledger.ts';
import type { PolicyConfig } from '../../../contracts/policy-config.ts';
import type { EpochMs } from '../../../contracts/units.ts';
import type { Predictor, RemainingParts } from '../../forecast/predictor.ts';
import type { JobState } from '../../model/job-view.ts';
import { type DeadlineNeed, neededSlots } from './admission.ts';
import { allocationsUpTo, type ControlStep, controlStep, foretoldEndMs } from './control-loop.ts';
import { type ControlTerms, controlTerms } from './deadline-scaling.ts';
import { isForecastWrong, type ObservedWork, observedWork } from './observed-work.ts';
import { hardDeadline, shiftedLeft, softDeadline } from './utility.ts';

/** A job at one look of its control loop. */
export interface DeadlineLook {
  readonly state: JobState;
  readonly now: EpochMs;
  /** Since when its deadline counts. */
  readonly since: EpochMs;
  readonly deadlineAt: EpochMs;
  readonly kind: 'soft' | 'hard';
  readonly predictor: Predictor;
  readonly config: PolicyConfig['jockey'];
  readonly totalSlots: number;
  /** A of the look before; undefined at the first. */
  readonly before: number | undefined;
}

/** What one look comes to. */
export interface DeadlineOutlook {
  readonly step: ControlStep;
  /** Slots that it needs of its own to be accepted; undefined where none are enough. */
  readonly needed: number | undefined;
  readonly bid: SlotBid;
  readonly work: ObservedWork;
  readonly isWrong: boolean;
  /** What is expected of it on so many slots that it may count on, one at least. */
  readonly chancesOn: (slots: number) => DeadlineChances;
}

/** What is expected of a job under its deadline on a number of slots. */
export interface DeadlineChances {
  /** Whether it ends by its deadline, and a dead zone before it. */
  readonly hasSlack: boolean;
  readonly expectedEndAt: number;
  /** Of meeting the deadline. */
  readonly probability: number;
}

/** Points of a bid, as shares of the most that the job may have. */
const bidShares = [1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2, 3 / 4, 1];

/** Share of each stage's tasks that has finished. */
export const fractionsOf = ({ stages }: JobState): readonly number[] =>
  stages.map(({ done, tasks }) => (tasks.length === 0 ? 1 : done / tasks.length));

const tasksLeft = ({ stages }: JobState): number =>
  stages.reduce((sum, { done, tasks }) => sum + tasks.length - done, 0);

/**
 * How many times as long as foretold the job takes from here, by the number of slots: its chain of longest tasks is as
 * much longer as tasks are, and of what slots share the starts of tasks as much as starts are.
 */
function correction(
  { chainMs, workMs, queueMs }: RemainingParts,
  { factor, spread, queueFactor }: ObservedWork,
  caution: number,
): (slots: number) => number {
  const careful = factor * Math.exp(caution * spread);
  const sharedMs = workMs + queueMs;
  const longerMs = careful * workMs + queueFactor * queueMs;
  return (slots) => {
    const whole = chainMs + sharedMs / slots;
    return whole <= 0 ? 1 : (careful * chainMs + longerMs / slots) / whole;
  };
}

/** Settings of the loop for a deadline. */
export const termsOf = ({
  config,
  deadlineAt,
  since,
}: Pick<DeadlineLook, 'config' | 'deadlineAt' | 'since'>): ControlTerms =>
  controlTerms(config, deadlineAt - since);

/** One look of the control loop at a job, by its settings: a step, what it needs and bids, and what is expected of it. */
export function lookAhead(look: DeadlineLook): DeadlineOutlook {
  const { state, now, since, deadlineAt, predictor, config, totalSlots, before } = look;
  const terms = termsOf(look);
  const deadlineMs = deadlineAt - since;
  const elapsedMs = Math.max(0, now - since);
  const fractions = fractionsOf(state);
  const work = observedWork(state, predictor, now);
  const remainingBy = (caution: number): ((slots: number) => number) => {
    const corrected = terms.correct ? correction(predictor.partsLeft(fractions), work, caution) : () => 1;
    return (slots) => corrected(slots) * predictor.remainingMs(fractions, slots, terms.statistic);
  };
  const remainingMs = remainingBy(terms.caution);
  const usable = terms.frugal ? tasksLeft(state) : Infinity;
  const most = Math.min(totalSlots, config.mostSlots ?? totalSlots, usable);
  const allocations = allocationsUpTo(Math.max(1, most));
  const utility = (look.kind === 'hard' ? hardDeadline : softDeadline)(deadlineMs, terms.lateMs);
  const rules = { utility, deadlineMs, allocations, ...terms };
  const view = { elapsedMs, remainingMs, before };
  const step = stepOf(config.control, allocations, () => controlStep(rules, view), before);
  // Who may well end in time is not refused for what is not known of it.
  const expectedMs = remainingBy(0);
  const need: DeadlineNeed = {
    ...{ ...terms, deadlineMs: deadlineMs - elapsedMs },
    ...{ allocations, remainingMs: expectedMs },
  };
  const shifted = shiftedLeft(utility, terms.deadZoneMs);
  return {
    step,
    needed: neededSlots(need),
    bid: {
      asks: step.slots,
      left: leftOn(
        [step.raw, step.slots],
        allocations.at(-1) ?? 1,
        (slots) => terms.slack * remainingMs(slots),
      ),
      utility: shiftedLeft(shifted, elapsedMs).points,
    },
    work,
    isWrong: isForecastWrong(work),
    chancesOn: (slots) => {
      const held = Math.max(1, slots);
      return {
        hasSlack: foretoldEndMs(view, terms.slack, held) <= deadlineMs - terms.deadZoneMs,
        ...expectedOn(look, work, held),
      };
    },
  };
}

/** When a job is expected to end on so many slots, and how likely that is by its deadline. */
function expectedOn(
  { state, now, since, deadlineAt, predictor }: DeadlineLook,
  work: ObservedWork,
  slots: number,
): Pick<DeadlineChances, 'expectedEndAt' | 'probability'> {
  const fractions = fractionsOf(state);
  const leftMs = deadlineAt - since - Math.max(0, now - since);
  // What earlier runs varied by counts for as much as this run has not told yet.
  const chances = predictor.workFactors.map((factor) =>
    predictor.chance(fractions, slots, {
      leftMs,
      factor: work.factor * (1 + (factor - 1) * (1 - work.weight)),
    }),
  );
  return {
    expectedEndAt: now + work.factor * predictor.remainingMs(fractions, slots, 'mean'),
    probability: chances.reduce((sum, each) => sum + each, 0) / Math.max(1, chances.length),
  };
}

/** The step of a way of control: by the loop, as the loop had it at the start, or all that there is. */
function stepOf(
  control: DeadlineLook['config']['control'],
  allocations: readonly number[],
  loop: () => ControlStep,
  before: number | undefined,
): ControlStep {
  const most = allocations.at(-1) ?? 1;
  if (control === 'most') return { raw: most, smoothed: most, slots: most };
  if (control === 'once' && before !== undefined)
    return { raw: before, smoothed: before, slots: Math.ceil(before) };
  return loop();
}

/** How long a job takes at a few numbers of slots up to the most, among them these; never longer on more. */
function leftOn(also: readonly number[], most: number, leftMs: (slots: number) => number): SlotBid['left'] {
  const shares = bidShares.map((share) => Math.max(1, Math.round(most * share)));
  let least = Infinity;
  return [...new Set([1, ...shares, ...also])]
    .toSorted((a, b) => a - b)
    .map((slots) => {
      least = Math.min(least, Math.round(leftMs(slots)));
      return [slots, least];
    });
}
