import { bucketOfZone } from '../contracts/directory-buckets.ts';
import {
  ConflictError,
  NotFoundError,
  StoreRefusedError,
  StoreUnavailableError,
} from '../contracts/errors.ts';
import { type AttemptId, attemptIdOf, attemptParts } from '../contracts/ids.ts';
import { attemptDataKey, type ObjectRef } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import type { LossKind } from '../contracts/records.ts';
import type { JobState, Suspicion, TaskView } from '../core/model/job-view.ts';
import { isNeeded, placeOfOutput, taskWithOutput, unreachedBy } from '../core/model/lost-outputs.ts';
import type { FoundLoss } from '../core/model/tick-config.ts';
import { sourceTasks } from '../core/model/upstream-copies.ts';
import { forEachBounded } from '../lib/bounded.ts';
import { crc32 } from '../lib/crc32.ts';
import type { Log } from '../ports/log.ts';
import type { ObjectStore } from '../ports/object-store.ts';
import { observe, type Observed } from './journal.ts';
import { zonalBucketsOf } from './output-places.ts';
import type { Session } from './scheduler-session.ts';

const looksAtOnce = 32;
/** Ranges that are read again at once. */
const checksAtOnce = 4;
/** An object is gone, was written anew, or cannot be read just now. */
const unreadable = [NotFoundError, ConflictError, StoreUnavailableError] as const;

/**
 * How often a zone is asked in vain before it is asked no more, by whether it has answered for anything; no word at all counts
 * twice, as it takes its time. S3 may fail over one object alone, which says nothing of the others.
 */
const mostInVain = { unheard: 2, heard: 8 };

/** How a zone has answered in one look. */
interface Answers {
  isHeard: boolean;
  inVain: number;
}

const isAway = ({ isHeard, inVain }: Answers): boolean => !isHeard && inVain >= mostInVain.unheard;

type Seen = { readonly sizeBytes: number } | undefined | 'unreachable' | 'refused';

interface LookDeps {
  readonly objects: ObjectStore;
  readonly dataBucket: string;
  readonly log: Log;
}

/**
 * Looks at the outputs that readers did not find, so that none is made again for a reader's own fault, and says which
 * are gone. Where one is, it looks also at what else is likely to be gone and would be missed next: the other copies of
 * that output, other outputs of its stage that are still needed, and what a task that is to be done again reads itself,
 * and so on. Of those it sees whether they are there and as long as they were. An output that is there is suspected no
 * more, and whoever has told of it has failed by itself. Without a suspicion nothing is asked for; else at most
 * `limits.lossProbes` objects, and what is suspected beyond that is looked at by the next tick.
 */
export async function lookForLosses(
  deps: LookDeps,
  job: Pick<Session, 'jobId'> & Observed & Partial<Pick<Session, 'plan'>>,
): Promise<readonly FoundLoss[]> {
  if (job.state.suspects.size === 0) return [];
  observe(job, { kind: 'suspects-sorted' });
  const suspicions = [...job.state.suspects.values()];
  if (suspicions.length === 0) return [];
  const zonalBuckets = zonalBucketsOf(job.plan);
  const look = new Look({ ...deps, zonalBuckets }, job);
  await forEachBounded(suspicions.slice(0, limits.lossProbes), checksAtOnce, (each) => look.check(each));
  await look.goOn();
  return [...look.found.values()];
}

/** One look at a job's outputs. */
class Look {
  readonly found = new Map<AttemptId, FoundLoss>();
  private readonly deps: LookDeps & { readonly zonalBuckets: readonly string[] };
  private readonly job: Pick<Session, 'jobId'> & Observed;
  private readonly jobId: Session['jobId'];
  private readonly state: JobState;
  private readonly seen = new Set<AttemptId>();
  private readonly reopening = new Set<TaskView>();
  private readonly stages = new Set<number>();
  /** What directory buckets have answered so far. */
  private readonly answers = new Map<string, Answers>();
  /** How many attempts of one task have said so of what, once that is asked. */
  private unreachedBy: ReadonlyMap<AttemptId, number> | undefined;
  /** Bytes that may still be read again. */
  private checkBytes: number = limits.lossCheckBytes;

  constructor(deps: Look['deps'], job: Pick<Session, 'jobId'> & Observed) {
    this.deps = deps;
    this.job = job;
    this.jobId = job.jobId;
    this.state = job.state;
  }

  /** Sees whether a suspicion is right. */
  async check(suspicion: Suspicion): Promise<void> {
    const { attemptId, by } = suspicion;
    this.seen.add(attemptId);
    const how = await this.howLost(suspicion);
    if (how !== undefined) {
      const reader = by[0]?.id;
      this.found.set(attemptId, { attemptId, how, ...(reader === undefined ? {} : { by: reader }) });
      return;
    }
    const { jobId } = this;
    this.deps.log.warn('output-is-there', {
      jobId,
      attemptId,
      told: suspicion.how,
      by: by.map(({ id }) => id),
    });
    observe(this.job, { kind: 'output-there', attemptId });
  }

  /** Looks from what is gone at what is next to it, in rounds: each goes at least one stage back, or is the last. */
  async goOn(): Promise<void> {
    let lost = [...this.found.keys()];
    for (let round = 0; lost.length > 0 && round <= 2 * this.state.stages.length; round++) {
      const before = new Set(this.found.keys());
      const tasks = lost.flatMap((id) => taskWithOutput(this.state, id) ?? []);
      await this.probe(tasks.flatMap((task) => this.replicasOf(task)));
      for (const task of tasks) if (this.isGone(task)) this.reopening.add(task);
      // What is to be read at once comes first, should not all be asked for.
      await this.probe([...this.inputsOf(tasks), ...this.siblingsOf(tasks)]);
      lost = [...this.found.keys()].filter((id) => !before.has(id));
    }
  }

  private async howLost(suspicion: Suspicion): Promise<LossKind | undefined> {
    const { attemptId, how, offset, length } = suspicion;
    if (how === 'unpublished') return 'missing';
    const ref = this.refOf(attemptId);
    const there = await this.head(ref);
    if (there === 'unreachable') return there;
    if (there === 'refused') return undefined;
    // Nobody outside of the workers' network can ask the one that keeps it: whoever reads has asked twice, and is believed.
    if (there === undefined) return this.isWithWorker(attemptId) ? how : 'missing';
    if (there.sizeBytes < offset + length) return 'short';
    // Where sizes are told bytes may not be given all the same: a task may have met what has passed, once and not twice.
    this.unreachedBy ??= unreachedBy(this.state);
    if ((this.unreachedBy.get(attemptId) ?? 0) > 1) return 'unreachable';
    if (how !== 'short' && how !== 'damaged') return undefined;
    // Whoever reads has asked twice; of so much he is believed.
    if ((this.checkBytes -= length) < 0) return 'damaged';
    return this.howDamaged(ref, suspicion);
  }

  /** Reads a range again that was not as it was written: undefined where it is. What cannot be read, its reader is believed. */
  private async howDamaged(
    ref: ObjectRef,
    { offset: start, length, crc }: Suspicion,
  ): Promise<LossKind | undefined> {
    let seen = 0;
    try {
      for await (const chunk of this.deps.objects.read(ref, { range: { start, end: start + length } }))
        seen = crc32(chunk, seen);
    } catch (cause) {
      const isRefused = cause instanceof StoreRefusedError;
      if (cause instanceof StoreUnavailableError && !isRefused && ref.bucket !== this.deps.dataBucket) {
        this.answersOf(ref).inVain += 1;
        return 'unreachable';
      }
      if (unreadable.some((kind) => cause instanceof kind)) return 'damaged';
      throw cause;
    }
    return seen === crc ? undefined : 'damaged';
  }

  private isWithWorker(attemptId: AttemptId): boolean {
    return placeOfOutput(this.state, attemptId).worker !== undefined;
  }

  /** Of an output that a worker keeps: where the worker puts it before it ends. */
  private refOf(attemptId: AttemptId): ObjectRef {
    const { zone } = placeOfOutput(this.state, attemptId);
    const bucket = bucketOfZone(this.deps.zonalBuckets, zone) ?? this.deps.dataBucket;
    return { bucket, key: attemptDataKey(this.jobId, attemptId) };
  }

  private answersOf({ bucket }: ObjectRef): Answers {
    const known = this.answers.get(bucket) ?? { isHeard: false, inVain: 0 };
    this.answers.set(bucket, known);
    return known;
  }

  /** What is in one zone is as good as gone where that does not answer. */
  private async head(ref: ObjectRef): Promise<Seen> {
    const answers = this.answersOf(ref);
    if (isAway(answers) || answers.inVain >= mostInVain.heard) return 'unreachable';
    try {
      const there = await this.deps.objects.head(ref);
      answers.isHeard = true;
      return there;
    } catch (cause) {
      if (!(cause instanceof StoreUnavailableError) || ref.bucket === this.deps.dataBucket) throw cause;
      if (cause instanceof StoreRefusedError) {
        answers.isHeard = true;
        return 'refused';
      }
      answers.inVain += typeof cause.details['status'] === 'number' ? 1 : mostInVain.unheard;
      return 'unreachable';
    }
  }

  /**
   * Sees whether outputs are there, and as long as they were, as far as objects may still be asked for. Nobody has missed
   * them: of a zone that answers for others what it does not answer for is no loss.
   */
  private async probe(ids: readonly AttemptId[]): Promise<void> {
    const left = Math.max(0, limits.lossProbes - this.seen.size);
    const sizeOf = (id: AttemptId): number => bytesRead(this.state, taskWithOutput(this.state, id));
    // Of empty outputs, and of the last stage's, nothing is asked.
    const isToBeSeen = (id: AttemptId): boolean =>
      !this.seen.has(id) && !this.isWithWorker(id) && sizeOf(id) > 0;
    const fresh = [...new Set(ids)].filter(isToBeSeen).slice(0, left);
    for (const id of fresh) this.seen.add(id);
    const unanswered: AttemptId[] = [];
    await forEachBounded(fresh, looksAtOnce, async (attemptId) => {
      const there = await this.head(this.refOf(attemptId));
      if (there === 'refused') return;
      if (there === 'unreachable') unanswered.push(attemptId);
      else if (there === undefined) this.found.set(attemptId, { attemptId, how: 'missing' });
      else if (there.sizeBytes < sizeOf(attemptId)) this.found.set(attemptId, { attemptId, how: 'short' });
    });
    // Once all are asked for: those that were asked for at once have answered in any order.
    for (const attemptId of unanswered)
      if (isAway(this.answersOf(this.refOf(attemptId))))
        this.found.set(attemptId, { attemptId, how: 'unreachable' });
  }

  private stageName({ stage }: TaskView): string {
    return this.state.stages[stage]?.shape.name ?? '';
  }

  private replicasOf(task: TaskView): AttemptId[] {
    return task.replicas.map((number) => attemptIdOf(this.stageName(task), task.index, number));
  }

  /** Whether no copy of a task's output is left, so that it is to be done again. */
  private isGone(task: TaskView): boolean {
    const winner = task.result?.attemptId;
    if (winner === undefined || !this.found.has(winner)) return false;
    const { stage } = attemptParts(winner);
    return task.replicas.every((number) => this.found.has(attemptIdOf(stage, task.index, number)));
  }

  /** What other tasks of the same stages have left that is needed still. */
  private siblingsOf(tasks: readonly TaskView[]): AttemptId[] {
    const fresh = new Set(tasks.map(({ stage }) => stage).filter((stage) => !this.stages.has(stage)));
    for (const stage of fresh) this.stages.add(stage);
    return [...fresh].flatMap((stage) =>
      (this.state.stages[stage]?.tasks ?? [])
        .filter((task) => isNeeded(this.state, task, this.reopening))
        .flatMap(({ result }) => result?.attemptId ?? []),
    );
  }

  /** What tasks read that are to be done again. */
  private inputsOf(tasks: readonly TaskView[]): AttemptId[] {
    return tasks
      .filter((task) => this.reopening.has(task))
      .flatMap((task) => sourceTasks(this.state, task))
      .flatMap(({ result }) => result?.attemptId ?? []);
  }
}

/** Bytes of a task's output that other stages read; none of the last stage's, which is published. */
const bytesRead = ({ stages }: JobState, task: TaskView | undefined): number =>
  task === undefined || task.stage === stages.length - 1 ? 0 : (task.result?.bytesOut ?? 0);
