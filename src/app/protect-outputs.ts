import { bucketOfZone } from '../contracts/directory-buckets.ts';
import { type AttemptId, attemptIdOf, attemptParts, copyIdOf, isCopy } from '../contracts/ids.ts';
import { attemptDataKey, copyOrderKey, stageKey } from '../contracts/keys.ts';
import type { JobCopies } from '../contracts/records.ts';
import type { EpochMs } from '../contracts/units.ts';
import { earnedTokens } from '../core/capacity/replication-tokens.ts';
import type { CopyOutput, Decision, Refusal } from '../core/model/decision.ts';
import { stageAt, taskOfAttempt } from '../core/model/job-state.ts';
import type { JobState, StageView, TaskView } from '../core/model/job-view.ts';
import type { FoundLoss } from '../core/model/tick-config.ts';
import { addLosses, lossPriors, type LossCounts } from '../core/policy/mantri/loss-rate.ts';
import { copyMsOf, isUnprotected, OutputValues } from '../core/policy/mantri/outputs-at-risk.ts';
import { isSpell, precomputeBudgetMs } from '../core/policy/mantri/precompute.ts';
import { protect } from '../core/policy/mantri/protect.ts';
import { lossCostMs, worthOfCopy } from '../core/policy/mantri/replicate.ts';
import { policySetOf } from '../core/policy/policy-sets.ts';
import { mostCopyBytes, type ObjectStore } from '../ports/object-store.ts';
import type { Log } from '../ports/log.ts';
import type { CapacityLedger, GrantContext } from './capacity-ledger.ts';
import { mostCopiesWaiting, type QueuedCopy } from './copy-queue.ts';
import { observe } from './journal.ts';
import { OutputPlaces, type PlacesDeps, zonalBucketsOf } from './output-places.ts';
import type { SchedulerDeps } from './scheduler-deps.ts';
import type { Session } from './scheduler-session.ts';
import { SharedLosses } from './shared-losses.ts';

type Declined = ReturnType<typeof protect>['declined'][number];

/** What a scheduler keeps of what it knows of losses, and of what it has judged. */
export interface Protection {
  /** Whether every output is to be judged: at first, and when losses have changed what is known. */
  isAll: boolean;
  /** What was seen of losses, by the jobs of this process or by this job alone. */
  readonly seen: SharedLosses;
  /** How much of that was known when outputs were judged last. */
  seenUpTo: number;
  /** Outputs that are worth a copy and have none, for want of tokens or since a tick was full. */
  readonly waiting: Set<TaskView>;
  /** Of each stage's outputs that are not worth a copy that which nearly is, by the stage and the reason. */
  readonly nearest: Map<string, Declined>;
  /** Of those that are and get none the dearest as a tick has judged them, by the same. */
  readonly dearest: Map<string, Declined>;
  /** Of which output the log was told last, by the same. */
  readonly told: Map<string, AttemptId>;
  /** Whether the log was told that nothing is copied where the job's data lie, and why. */
  isToldWhy: boolean;
}

const startingFrom = (seen: SharedLosses): Protection => ({
  isAll: true,
  seen,
  seenUpTo: 0,
  waiting: new Set(),
  nearest: new Map(),
  dearest: new Map(),
  told: new Map(),
  isToldWhy: false,
});

export interface ProtectDeps extends PlacesDeps {
  readonly ledger: CapacityLedger;
  readonly objects: ObjectStore;
  readonly log: Log;
}

const configOf = ({ tickConfig }: Pick<Session, 'tickConfig'>) => tickConfig.policyConfig.mantri;

/** Whether the job's policy copies outputs at all. */
const protects = ({ tickConfig }: Pick<Session, 'tickConfig'>): boolean =>
  policySetOf(tickConfig.policy).protectsOutputs === true;

/** Whether what is seen of a job's outputs tells anything: of `standard`, as it is known to be, nothing does. */
const learns = (places: OutputPlaces, job: Pick<Session, 'tickConfig'>): boolean =>
  protects(job) && (places.tier !== 'standard' || configOf(job).lossPrior !== undefined);

/** What a scheduler begins with at `now`: what jobs of its process have seen of losses, or those that ended before. */
export async function openProtection(
  deps: PlacesDeps & Pick<SchedulerDeps, 'losses' | 'lossBook'>,
  job: Pick<Session, 'jobId' | 'plan' | 'state' | 'tickConfig'>,
  now: EpochMs,
): Promise<Protection> {
  const { losses, lossBook } = deps;
  if (losses !== undefined) return startingFrom(losses);
  const isBookRead = lossBook !== undefined && learns(new OutputPlaces(deps, job), job);
  const known = isBookRead ? await lossBook.seenByOthers(job.jobId, now) : undefined;
  return startingFrom(new SharedLosses(known));
}

/** Stages whose outputs others read. */
const readStages = ({ stages }: JobState): readonly StageView[] =>
  stages.filter(({ index }) => stages.some(({ shape }) => shape.upstream.includes(index)));

/**
 * The copy of an output, as was decided; undefined where the output is not read any more, or there is one. Wherever that is, its
 * copy goes to the data bucket: copying takes as long to each place, and of those this one is lost least (`costPerSaved`).
 */
function unmadeCopy(
  { dataBucket }: Pick<ProtectDeps, 'dataBucket'>,
  { jobId, plan, state }: Pick<Session, 'jobId' | 'plan' | 'state'>,
  of: AttemptId,
): QueuedCopy | undefined {
  const task = taskOfAttempt(state, of);
  const { result, replicas, lostOutputs } = task;
  const copyId = copyIdOf(of);
  if (result?.attemptId !== of || copyId === undefined) return undefined;
  const { attempt } = attemptParts(copyId);
  if (replicas.includes(attempt) || lostOutputs.includes(attempt)) return undefined;
  const { zone, worker, ...copied } = result;
  const ofStage = stageKey(plan, stageAt(state, task.stage).shape.name);
  return {
    of,
    ...(worker === undefined ? {} : { order: { bucket: dataBucket, key: copyOrderKey(ofStage, of) } }),
    from: { bucket: bucketOfZone(zonalBucketsOf(plan), zone) ?? dataBucket, key: attemptDataKey(jobId, of) },
    to: { bucket: dataBucket, key: attemptDataKey(jobId, copyId) },
    result: { ...copied, attemptId: copyId },
  };
}

/** Queues the copy of an output, as was decided, unless it is needless. */
export function queueCopy(
  deps: Pick<ProtectDeps, 'dataBucket'>,
  session: Pick<Session, 'jobId' | 'plan' | 'state' | 'copies'>,
  of: AttemptId,
): void {
  const copy = unmadeCopy(deps, session, of);
  if (copy !== undefined) session.copies.add(copy);
}

/**
 * Has a scheduler that took the job over make the copies that were decided on last and of which there is no record: as many as
 * its predecessor can have left waiting. Those before have most likely failed, and of a store that was away for long they may be
 * thousands, behind which no new copy would be decided on.
 */
export function queueUnmadeCopies(
  deps: Pick<ProtectDeps, 'dataBucket'>,
  session: Pick<Session, 'jobId' | 'plan' | 'state' | 'copies'>,
): void {
  const unmade = [...session.state.copied.keys()].flatMap((id) => unmadeCopy(deps, session, id) ?? []);
  for (const copy of unmade.slice(-mostCopiesWaiting)) session.copies.add(copy);
}

/**
 * Takes in what became of copies: those that were recorded are replicas from now on. Answers the outputs that were gone
 * when they were to be copied: whoever would have read them need not find out.
 */
export function takeCopies({ log }: Pick<ProtectDeps, 'log'>, session: Session): readonly FoundLoss[] {
  const { jobId, state } = session;
  return session.copies.take().flatMap(({ of, result, outcome }): readonly FoundLoss[] => {
    if (outcome === 'kept') observe(session, { kind: 'replica', result });
    const isLost = outcome === 'gone' || outcome === 'short';
    if (!isLost || taskOfAttempt(state, of).result?.attemptId !== of) return [];
    const how = outcome === 'gone' ? 'missing' : outcome;
    log.warn('gone-before-copy', { jobId, attemptId: of, how });
    return [{ attemptId: of, how }];
  });
}

/** Whether a copy that was decided on was made: it is read, or might be, or was lost itself since. */
function isCopyMade(state: JobState, of: AttemptId): boolean {
  const copyId = copyIdOf(of);
  if (copyId === undefined) return false;
  const { result, replicas, lostOutputs } = taskOfAttempt(state, of);
  const { attempt } = attemptParts(copyId);
  return result?.attemptId === copyId || replicas.includes(attempt) || lostOutputs.includes(attempt);
}

/** What a job has copied, for its record; nothing said of one that has decided on no copy. */
export function copiesMade(state: JobState): { readonly copies?: JobCopies } {
  if (state.copied.size === 0) return {};
  let [outputs, bytes] = [0, 0];
  for (const [of, each] of state.copied) {
    if (!isCopyMade(state, of)) continue;
    outputs += 1;
    bytes += each.bytes;
  }
  return { copies: { outputs, bytes, tokens: earnedTokens(state) } };
}

/** Learns from losses that were found at `now`. */
export function learnLosses(
  deps: PlacesDeps,
  session: Session,
  losses: readonly FoundLoss[],
  now: EpochMs,
): void {
  const places = new OutputPlaces(deps, session);
  for (const { attemptId } of losses) session.protection.seen.lose(places.of(attemptId), now);
}

/**
 * Outputs that the job has seen to be there, or not, by where they lay: those that were read, or looked at since one of
 * their stage was lost.
 */
function countsOf(places: OutputPlaces, state: JobState): ReadonlyMap<string, LossCounts> {
  const counts = new Map<string, LossCounts>();
  const count = (id: AttemptId | undefined, lost: number): void => {
    addLosses(counts, places.of(id), { outputs: 1, lost });
  };
  for (const { index, tasks, shape } of readStages(state)) {
    const isRead = state.stages.some((each) => each.done > 0 && each.shape.upstream.includes(index));
    const isLost = tasks.some(({ lostOutputs }) => lostOutputs.length > 0);
    for (const task of tasks) {
      for (const number of task.lostOutputs) count(attemptIdOf(shape.name, task.index, number), 1);
      if (isRead || isLost) count(task.result?.attemptId, 0);
    }
  }
  return counts;
}

/** Has later jobs know what this one, which has ended, has seen of its outputs. Never throws. */
export async function keepCounts(
  deps: PlacesDeps & Pick<SchedulerDeps, 'lossBook'>,
  session: Session,
  now: EpochMs,
): Promise<void> {
  const places = new OutputPlaces(deps, session);
  const counts = countsOf(places, session.state);
  session.protection.seen.keep(counts);
  if (learns(places, session)) await deps.lossBook?.keep(session.jobId, counts, now);
}

function valuesOf(places: OutputPlaces, session: Session): OutputValues {
  const config = configOf(session);
  const { state, protection } = session;
  const rates = places.rates(protection.seen.with(countsOf(places, state)), config.lossPrior);
  const copyLoss = rates(places.copies);
  return new OutputValues(state, {
    lossOf: ({ stage, index }, attempt) =>
      isCopy(attempt)
        ? copyLoss
        : rates(places.of(attemptIdOf(stageAt(state, stage).shape.name, index, attempt))),
    copyLoss,
    copying: config,
  });
}

/** Tells once why nothing is copied where nothing is lost, with the numbers of the output that is dearest to lose. */
function tellWhy(
  { log }: Pick<ProtectDeps, 'log'>,
  session: Session,
  places: OutputPlaces,
  prior = lossPriors.standard,
): void {
  const { jobId, state, protection } = session;
  const done = protection.isToldWhy ? undefined : readStages(state).find((stage) => stage.state === 'done');
  if (done === undefined) return;
  protection.isToldWhy = true;
  const values = valuesOf(places, session);
  const dearest = done.tasks
    .filter(({ result }) => result !== undefined)
    .map((task) => values.valueOf(task))
    .toSorted((a, b) => worthOfCopy(b) - worthOfCopy(a))[0];
  if (dearest === undefined) return;
  log.info('nothing-copied', {
    jobId,
    storage: places.tier,
    why: prior.why,
    lossProbability: dearest.lossProbability,
    redoMs: Math.round(dearest.redoMs),
    lossCostMs: lossCostMs(dearest),
    copyMs: Math.round(dearest.copyMs),
    tokens: earnedTokens(state),
  });
}

/** Outputs that a tick has to judge: what has ended since the last, what waits for tokens, or all. */
function toBeJudged({ state, protection }: Session): readonly TaskView[] {
  const all = protection.isAll
    ? readStages(state).flatMap(({ tasks }) => tasks)
    : [...state.justDone, ...protection.waiting];
  return [...new Set(all)].filter((task) => isUnprotected(state, task));
}

/** What copies for their worth have cost so far, and what those in spells have. */
function spentOf(session: Session): { readonly tokens: number; readonly spellMs: number } {
  const config = configOf(session);
  let [tokens, spellMs] = [0, 0];
  for (const { bytes, reason } of session.state.copied.values())
    if (reason === 'worth') tokens += bytes;
    else spellMs += copyMsOf(bytes, config);
  return { tokens, spellMs };
}

/** Slot time that the job's finished tasks have taken. */
const workedMs = ({ stages }: JobState): number =>
  stages.reduce((sum, { statistics }) => sum + statistics.slotTime.ownMs, 0);

/**
 * Refusals that the log is to be told: of each stage's outputs that are not worth it that which nearly is, once the stage is
 * done; of those that have to wait the dearest, once. All would be told anew in each tick.
 */
function refusalsOf(
  { state, protection: { nearest, dearest, told } }: Session,
  declined: readonly Declined[],
): readonly Refusal[] {
  dearest.clear();
  for (const each of declined) {
    const { output, refusal } = each;
    const among = refusal.reason === 'replica-not-worth-it' ? nearest : dearest;
    const key = `${output.task.stage}/${refusal.reason}`;
    const known = among.get(key)?.output;
    if (known === undefined || worthOfCopy(known) < worthOfCopy(output)) among.set(key, each);
  }
  const telling: Refusal[] = [];
  for (const [key, { output, refusal }] of dearest)
    if (told.get(key) !== output.task.result?.attemptId) telling.push(refusal);
  for (const [key, { output, refusal }] of nearest) {
    if (stageAt(state, output.task.stage).state !== 'done') continue;
    nearest.delete(key);
    telling.push(refusal);
  }
  return telling;
}

/** Notes which refusals a log entry has told. Those of a tick that had nothing to log are told by a later one. */
export function noteTold({ protection }: Session, refusals: readonly Refusal[]): void {
  const { dearest, told } = protection;
  for (const [key, { output, refusal }] of dearest) {
    const { result } = output.task;
    if (result !== undefined && refusals.includes(refusal)) told.set(key, result.attemptId);
  }
}

/**
 * Judges the outputs that have come since the last tick, and decides which are copied, so that their loss costs nobody a
 * wait. The capacity ledger is asked for the tokens of what is copied for its worth. Nothing is asked for where the
 * storage loses nothing: that is told once. While a job may not copy, what ends is left to be judged later.
 *
 * Source: Mantri §5.3.
 */
export async function protectOutputs(
  deps: ProtectDeps,
  session: Session,
  context: GrantContext,
  mayCopy: boolean,
): Promise<{ readonly copies?: readonly CopyOutput[]; readonly notCopied?: readonly Refusal[] }> {
  const { state, protection, jobId } = session;
  const config = configOf(session);
  if (!protects(session) || state.stages.length < 2) return {};
  const places = new OutputPlaces(deps, session);
  if (config.lossPrior === undefined && places.tier === 'standard') {
    tellWhy(deps, session, places);
    return {};
  }
  if (!config.replicates && !config.precomputes) return {};
  if (!mayCopy || session.overBudget > 0) {
    protection.isAll = true;
    return {};
  }
  if (protection.seenUpTo !== protection.seen.losses) protection.isAll = true;
  const judged = toBeJudged(session);
  protection.isAll = false;
  protection.seenUpTo = protection.seen.losses;
  protection.waiting.clear();
  if (judged.length === 0) return {};
  const values = valuesOf(places, session);
  const outputs = judged.map((task) => values.valueOf(task)).filter(({ bytes }) => bytes <= mostCopyBytes);
  const { spellLosses, spellMs, precomputeShare } = config;
  const terms = { losses: spellLosses, withinMs: spellMs };
  const isInSpell = (location: string): boolean =>
    isSpell(protection.seen.lostAt(location), context.now, terms);
  const inSpell = config.precomputes
    ? outputs.filter(({ task }) => isInSpell(places.of(task.result?.attemptId)))
    : [];
  const spent = spentOf(session);
  const earned = earnedTokens(state);
  const choice = protect(state, {
    outputs: config.replicates ? outputs : [],
    tokens: earned - spent.tokens,
    inSpell,
    spellLeftMs: precomputeBudgetMs(precomputeShare, workedMs(state), spent.spellMs),
    most: Math.max(0, mostCopiesWaiting - session.copies.size),
  });
  for (const task of choice.waiting) protection.waiting.add(task);
  const worth = choice.copies.filter(({ reason }) => reason === 'worth');
  const wanted = spent.tokens + worth.reduce((sum, { bytes }) => sum + bytes, 0);
  const isAdmitted =
    worth.length === 0 ||
    (await deps.ledger.spendTokens(jobId, { earned, spent: wanted }, context)) >= wanted;
  if (!isAdmitted) for (const { attemptId } of worth) protection.waiting.add(taskOfAttempt(state, attemptId));
  const copies = isAdmitted ? choice.copies : choice.copies.filter(({ reason }) => reason === 'spell');
  return { copies, notCopied: refusalsOf(session, choice.declined) };
}

/** Has copies judged again on which a tick that was full did not decide. */
export function keepUndecided(
  { state, protection }: Pick<Session, 'state' | 'protection'>,
  copies: readonly CopyOutput[] = [],
  decisions: readonly Decision[],
): void {
  if (copies.length === 0) return;
  const decided = new Set(decisions.flatMap((each) => (each.kind === 'copy-output' ? [each.attemptId] : [])));
  for (const { attemptId } of copies)
    if (!decided.has(attemptId)) protection.waiting.add(taskOfAttempt(state, attemptId));
}
