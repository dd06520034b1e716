import type { Proposal } from './policy-set.ts';

const orderOfKind = { prune: 0, leave: 0, restart: 1, clone: 2, backup: 3, decline: 4 } as const;
const numberOf = (proposal: Proposal): number => ('attempt' in proposal ? proposal.attempt.number : -1);

/** Whether it only stops an attempt, and so makes room. */
const isStop = ({ kind }: Proposal): boolean => kind === 'prune' || kind === 'leave';

/** Proposals in the order in which they are disposed of: what only stops attempts first, then by gain; ties by task and kind. */
export function ranked(proposals: readonly Proposal[]): readonly Proposal[] {
  return proposals.toSorted(
    (a, b) =>
      Number(isStop(b)) - Number(isStop(a)) ||
      b.gainMs - a.gainMs ||
      a.task.stage - b.task.stage ||
      a.task.index - b.task.index ||
      orderOfKind[a.kind] - orderOfKind[b.kind] ||
      numberOf(a) - numberOf(b),
  );
}
