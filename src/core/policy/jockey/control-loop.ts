import { shiftedLeft, type Utility, utilityAt } from './utility.ts';

/** What the loop goes by. */
export interface ControlRules {
  readonly utility: Utility;
  /** S: predictions are taken so many times as long. */
  readonly slack: number;
  /** α where slots are added, and where they are given back. */
  readonly hysteresis: number;
  readonly release: number;
  /** D */
  readonly deadZoneMs: number;
  /** How much later than D before its deadline the job may be foretold to end until slots are added. */
  readonly toleranceMs: number;
  /** Latest end that is not late. */
  readonly deadlineMs: number;
  /** Allocations to choose from, ascending, at least one. */
  readonly allocations: readonly number[];
}

/** A job at one look. */
export interface ControlView {
  /** t_r: since the job began. */
  readonly elapsedMs: number;
  /** What it has still to go on so many slots, C(p, a), in ms. */
  readonly remainingMs: (slots: number) => number;
  /** A of the look before; undefined at the first. */
  readonly before: number | undefined;
}

/** What the loop has come to. */
export interface ControlStep {
  /** A^r, what is wanted now. */
  readonly raw: number;
  /** A_t, which the next look starts from, and the whole slots of it. */
  readonly smoothed: number;
  readonly slots: number;
}

/** Differences of utility below this are rounding. */
const least = 1e-9;

/** The end of a job that is foretold on so many slots, with slack. */
export const foretoldEndMs = (
  { elapsedMs, remainingMs }: Pick<ControlView, 'elapsedMs' | 'remainingMs'>,
  slack: number,
  slots: number,
): number => elapsedMs + slack * remainingMs(slots);

/** The fewest slots whose expected utility is the largest (§4.3). */
export function rawAllocation(
  rules: Pick<ControlRules, 'utility' | 'slack' | 'deadZoneMs' | 'allocations'>,
  view: ControlView,
): number {
  const utility = shiftedLeft(rules.utility, rules.deadZoneMs);
  let best = { slots: rules.allocations[0] ?? 1, worth: -Infinity };
  for (const slots of rules.allocations) {
    const worth = utilityAt(utility, foretoldEndMs(view, rules.slack, slots));
    if (worth > best.worth + least) best = { slots, worth };
  }
  return best.slots;
}

/**
 * One step of the control loop: the fewest slots of the largest utility, of which a share of the way is gone. With a
 * tolerance slots are added only where the job on those that it has is later than that: with one of a dead zone, where it
 * would miss its deadline itself, and not only the dead zone before it. They are given back freely.
 *
 * Source: Jockey (EuroSys 2012), §4.3.
 */
export function controlStep(rules: ControlRules, view: ControlView): ControlStep {
  const { allocations, hysteresis, release, deadZoneMs, toleranceMs, deadlineMs, slack } = rules;
  const [fewest, most] = [allocations[0] ?? 1, allocations.at(-1) ?? 1];
  const raw = rawAllocation(rules, view);
  const { before } = view;
  const clamped = (slots: number): number => Math.min(most, Math.max(fewest, slots));
  if (before === undefined) return { raw, smoothed: raw, slots: raw };
  const foretoldMs = foretoldEndMs(view, slack, clamped(Math.ceil(before)));
  if (raw > before && toleranceMs > 0 && foretoldMs <= deadlineMs - deadZoneMs + toleranceMs)
    return { raw, smoothed: clamped(before), slots: wholeSlots(before, clamped) };
  const smoothed = clamped(before + (raw > before ? hysteresis : release) * (raw - before));
  return { raw, smoothed, slots: wholeSlots(smoothed, clamped) };
}

/** Slots of a part of one are whole ones; what rounding has added to a whole number is none. */
const wholeSlots = (smoothed: number, clamped: (slots: number) => number): number =>
  clamped(Math.ceil(smoothed - least));

/** Allocations from 1 to `most`: each of the first hundred, and from there on in steps of about a hundredth. */
export function allocationsUpTo(most: number): readonly number[] {
  const found: number[] = [];
  for (let slots = 1; slots < most; slots += Math.max(1, Math.floor(slots / 100))) found.push(slots);
  return [...found, Math.max(1, Math.floor(most))];
}
