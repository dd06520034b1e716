/** An output that might be kept twice, with what decides on it. */
export interface ReplicaCandidate {
  /** r: that none of its copies is left when it is needed. */
  readonly lossProbability: number;
  /** r of the place where the copy would lie. */
  readonly copyLossProbability: number;
  /** t_redo of its task. */
  readonly redoMs: number;
  /** t_rep: what it takes to copy it. */
  readonly copyMs: number;
  /** Its size: what the copy costs of the job's tokens. */
  readonly bytes: number;
}

/** Why an output is not kept twice: its loss costs less than the copy, or the job has too few tokens for it. */
export type ReplicaRefusal = 'not-worth-it' | 'too-few-tokens';

export interface ReplicaChoice<T> {
  /** Cheapest for what they save first. */
  readonly chosen: readonly T[];
  /** In the order in which they were considered; `tokens`: what the job had then. */
  readonly declined: readonly {
    readonly candidate: T;
    readonly reason: ReplicaRefusal;
    readonly tokens: number;
  }[];
  /** Tokens that are left. */
  readonly tokens: number;
}

/** What an output is expected to cost if it is left alone: r · t_redo. */
export const lossCostMs = ({
  lossProbability,
  redoMs,
}: Pick<ReplicaCandidate, 'lossProbability' | 'redoMs'>): number => lossProbability * redoMs;

/** What leaving an output alone is expected to cost, for each unit of what its copy would: above 1 it is worth that. */
export const worthOfCopy = (
  candidate: Pick<ReplicaCandidate, 'lossProbability' | 'redoMs' | 'copyMs'>,
): number => lossCostMs(candidate) / candidate.copyMs;

/** Whether an output is worth a copy: r · t_redo > t_rep. */
export const isWorthReplica = (candidate: ReplicaCandidate): boolean =>
  lossCostMs(candidate) > candidate.copyMs;

/** Cost of the copy for each unit of time that it is expected to save; both copies may be lost. */
const costPerSaved = (candidate: ReplicaCandidate): number =>
  candidate.copyMs / (lossCostMs(candidate) * (1 - candidate.copyLossProbability));

/**
 * Which outputs are kept twice: those whose loss is expected to cost more than the copy, the smallest cost for what it
 * saves first, each only while the job has as many tokens as it has bytes. One that is too large for the tokens that are
 * left keeps none from smaller ones. Equals in the order given.
 *
 * Source: Mantri §5.3. Ours: the order, which the paper leaves open.
 */
export function chooseReplicas<T extends ReplicaCandidate>(
  candidates: readonly T[],
  tokens: number,
): ReplicaChoice<T> {
  const chosen: T[] = [];
  const declined: ReplicaChoice<T>['declined'][number][] = [];
  let left = tokens;
  for (const candidate of candidates) {
    if (!isWorthReplica(candidate)) declined.push({ candidate, reason: 'not-worth-it', tokens });
  }
  const worth = candidates
    .filter(isWorthReplica)
    .map((candidate) => ({ candidate, cost: costPerSaved(candidate) }))
    .toSorted((a, b) => a.cost - b.cost);
  for (const { candidate } of worth) {
    if (candidate.bytes > left) {
      declined.push({ candidate, reason: 'too-few-tokens', tokens: left });
      continue;
    }
    left -= candidate.bytes;
    chosen.push(candidate);
  }
  return { chosen, declined, tokens: left };
}
