import { AccessDeniedError, NotFoundError } from '../contracts/errors.ts';
import { attemptOfDataKey, copyOrderKey, jobDataPrefix } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import type { AttemptPayload } from '../contracts/payloads.ts';
import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import { bucketOfWorker } from '../contracts/worker-places.ts';
import type { OutputKeeper } from '../ports/output-keeper.ts';
import { ObjectWriter } from './object-writer.ts';
import type { AttemptDeps } from './run-attempt.ts';
import { leaveMs, PlaceTakenError } from './time-limit.ts';

const lookEvery = durationMs(2_000);

type StayDeps = Pick<AttemptDeps, 'clock' | 'dataBucket' | 'keeper' | 'log' | 'objects' | 'stopSignal'>;
type StayingFor = Pick<AttemptPayload, 'jobId' | 'stageKey'>;

/**
 * Stays, after its attempts have ended, for those that read what it keeps, and then ends: at once where it keeps nothing,
 * and once the job has ended. Meanwhile it makes the copies that its scheduler has ordered. When nobody has asked for a
 * while, or it is told to stop, it first puts what it keeps into the data bucket, where readers find it under the same key;
 * answers that are under way go on meanwhile, and for the rest of its notice, or as long as it waits for questions where
 * nobody has told it to stop: those who read them have not to begin anew.
 * Never throws: what it cannot put there is lost, and made again.
 */
export async function stayForReaders(deps: StayDeps, job: StayingFor): Promise<void> {
  const { keeper, log } = deps;
  if (keeper === undefined) return;
  const { jobId } = job;
  const keys = keeper.keys();
  if (keys.length === 0) {
    await keeper.close();
    return;
  }
  log.info('output-kept', { jobId, keys });
  const stay = new Stay(deps, job, keeper);
  await stay.stay().catch((error: unknown) => {
    log.warn('kept-output-lost', { jobId, error: String(error) });
  });
  await keeper.close(stay.answersMs());
}

/** Of the notice of its end, what a worker leaves unused, so that it ends by itself. */
const spareShare = 0.1;

class Stay {
  private readonly deps: StayDeps;
  private readonly job: StayingFor;
  private readonly keeper: OutputKeeper;
  /** Outputs of which no copy was ordered yet. */
  private readonly notOrdered: Set<string>;
  /** When it was told to stop, if that was while it stayed. */
  private toldAt: EpochMs | undefined;
  private hasJobEnded = false;

  constructor(deps: StayDeps, job: StayingFor, keeper: OutputKeeper) {
    this.deps = deps;
    this.job = job;
    this.keeper = keeper;
    this.notOrdered = new Set(keeper.keys());
  }

  async stay(): Promise<void> {
    const { clock, stopSignal } = this.deps;
    const since = clock.now();
    stopSignal?.addEventListener('abort', () => (this.toldAt ??= clock.now()), { once: true });
    while (await this.isJobAlive()) {
      const idleMs = elapsedMs(this.keeper.askedAt ?? since, clock.now());
      if (stopSignal?.aborted === true || idleMs >= limits.keptIdleMs) {
        for (const key of this.keeper.keys()) await this.put(key, key);
        return;
      }
      for (const key of this.notOrdered) await this.obey(key);
      await clock.sleep(lookEvery, stopSignal);
    }
    this.hasJobEnded = true;
  }

  /** How long answers may go on that are under way as it closes: not for a job that has ended, and within its notice. */
  answersMs(): DurationMs {
    const { clock, stopSignal } = this.deps;
    if (this.hasJobEnded) return durationMs(0);
    if (stopSignal?.aborted !== true) return durationMs(limits.keptIdleMs);
    const reason: unknown = stopSignal.reason;
    if (!(reason instanceof PlaceTakenError)) return durationMs(0);
    // Told before it stayed, as its attempt was at work: that may have used as much.
    const usedMs = this.toldAt === undefined ? leaveMs(reason) : elapsedMs(this.toldAt, clock.now());
    return durationMs((1 - spareShare) * reason.notice - usedMs);
  }

  /** What the tasks of a stage share is removed at the end of their job. Where nobody can say, it goes on. */
  private async isJobAlive(): Promise<boolean> {
    const { objects, dataBucket } = this.deps;
    try {
      return (await objects.head({ bucket: dataBucket, key: this.job.stageKey })) !== undefined;
    } catch (cause) {
      return !isMissing(cause);
    }
  }

  /** Makes a copy of an output if one was ordered; one that fails is left. */
  private async obey(key: string): Promise<void> {
    const { objects, dataBucket, log } = this.deps;
    const { jobId, stageKey } = this.job;
    try {
      const order = { bucket: dataBucket, key: copyOrderKey(stageKey, attemptOfDataKey(key)) };
      const target = Buffer.from(await objects.readAll(order)).toString('utf8');
      this.notOrdered.delete(key);
      if (target.startsWith(jobDataPrefix(jobId))) await this.put(key, target);
    } catch (error) {
      if (!isMissing(error)) log.warn('kept-output-not-copied', { jobId, key, error: String(error) });
    }
  }

  /** Puts an output into the data bucket. */
  private async put(key: string, target: string): Promise<void> {
    const { objects, dataBucket, log } = this.deps;
    const address = await this.keeper.open();
    if (address === undefined) return;
    const writer = new ObjectWriter(objects, { bucket: dataBucket, key: target }, { leaveUpload: false });
    try {
      for await (const chunk of objects.read({ bucket: bucketOfWorker(address), key }))
        await writer.append(chunk, 0, chunk.length);
      await writer.finish();
    } catch (error) {
      await writer.discard().catch(() => undefined);
      throw error;
    }
    const { sizeBytes } = writer;
    // The job may have ended, and what it left been removed, before this was written.
    if (!(await this.isJobAlive())) await writer.discard();
    else log.info('kept-output-put', { jobId: this.job.jobId, key, target, sizeBytes });
  }
}

/** Who may not list is told of what is not there that it is denied. */
const isMissing = (cause: unknown): boolean =>
  cause instanceof NotFoundError || cause instanceof AccessDeniedError;
