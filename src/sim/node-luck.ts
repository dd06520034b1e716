import type { Rng } from '../lib/rng.ts';
import { type Distribution, normal, sample } from './distribution.ts';
import { interpolate } from './interpolate.ts';

/** How slowness is shared out, of the whole of its normal scores: to the node, to a spell of it; the rest to the attempt. */
export interface LuckShares {
  readonly node: number;
  readonly spell: number;
  /** How long a spell lasts: after each the node draws another. */
  readonly spellMs: number;
}

/** What a node at one time makes of the attempts that start there. */
export interface NodeLuck {
  /** The node's part of an attempt's normal score. */
  readonly score: number;
  /** Share of the score's variance that is left to the attempt itself. */
  readonly ownShare: number;
}

/**
 * The luck of a node in one of its lives (an environment's, where it is elastic). Hangs on the node and on the time alone,
 * so that all attempts that start there in one spell have the same part of theirs.
 */
export function nodeLuck(
  { node, spell, spellMs }: LuckShares,
  rng: Rng,
  life: number,
  now: number,
): NodeLuck {
  const own = rng.fork(`luck-${life}`);
  const score = normal(own);
  // Spells of different nodes do not begin together.
  const turn = Math.floor(now / spellMs + own.next());
  const inSpell = normal(rng.fork(`luck-${life}/${turn}`));
  return {
    score: Math.sqrt(node) * score + Math.sqrt(spell) * inSpell,
    ownShare: Math.max(0, 1 - node - spell),
  };
}

/** The standard normal distribution function, to a millionth. Source: Abramowitz and Stegun, 7.1.26. */
export function normalShare(score: number): number {
  const t = 1 / (1 + (0.3275911 * Math.abs(score)) / Math.SQRT2);
  const series =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const above = (series * Math.exp((-score * score) / 2)) / 2;
  return score < 0 ? above : 1 - above;
}

/**
 * Draws what an attempt meets where its node has a part in it: as often as its distribution has it, over all nodes, and
 * alike on one node. Only distributions by quantiles are shared; others are the attempt's own.
 */
export function sampleOn(distribution: Distribution, luck: NodeLuck | undefined, rng: Rng): number {
  if (luck === undefined || typeof distribution === 'number' || distribution.kind !== 'quantiles')
    return sample(distribution, rng);
  return interpolate(distribution.points, normalShare(luck.score + Math.sqrt(luck.ownShare) * normal(rng)));
}
