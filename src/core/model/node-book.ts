import { type EpochMs, isRecent } from '../../contracts/units.ts';

/**
 * What is known of nodes that were slow or failed, beyond the job that met them: the environments of a function serve one
 * job after the other. Of a node that was never either nothing is kept, so that where all is well nothing is written.
 */

/** What an attempt tells of its node. */
export interface NodeSign {
  /** Of which attempt: what is told twice counts once. */
  readonly of: string;
  readonly at: EpochMs;
  /** Its time over what is usual for its input in its stage; absent where it failed or was lost. */
  readonly slowdown?: number;
  /** Whether another attempt of the same task was not slow on another node: then it is not the task. */
  readonly contrasted?: true;
}

/** A node, and what its last attempts tell, the newest last. */
export interface NodeEntry {
  readonly node: string;
  readonly zone: string;
  readonly signs: readonly NodeSign[];
}

export type NodeBook = readonly NodeEntry[];

/** Why a node is to be avoided. */
export interface BlockedNode {
  readonly node: string;
  readonly zone: string;
  /** `slow`: nothing on it was fast; `failing`: nothing there ended well. */
  readonly reason: 'slow' | 'failing';
  /** How much slower it is at least; of a failing one a thousand times. */
  readonly slowdown: number;
  /** Attempts that tell so. */
  readonly attempts: number;
}

/** What of it a tick needs. */
export type SlowNode = Pick<BlockedNode, 'node' | 'slowdown'>;

export interface NodeBookConfig {
  /** Nodes this much slower than usual are slow. */
  readonly factor: number;
  /** What was seen so long ago tells nothing any more. */
  readonly keptMs: number;
}

/** An environment of Lambda lives for hours at most, and what slows one down seldom lasts for as long. */
export const defaultNodeBook: NodeBookConfig = { factor: 2, keptMs: 15 * 60_000 };

const signsKept = 4;
const nodesKept = 32;
/** Tasks that must tell of a node before it is judged; one that was not slow elsewhere counts for two. */
const leastTold = 2;
const leastFailed = 2;
const slowdownOfFailing = 1_000;

const weightOf = ({ contrasted }: NodeSign): number => (contrasted === true ? leastTold : 1);

/** Why a node is to be avoided as of `now`; undefined of one that is not. */
export function blockOf(
  { node, zone, signs }: NodeEntry,
  now: EpochMs,
  config: NodeBookConfig,
): BlockedNode | undefined {
  let [ran, failed, weight, least] = [0, 0, 0, Infinity];
  for (const sign of signs) {
    if (!isRecent(sign.at, now, config.keptMs)) continue;
    if (sign.slowdown === undefined) failed += 1;
    else {
      ran += 1;
      weight += weightOf(sign);
      least = Math.min(least, sign.slowdown);
    }
  }
  if (failed >= leastFailed && ran === 0)
    return { node, zone, reason: 'failing', slowdown: slowdownOfFailing, attempts: failed };
  if (ran === 0 || weight < leastTold || least < config.factor) return undefined;
  return { node, zone, reason: 'slow', slowdown: least, attempts: ran };
}

/** Nodes to be avoided, the slowest first, ties by name. */
export const blockedNodes = (
  book: NodeBook,
  now: EpochMs,
  config: NodeBookConfig = defaultNodeBook,
): readonly BlockedNode[] =>
  book
    .flatMap((entry) => blockOf(entry, now, config) ?? [])
    .sort((a, b) => (a.slowdown === b.slowdown ? (a.node < b.node ? -1 : 1) : b.slowdown - a.slowdown));

const isSuspicious = ({ signs }: NodeEntry, { factor }: NodeBookConfig): boolean =>
  signs.some(({ slowdown = Infinity }) => slowdown >= factor);

const newestOf = ({ signs }: NodeEntry): number => signs.at(-1)?.at ?? 0;

function mergeSigns(a: readonly NodeSign[], b: readonly NodeSign[]): readonly NodeSign[] {
  // Whoever takes a job over may have seen an end later: the first look counts.
  const newestFirst = [...a, ...b].sort((x, y) => y.at - x.at);
  const byAttempt = new Map(newestFirst.map((sign) => [sign.of, sign]));
  return [...byAttempt.values()].sort((x, y) => x.at - y.at || (x.of < y.of ? -1 : 1)).slice(-signsKept);
}

/**
 * Both books together: the newest signs of each node, each attempt's once, in whatever order and however often they are
 * put together. Nodes of which nothing tells that they are slow, and what is too old, are left out; of too many those
 * that were seen last stay.
 */
export function mergeBooks(
  a: NodeBook,
  b: NodeBook,
  now: EpochMs,
  config: NodeBookConfig = defaultNodeBook,
): NodeBook {
  const byNode = new Map(a.map((entry) => [entry.node, entry]));
  for (const entry of b) {
    const known = byNode.get(entry.node);
    byNode.set(
      entry.node,
      known === undefined ? entry : { ...entry, signs: mergeSigns(known.signs, entry.signs) },
    );
  }
  return [...byNode.values()]
    .map((entry) => ({
      ...entry,
      signs: entry.signs.filter(({ at }) => isRecent(at, now, config.keptMs)),
    }))
    .filter((entry) => isSuspicious(entry, config))
    .sort((x, y) => newestOf(y) - newestOf(x) || (x.node < y.node ? -1 : 1))
    .slice(0, nodesKept);
}

/** Whether a book says anything that another does not: then it is worth being written. */
export const saysMore = (book: NodeBook, known: NodeBook): boolean => {
  const told = new Map(known.map(({ node, signs }) => [node, new Set(signs.map(({ of }) => of))]));
  return book.some(({ node, signs }) => signs.some(({ of }) => told.get(node)?.has(of) !== true));
};
