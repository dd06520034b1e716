import { type EpochMs, epochMs } from '../contracts/units.ts';
import type { Rng } from '../lib/rng.ts';
import { type Distribution, sample, sampleMs } from './distribution.ts';
import type { EventQueue } from './event-queue.ts';
import type { NodePool, SimNode } from './node-pool.ts';
import type { Scenario } from './scenario.ts';

/** Where nodes have their troubles, and until when. */
export interface TroubleTerms {
  readonly pool: NodePool;
  readonly queue: EventQueue;
  readonly now: () => EpochMs;
  readonly crashes: Scenario['faults']['crashes'];
  /** Whether faults have not stopped. */
  readonly goOn: () => boolean;
}

/** No node's speed changes faster: each change costs an event for each of its attempts. */
const shortestSpellMs = 1_000;

/** What comes and goes on a node. */
interface Trouble {
  readonly everyMs: Distribution;
  readonly lastsMs: Distribution;
  readonly rng: Rng;
  readonly begin: () => void | Promise<void>;
  readonly end: () => void;
}

/** Has a node meet what the scenario has for it: spells in which it is slower, other speeds, and crashes. */
export function planTroubles(node: SimNode, terms: TroubleTerms): void {
  const { pool, crashes } = terms;
  const { spells, speedLastsMs } = node.group;
  if (spells !== undefined) {
    const rng = node.rng.fork('spells');
    const begin = (): void => {
      pool.setSpell(node, Math.max(1, sample(spells.slowdown, rng)));
    };
    const end = (): void => {
      pool.setSpell(node, 1);
    };
    alternate(node, terms, { ...spells, rng, begin, end });
  }
  if (speedLastsMs !== undefined) redrawSpeeds(node, terms, speedLastsMs);
  if (crashes === undefined) return;
  const begin = async (): Promise<void> => {
    pool.setUp(node, false);
    for (const load of [...node.loads]) await load.die();
  };
  const end = (): void => {
    pool.setUp(node, true);
  };
  const { everyMs, repairMs: lastsMs } = crashes;
  alternate(node, terms, { everyMs, lastsMs, rng: node.rng.fork('crashes'), begin, end });
}

/** A node of another speed after each spell: neither better nor worse in the mean, so that faults' end ends it not. */
function redrawSpeeds(node: SimNode, { pool, queue, now }: TroubleTerms, lastsMs: Distribution): void {
  const rng = node.rng.fork('speeds');
  const next = (): void => {
    const waitMs = Math.max(shortestSpellMs, sampleMs(lastsMs, rng));
    queue.schedule(epochMs(now() + waitMs), {
      kind: 'speed',
      subject: node.name,
      run: () => {
        pool.redrawSpeed(node);
        next();
      },
    });
  };
  next();
}

/** Good and bad times of a node in turn, until faults stop. */
function alternate(node: SimNode, { queue, now, goOn }: TroubleTerms, trouble: Trouble): void {
  const { rng, everyMs, lastsMs, begin, end } = trouble;
  const after = (length: Distribution, kind: string, run: () => void | Promise<void>): void => {
    const waitMs = Math.max(1, sampleMs(length, rng));
    queue.schedule(epochMs(now() + waitMs), { kind, subject: node.name, run });
  };
  const good = (): void => {
    after(everyMs, 'trouble', async () => {
      if (!goOn()) return;
      await begin();
      after(lastsMs, 'relief', () => {
        end();
        good();
      });
    });
  };
  good();
}
