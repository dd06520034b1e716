import type { JobId } from '../../contracts/ids.ts';

/** What a job could use, and how much of a share it has. */
export interface Claim {
  readonly jobId: JobId;
  readonly wanted: number;
  /** Above 0. */
  readonly weight: number;
  readonly since: number;
  /** What it keeps whatever its share would be; none where nothing is said. */
  readonly floor?: number;
}

/** A claim of which some is a job's own before the rest is shared. */
export interface GuaranteedClaim extends Claim {
  /** None where nothing is said. */
  readonly guaranteed?: number | undefined;
}

const older = (a: Claim, b: Claim): number => a.since - b.since || (a.jobId < b.jobId ? -1 : 1);

const floorOf = ({ floor = 0 }: Claim): number => floor;

/** Where a claim begins to grow with the level, or has all that it wants. */
interface Turn {
  readonly level: number;
  readonly weight: number;
}

/**
 * The level of slots per weight at which all claims together take `left` slots more than their floors. Each claim takes
 * part from the level of its floor to that of what it wants.
 */
function levelOf(left: number, growing: readonly Claim[]): number {
  const turns: Turn[] = [];
  for (const claim of growing) {
    turns.push({ level: floorOf(claim) / claim.weight, weight: claim.weight });
    turns.push({ level: claim.wanted / claim.weight, weight: -claim.weight });
  }
  turns.sort((a, b) => a.level - b.level);
  let [level, weights, rest] = [0, 0, left];
  for (const turn of turns) {
    const needed = (turn.level - level) * weights;
    // Rounding must not turn a share that is just enough into one that is not.
    if (needed > rest * (1 + 1e-9)) return level + rest / weights;
    rest -= needed;
    level = turn.level;
    weights += turn.weight;
  }
  return level;
}

/**
 * Whole slots for each job, max-min fair by weight, with floors: nobody gets more than it wants or has as its floor, and
 * nobody could get more without taking from one that has no more per weight than itself, or from a floor. What is left
 * by rounding goes one by one to those with the least per weight, the oldest first; so where there are more jobs than
 * slots, the oldest have one each. The shares are more than `totalSlots` together only where the floors are.
 *
 * Source: max-min fairness by progressive filling (Bertsekas and Gallager, Data Networks, §6.5.2), as Hadoop's fair
 * scheduler shares slots.
 */
export function fairShares(totalSlots: number, claims: readonly Claim[]): ReadonlyMap<JobId, number> {
  const shares = new Map(claims.map((claim) => [claim.jobId, floorOf(claim)]));
  const growing = claims.filter((claim) => claim.wanted > floorOf(claim) && claim.weight > 0);
  const floors = claims.reduce((sum, claim) => sum + floorOf(claim), 0);
  const left = Math.floor(totalSlots) - floors;
  if (left <= 0 || growing.length === 0) return shares;
  const level = levelOf(left, growing);
  let rest = left;
  for (const claim of growing) {
    const atLevel = Math.floor(level * claim.weight + 1e-9);
    const share = Math.max(floorOf(claim), Math.min(claim.wanted, atLevel));
    shares.set(claim.jobId, share);
    rest -= share - floorOf(claim);
  }
  const share = (claim: Claim): number => shares.get(claim.jobId) ?? 0;
  const short = growing.filter((claim) => share(claim) < claim.wanted);
  short.sort((a, b) => share(a) / a.weight - share(b) / b.weight || older(a, b));
  for (const claim of short.slice(0, Math.max(0, rest))) shares.set(claim.jobId, share(claim) + 1);
  return shares;
}

/**
 * As `fairShares`, once each has what it is guaranteed, as far as it wants that. Where guarantees are more together than
 * there is, that is shared as if nobody wanted more than it is guaranteed. Of `kept` slots none is guaranteed.
 */
export function guaranteedShares(
  totalSlots: number,
  claims: readonly GuaranteedClaim[],
  kept = 0,
): ReadonlyMap<JobId, number> {
  if (!claims.some(({ guaranteed = 0 }) => guaranteed > 0)) return fairShares(totalSlots, claims);
  const own = fairShares(
    totalSlots - kept,
    claims.map(({ guaranteed = 0, ...claim }) => ({ ...claim, wanted: Math.min(claim.wanted, guaranteed) })),
  );
  return fairShares(
    totalSlots,
    claims.map((claim) => ({ ...claim, floor: own.get(claim.jobId) ?? floorOf(claim) })),
  );
}
