/** What a job with a deadline would need of slots of its own. */
export interface DeadlineNeed {
  /** Length of its deadline, from its begin. */
  readonly deadlineMs: number;
  readonly slack: number;
  readonly deadZoneMs: number;
  readonly allocations: readonly number[];
  /** C(0, a), in ms. */
  readonly remainingMs: (slots: number) => number;
}

/** The fewest slots a with S · C(0, a) ≤ d − D; undefined where none of them is enough. */
export const neededSlots = ({
  deadlineMs,
  slack,
  deadZoneMs,
  allocations,
  remainingMs,
}: DeadlineNeed): number | undefined =>
  allocations.find((slots) => slack * remainingMs(slots) <= deadlineMs - deadZoneMs);

/** Whether a job fits beside those that were accepted before, and else why it does not. */
export type DeadlineAdmission =
  | { readonly fits: true; readonly slots: number }
  | { readonly fits: false; readonly why: 'too-long' | 'no-room'; readonly slots: number };

/**
 * Admits a job where what it needs is left beside what all that were accepted before may need, so that all of them meet
 * their deadlines on slots of their own.
 *
 * @param freeSlots - slots that nobody else was promised.
 *
 * Source: Jockey (EuroSys 2012), §4: admission by the guaranteed capacity; the rule as read in the ground truth, 5.4.
 */
export function admitDeadline(need: DeadlineNeed, freeSlots: number): DeadlineAdmission {
  const slots = neededSlots(need);
  if (slots === undefined) return { fits: false, why: 'too-long', slots: need.allocations.at(-1) ?? 1 };
  return slots <= freeSlots ? { fits: true, slots } : { fits: false, why: 'no-room', slots };
}
