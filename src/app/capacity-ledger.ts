import { StoreUnavailableError } from '../contracts/errors.ts';
import type { JobId } from '../contracts/ids.ts';
import { elapsedMs, type EpochMs, epochMs } from '../contracts/units.ts';
import { admitBackups } from '../core/capacity/admit-backups.ts';
import { admitClones, holdsClones, releaseClones } from '../core/capacity/admit-clones.ts';
import { type ApiPace, type ApiRate, paceAt, startPace } from '../core/capacity/api-pace.ts';
import type { CloneAdmission, CloneRequest, CloneTerms } from '../core/capacity/clone-admission.ts';
import { hasClones, type Preemption } from '../core/capacity/clone-holding.ts';
import type { BidTerms } from '../core/capacity/arbitrate-guarantees.ts';
import { admitGuarantee, lacksGuarantee } from '../core/capacity/guarantees.ts';
import type { AdmittedPart, CapacityRule, Holding, SlotBid } from '../core/capacity/ledger.ts';
import { spendTokens } from '../core/capacity/replication-tokens.ts';
import { grantFree, isOwed, isShort, shareSlots, stated } from '../core/capacity/share-slots.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { CapacityStore } from '../ports/capacity-store.ts';
import { type BidAnswer, BidRounds } from './bid-rounds.ts';
import { lookEveryMs, newsOf } from './ledger-news.ts';
import { type CapacityView, type GrantContext, type News, viewOf, wordsOf } from './ledger-words.ts';
import { SilenceWatch } from './silence-watch.ts';

export type { CapacityGrant, CapacityView, GrantContext } from './ledger-words.ts';

export interface LedgerOptions {
  /** Units that this process may write a second; as many as it likes where nothing is said. */
  readonly writes?: ApiRate;
  /** How long it waits, for each job, after sharing slots out before it does so again; 50 ms where nothing is said. */
  readonly spacingPerJobMs?: number;
}

/**
 * What one of so many schedulers may write to the ledger: all together well under the 1,000 units a second that one key
 * takes, and under 300 also where all of them have rested.
 */
export const ledgerWrites = (schedulers: number): ApiRate => ({
  perS: keyUnitsPerS / schedulers,
  burst: Math.max(leastBurst, keyBurst / schedulers),
});
const keyUnitsPerS = 180;
const keyBurst = 60;
const leastBurst = 3;

/** What this process knows of a job of its own. */
interface Known {
  holding: Holding;
  /** When the job spoke last, and when it was read last. */
  toldAt: EpochMs;
  readAt: EpochMs;
  /** When it was refused some of what it had asked for. */
  refusedAt?: Partial<Record<AdmittedPart, EpochMs>>;
}

/** How long one process waits after sharing slots out before it does so again: for each job, and at most. */
const defaultSpacingMs = 50;
const longestSpacingMs = 1_000;
/** With fewer jobs than this, whoever wants more has slots shared out at once. */
const fewJobs = 20;
/** It bounds the write that shares slots out, and what it asks of the key. */
const mostChanges = 50;
const mostStrikes = 50;
const parallelStrikes = 8;
/** How often more is asked for where rivals' changes come first, until the next tick. */
const askTries = 3;
/** How often a job speaks anew where others have changed its grant meanwhile. */
const mostWords = 8;

/**
 * Slots of all jobs together: the rules of `core/capacity` over a store that knows none. A job's scheduler may ask each
 * tick; what has changed nothing costs nothing. Each process has one for all of its jobs, and what one of them reads
 * the others know.
 */
export class RuledCapacityLedger {
  private readonly store: CapacityStore;
  private readonly known = new Map<JobId, Known>();
  private readonly silence = new SilenceWatch();
  private readonly bids = new BidRounds((context, rule) => this.decide(context, rule, askTries));
  /** Jobs that are known to hold nothing, or to be in the hands of another scheduler. */
  private readonly gone = new Set<JobId>();
  private readonly rate: ApiRate | undefined;
  private readonly spacingPerJobMs: number;
  private pace: ApiPace | undefined;
  private sharedAt: EpochMs | undefined;
  /** Jobs when slots were shared out last, and whether some had fewer than they wanted. */
  private jobs = 0;
  private isAnyShort = false;
  /** Jobs with deadlines that lacked slots then. */
  private owed: ReadonlySet<JobId> = new Set();

  constructor(store: CapacityStore, { writes, spacingPerJobMs = defaultSpacingMs }: LedgerOptions = {}) {
    this.store = store;
    this.rate = writes;
    this.spacingPerJobMs = spacingPerJobMs;
  }

  /**
   * Asks for `wanted` slots and says what still runs. Answers the slots that the job may launch with now (0 to
   * `wanted`). One small write where that is news, and now and then as a sign of life; one more and one for each job
   * that it concerns where slots are shared out anew.
   */
  async resize(jobId: JobId, wanted: number, context: GrantContext): Promise<number> {
    const { live, now, guaranteed = 0 } = context;
    // One that is guaranteed slots keeps them between its stages.
    const needsNone = wanted === 0 && (live ?? 0) === 0 && guaranteed === 0;
    if (needsNone && (await this.leave(jobId, context))) return 0;
    const { holding: said, news } = await this.speak(jobId, wanted, context);
    if (said === undefined) return 0;
    if (live !== undefined && lacksGuarantee(said, guaranteed)) await this.admitGuarantee(jobId, context);
    const holding = this.known.get(jobId)?.holding ?? said;
    if (live === undefined) {
      if (isShort(holding))
        await this.decide(context, (ledger) => grantFree(ledger, jobId, context.totalSlots));
    } else if (isShort(holding) || (news === 'gives' && this.isAnyShort)) {
      await this.share(context, news !== undefined);
    } else await this.lookAgain(jobId, now);
    return Math.min(wanted, this.known.get(jobId)?.holding.slots ?? 0);
  }

  /** What a job was admitted of a part, backups or slots of its own, or all its slots, as far as this process knows. */
  admitted(jobId: JobId, part: AdmittedPart | 'slots'): number {
    return this.known.get(jobId)?.holding[part] ?? 0;
  }

  /**
   * Asks for `wanted` backups under a cap on those of all jobs together; answers how many the job may run. Refused, it
   * asks again after a while. Costs two small writes where some are admitted.
   */
  admitBackups(
    jobId: JobId,
    { wanted, cap }: { readonly wanted: number; readonly cap: number },
    context: GrantContext,
  ): Promise<number> {
    const { epoch = 0, totalSlots } = context;
    const asking = { jobId, epoch, wanted, cap, totalSlots };
    return this.ask('backups', { jobId, wanted }, context, (ledger) => admitBackups(ledger, asking));
  }

  /**
   * Asks for replicas: `spent` bytes with those that were made before, of the tokens `earned`. All of them or none;
   * answers how many bytes the job may have spent in all. See the rule of the same name.
   */
  spendTokens(
    jobId: JobId,
    { earned, spent }: { readonly earned: number; readonly spent: number },
    context: GrantContext,
  ): Promise<number> {
    const { epoch = 0, totalSlots } = context;
    const asking = { jobId, epoch, earned, spent, totalSlots };
    return this.ask('tokens', { jobId, wanted: spent }, context, (ledger) => spendTokens(ledger, asking));
  }

  /**
   * Bids for slots of its own, with what each more is worth to the job: all such slots are divided anew; answers how many
   * are its own now. `busy`: nothing was changed, for others came first or too much was written; to be asked again.
   */
  async bid(jobId: JobId, bid: SlotBid, context: GrantContext & BidTerms): Promise<BidAnswer> {
    const { epoch = 0, totalSlots, now, needed, alone } = context;
    if ((await this.read(jobId, context)) === undefined) await this.enter(jobId, context);
    if (this.tokens(now) < 2) return 'busy';
    return this.bids.ask({ jobId, epoch, bid, totalSlots, needed, alone }, context);
  }

  /** Whether another job lacks slots that it needs for its deadline, as far as this process knows. */
  isAnyOwed(jobId: JobId): boolean {
    return [...this.owed].some((other) => other !== jobId);
  }

  private admitGuarantee(jobId: JobId, context: GrantContext): Promise<number> {
    const { epoch = 0, totalSlots, guaranteed: wanted = 0 } = context;
    const asking = { jobId, epoch, wanted, totalSlots };
    return this.ask('guaranteed', { jobId, wanted }, context, (ledger) => admitGuarantee(ledger, asking));
  }

  /** Asks for more than a job was admitted, two small writes; where it was refused, again after a while. */
  private async ask(
    part: AdmittedPart,
    { jobId, wanted }: { readonly jobId: JobId; readonly wanted: number },
    context: GrantContext,
    rule: CapacityRule<number>,
  ): Promise<number> {
    const { now } = context;
    const refusedAt = this.known.get(jobId)?.refusedAt?.[part];
    const isRefused = refusedAt !== undefined && now >= refusedAt && now - refusedAt < lookEveryMs;
    const had = this.admitted(jobId, part);
    if (!this.known.has(jobId) || had >= wanted || isRefused || this.tokens(now) < 2) return had;
    const admitted = await this.decide(context, rule, askTries);
    if (admitted === 'busy') return this.admitted(jobId, part);
    const known = this.known.get(jobId);
    if (known !== undefined && admitted < wanted) known.refusedAt = { ...known.refusedAt, [part]: now };
    return admitted;
  }

  /** Forgets what it knows of a job, as when another process may have served it meanwhile. */
  forget(jobId: JobId): Promise<void> {
    this.known.delete(jobId);
    this.gone.delete(jobId);
    return Promise.resolve();
  }

  /** Admits clones by the rule of the same name. */
  async admitClones(
    jobId: JobId,
    request: CloneRequest,
    context: GrantContext & CloneTerms,
  ): Promise<CloneAdmission> {
    const { totalSlots, budgetSlots, ceilingSlots, epoch = 0 } = context;
    const asking = { jobId, epoch, totalSlots, budgetSlots, ceilingSlots };
    for (let round = 1; round <= mostWords; round++) {
      if ((await this.read(jobId, context)) === undefined) await this.enter(jobId, context);
      const answer = await this.decide(context, (ledger) => admitClones(ledger, asking, request));
      if (answer !== undefined && answer !== 'busy') return answer;
      this.known.delete(jobId);
    }
    throw new StoreUnavailableError('a job is struck out of the ledger again and again', { jobId });
  }

  /**
   * Gives clones back by the rule of the same name. `addedSlots`: those beside one copy of each task, all where nothing is
   * said; `epoch`: which of the job's schedulers says so.
   */
  async releaseClones(
    jobId: JobId,
    phase: string,
    keepSlots: number,
    { addedSlots = keepSlots, epoch = 0 }: { readonly addedSlots?: number; readonly epoch?: number } = {},
  ): Promise<void> {
    const own = await this.store.own(jobId);
    if (own === undefined || !holdsClones(own, phase)) return;
    const kept = { keepSlots, addedSlots };
    const changed = await this.store.change((before) => releaseClones(before, { jobId, epoch }, phase, kept));
    if (changed !== 'busy') this.learn(changed.ledger.holdings, undefined);
  }

  /**
   * The job's phases that have lost their clones to smaller jobs: theirs are charged nothing any more and must stop.
   * A phase stays among them until `releaseClones` to 0, until it is admitted anew, or until the job is struck out.
   */
  async preemptions(jobId: JobId): Promise<Readonly<Record<string, Preemption>>> {
    return (await this.store.own(jobId))?.preempted ?? {};
  }

  /** Gives everything back, clones too; a second release has no effect. */
  async release(jobId: JobId): Promise<void> {
    await this.forget(jobId);
    await this.store.remove(jobId);
  }

  async view(): Promise<CapacityView> {
    return viewOf(await this.store.load());
  }

  /**
   * Strikes the job out, unless it is at work in the hands of another scheduler. Answers whether it has nothing more to say:
   * one that is charged for clones, launched or not, or does not know yet that they were taken away, keeps its place.
   */
  private async leave(jobId: JobId, { epoch = 0 }: GrantContext): Promise<boolean> {
    if (this.gone.has(jobId)) return true;
    if (hasClones(this.known.get(jobId)?.holding ?? {})) return false;
    for (let round = 1; round <= mostWords; round++) {
      const own = await this.store.own(jobId);
      const isAnothers = own !== undefined && own.epoch > epoch;
      if (own !== undefined && !isAnothers && hasClones(own)) return false;
      const isGone = own === undefined || isAnothers || (await this.store.strike(jobId, own)) === 'struck';
      await this.forget(jobId);
      if (!isGone) continue;
      this.gone.add(jobId);
      return true;
    }
    throw new StoreUnavailableError('a job of the ledger changes too fast to leave it', { jobId });
  }

  /** What the job holds, read where this process does not know it. */
  private async read(jobId: JobId, { now }: GrantContext): Promise<Known | undefined> {
    const known = this.known.get(jobId);
    if (known !== undefined) return known;
    const holding = await this.store.own(jobId);
    if (holding === undefined) return undefined;
    const found = { holding, toldAt: epochMs(0), readAt: now };
    this.known.set(jobId, found);
    return found;
  }

  /**
   * Says what the job wants and uses, where that is news. `holding` is the job's after it, undefined where it has none:
   * then there was no room for the write, or another scheduler speaks for the job now.
   */
  private async speak(
    jobId: JobId,
    wanted: number,
    context: GrantContext,
  ): Promise<{ readonly holding: Holding | undefined; readonly news?: News }> {
    for (let round = 1; round <= mostWords; round++) {
      const known = await this.read(jobId, context);
      const before = known?.holding;
      if (before !== undefined && before.epoch > (context.epoch ?? 0)) return { holding: undefined };
      const { live, backups, guaranteed, tokens } = context;
      const words = { live, backups, guaranteed, tokens };
      const after = stated(before, { ...wordsOf(before, wanted, context), ...words });
      const news = newsOf(known, after, context, this.isAnyShort);
      if (news === undefined) return { holding: before };
      if (news !== 'beat' && this.tokens(context.now) < 1) return { holding: before };
      this.spend(1, context.now);
      this.gone.delete(jobId);
      if ((await this.store.tell(jobId, before, after)) === 'stale') {
        this.known.delete(jobId);
        continue;
      }
      this.known.set(jobId, { ...known, holding: after, toldAt: context.now, readAt: context.now });
      return { holding: after, news };
    }
    throw new StoreUnavailableError('a job of the ledger changes too fast to speak of', { jobId });
  }

  private async enter(jobId: JobId, context: GrantContext): Promise<void> {
    const after = stated(undefined, { ...wordsOf(undefined, 0, context), live: context.live });
    this.spend(1, context.now);
    this.gone.delete(jobId);
    const { now } = context;
    if ((await this.store.tell(jobId, undefined, after)) === 'stale') this.known.delete(jobId);
    else this.known.set(jobId, { holding: after, toldAt: now, readAt: now });
  }

  /** Shares slots out, unless that was done just now or would write too much. */
  private async share(context: GrantContext, isNews: boolean): Promise<void> {
    const { now, totalSlots } = context;
    const spacingMs = Math.min(longestSpacingMs, this.spacingPerJobMs * this.jobs);
    const isDue = this.sharedAt === undefined || now < this.sharedAt || now - this.sharedAt >= spacingMs;
    if (!isDue && !(isNews && this.jobs < fewJobs)) return;
    const most = Math.min(mostChanges, Math.floor(this.tokens(now)) - 1);
    if (most < 1) return;
    this.sharedAt = now;
    // Whoever comes first shares for all.
    await this.decide(context, (ledger) => shareSlots(ledger, { totalSlots, mostChanges: most }), 1);
  }

  /** Changes the ledger by a rule, once those have been struck out that have said nothing for too long. */
  private async decide<T>(
    { now, length }: GrantContext,
    rule: CapacityRule<T>,
    tries?: number,
  ): Promise<T | 'busy'> {
    const silent = this.silence.silent(now, length).slice(0, mostStrikes);
    if (silent.length > 0)
      await forEachBounded(silent, parallelStrikes, async ([jobId, seen]) => {
        this.spend(1, now);
        await this.store.strike(jobId, seen);
      });
    let changes = 0;
    const changed = await this.store.change((before) => {
      const move = rule(before);
      changes = move.changes.size;
      return move;
    }, tries);
    if (changes > 0) this.spend(changed === 'busy' ? 1 : 1 + changes, now);
    if (changed === 'busy') return 'busy';
    this.silence.look(changed.ledger.holdings, now, length);
    this.learn(changed.ledger.holdings, now);
    return changed.answer;
  }

  private learn(holdings: ReadonlyMap<JobId, Holding>, now: EpochMs | undefined): void {
    this.jobs = holdings.size;
    this.isAnyShort = [...holdings.values()].some(isShort);
    this.owed = new Set([...holdings].flatMap(([jobId, holding]) => (isOwed(holding) ? [jobId] : [])));
    for (const [jobId, known] of this.known) {
      const holding = holdings.get(jobId);
      if (holding === undefined) this.known.delete(jobId);
      else if (holding.beat === known.holding.beat) {
        known.holding = holding;
        known.readAt = now ?? known.readAt;
      }
    }
  }

  /** Now and then a job that has what it wants looks whether it still does. */
  private async lookAgain(jobId: JobId, now: EpochMs): Promise<void> {
    const known = this.known.get(jobId);
    if (known === undefined || (now >= known.readAt && elapsedMs(known.readAt, now) < lookEveryMs)) return;
    const holding = await this.store.own(jobId);
    if (holding?.beat !== known.holding.beat) this.known.delete(jobId);
    else this.known.set(jobId, { ...known, holding, readAt: now });
  }

  private tokens(now: EpochMs): number {
    if (this.rate === undefined) return Infinity;
    this.pace = paceAt(this.pace ?? startPace(this.rate, now), now);
    return this.pace.tokens;
  }

  private spend(units: number, now: EpochMs): void {
    const tokens = this.tokens(now) - units;
    if (this.pace !== undefined) this.pace = { ...this.pace, tokens };
  }
}

/** The ledger as schedulers use it. */
export type CapacityLedger = Pick<RuledCapacityLedger, keyof RuledCapacityLedger>;
