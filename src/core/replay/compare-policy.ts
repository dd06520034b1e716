import { type AttemptId, taskOf } from '../../contracts/ids.ts';
import type { PolicyName } from '../../contracts/policy-names.ts';
import type { EpochMs } from '../../contracts/units.ts';
import { decideTick } from '../decide-tick.ts';
import type { Decision } from '../model/decision.ts';
import { policySetOf } from '../policy/policy-sets.ts';
import type { ReplayedTick } from './replay-journal.ts';

/** A launch or an end that one policy decides on and the other does not. */
export interface OtherDecision {
  readonly epoch: number;
  readonly tick: number;
  readonly at: EpochMs;
  readonly kind: 'launch' | 'cancel' | 'lose';
  readonly attemptId: AttemptId;
  readonly reason: string;
}

/**
 * What another policy would have decided at each tick of a recorded job, of what was known then. The job goes on as it
 * did, so that nothing follows from what the other would have done: each is counted once for a task and a reason.
 */
export interface PolicyComparison {
  readonly policy: PolicyName;
  readonly ticks: number;
  /** Ticks at which it would have launched or ended something else, and the first of them. */
  readonly differing: number;
  readonly first?: Pick<OtherDecision, 'epoch' | 'tick' | 'at'>;
  /** What it would have done and was not done, and what was done and it would not have. */
  readonly would: readonly OtherDecision[];
  readonly wouldNot: readonly OtherDecision[];
}

type Told = Pick<OtherDecision, 'kind' | 'attemptId' | 'reason'>;

/** Launches and ends: the rest of what is decided does not hang on how stragglers are treated. */
function toldOf(decisions: readonly Decision[]): ReadonlyMap<string, Told> {
  const told = decisions.flatMap((each): Told[] =>
    each.kind === 'launch' || each.kind === 'cancel' || each.kind === 'lose'
      ? [{ kind: each.kind, attemptId: each.attemptId, reason: each.reason }]
      : [],
  );
  return new Map(told.map((each) => [`${each.kind} ${each.attemptId} ${each.reason}`, each]));
}

/** Has another policy decide beside a replay: give `onTick` to it. */
export class OtherPolicy {
  private readonly policy: PolicyName;
  private readonly would = new Map<string, OtherDecision>();
  private readonly wouldNot = new Map<string, OtherDecision>();
  private ticks = 0;
  private differing = 0;
  private first: PolicyComparison['first'];

  constructor(policy: PolicyName) {
    this.policy = policy;
  }

  readonly onTick = ({ epoch, tick, state, at, config, budget, rng, decided }: ReplayedTick): void => {
    // Clones were admitted to the recorded policy, and whether the other's would have been, nobody knows. From the next tick on
    // the job has those that were: one that makes clones as well is given them at this one, too.
    const makesClones = policySetOf(this.policy).wishes !== undefined;
    const terms = makesClones ? budget : { ...budget, clones: [], clonesTaken: [] };
    const other = decideTick(state, at, { ...config, policy: this.policy }, terms, rng);
    const [mine, its] = [toldOf(decided.decisions), toldOf(other.decisions)];
    const where = { epoch, tick, at };
    const added = [...its].filter(([key]) => !mine.has(key)).map(([, told]) => ({ ...where, ...told }));
    const missing = [...mine].filter(([key]) => !its.has(key)).map(([, told]) => ({ ...where, ...told }));
    this.ticks += 1;
    if (added.length + missing.length === 0) return;
    this.differing += 1;
    this.first ??= where;
    for (const each of added) keepFirst(this.would, each);
    for (const each of missing) keepFirst(this.wouldNot, each);
  };

  comparison(): PolicyComparison {
    return {
      ...{ policy: this.policy, ticks: this.ticks, differing: this.differing },
      ...(this.first === undefined ? {} : { first: this.first }),
      ...{ would: [...this.would.values()], wouldNot: [...this.wouldNot.values()] },
    };
  }
}

/** A copy that was not made is asked for again with each tick. */
function keepFirst(known: Map<string, OtherDecision>, each: OtherDecision): void {
  const key = `${each.kind} ${taskOf(each.attemptId)} ${each.reason}`;
  if (!known.has(key)) known.set(key, each);
}
