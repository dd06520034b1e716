import { arbitrateBids, type BidAsking } from '../core/capacity/arbitrate-guarantees.ts';
import type { CapacityRule } from '../core/capacity/ledger.ts';
import type { GrantContext } from './ledger-words.ts';

/** What a bid comes to; `busy`: nothing, for others came first. */
export type BidAnswer = number | 'refused' | 'busy';

interface Waiting {
  readonly asking: BidAsking;
  readonly context: GrantContext;
  readonly resolve: (answer: BidAnswer) => void;
  readonly reject: (cause: unknown) => void;
}

/** Bids that one round decides. */
const mostTogether = 25;

/**
 * Bids of one process, one round of them at a time: those that come while others are decided are decided next, by one
 * division. Each job bids anew every second or so where deadlines are short, and a division takes some ms in which none
 * of them goes on.
 */
export class BidRounds {
  private waiting: Waiting[] = [];
  private isDeciding = false;
  private readonly decide: <T>(context: GrantContext, rule: CapacityRule<T>) => Promise<T | 'busy'>;

  /** @param decide - changes the ledger by a rule, or answers that it could not. */
  constructor(decide: BidRounds['decide']) {
    this.decide = decide;
  }

  ask(asking: BidAsking, context: GrantContext): Promise<BidAnswer> {
    return new Promise<BidAnswer>((resolve, reject) => {
      this.waiting.push({ asking, context, resolve, reject });
      void this.decideAll();
    });
  }

  private async decideAll(): Promise<void> {
    if (this.isDeciding) return;
    this.isDeciding = true;
    while (this.waiting.length > 0) await this.decideNext(this.waiting.splice(0, mostTogether));
    this.isDeciding = false;
  }

  /** Never throws: whoever bid is told what went wrong. */
  private async decideNext(together: readonly Waiting[]): Promise<void> {
    const [last] = together.slice(-1);
    if (last === undefined) return;
    const asked = together.map(({ asking }) => asking);
    try {
      const answers = await this.decide(last.context, (ledger) => arbitrateBids(ledger, asked));
      for (const [place, { resolve }] of together.entries())
        resolve(answers === 'busy' ? 'busy' : (answers[place] ?? 'busy'));
    } catch (cause) {
      for (const { reject } of together) reject(cause);
    }
  }
}
