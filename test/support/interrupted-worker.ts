import { expect } from 'vitest';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { attemptIdOf } from '../../src/contracts/ids.ts';
import { attemptDataKey, type ObjectRef } from '../../src/contracts/keys.ts';
import type { AttemptRecord } from '../../src/contracts/records.ts';
import type { SavedOf } from '../../src/contracts/saved-work.ts';
import { durationMs } from '../../src/contracts/units.ts';
import type { Operator } from '../../src/worker/operator.ts';
import { type AttemptDeps, runAttempt } from '../../src/worker/run-attempt.ts';
import { PlaceTakenError } from '../../src/worker/time-limit.ts';
import { namesIn } from './worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from './worker-stage.ts';

/** Spot's notice, and for so long each attempt has run when it comes. */
export const noticeMs = durationMs(120_000);
export const ranMs = 300_000;

/** The bucket of a task's input. */
export const inputBucket = 'in';

/** Tells when so many bytes of the input have been read. */
class WatchedStore extends MemoryObjectStore {
  #left = Infinity;
  #then: (() => Promise<void>) | undefined;

  /** Calls `then` once, before whoever has read `bytes` bytes from now on gets more. */
  afterReading(bytes: number, then: () => Promise<void>): void {
    this.#left = bytes;
    this.#then = then;
  }

  override async *read(
    ref: ObjectRef,
    options?: Parameters<MemoryObjectStore['read']>[1],
  ): AsyncGenerator<Uint8Array> {
    for await (const chunk of super.read(ref, options)) {
      if (ref.bucket === inputBucket) {
        const then = this.#left <= 0 ? this.#then : undefined;
        this.#left -= chunk.length;
        if (then !== undefined) {
          this.#then = undefined;
          await then();
        }
      }
      yield chunk;
    }
  }
}

/** A worker whose attempts are interrupted. */
export class InterruptedWorker extends WorkerOfTest {
  override readonly objects = new WatchedStore();
  /** What the log gives as reasons. */
  readonly whys: string[] = [];

  log(): AttemptDeps['log'] {
    const log = (event: string, fields?: object): void => {
      if (fields !== undefined && 'why' in fields) this.whys.push(`${event}: ${String(fields.why)}`);
    };
    return { info: log, warn: log };
  }

  /** Runs attempt number `number` of the task; Spot's notice comes once it has read so many bytes of input. */
  async interrupt(
    { operator, stage }: { readonly operator?: Operator; readonly stage: Omit<StageOfTest, 'run'> },
    number: number,
    { afterBytes, saved }: { readonly afterBytes?: number; readonly saved?: SavedOf | undefined } = {},
  ): Promise<AttemptRecord> {
    const stop = new AbortController();
    this.objects.afterReading(afterBytes ?? Infinity, async () => {
      await this.clock.advance(ranMs);
      stop.abort(new PlaceTakenError('Spot needs its place', noticeMs));
    });
    const whole = { ...stage, run: () => Promise.reject(new Error('it is run elsewhere')) };
    const payload = await this.prepare(whole, number);
    const deps = this.deps(whole, { stopSignal: stop.signal, log: this.log(), sortMemoryBytes: 65_536 });
    await runAttempt(
      operator === undefined ? deps : { ...deps, operators: { ...deps.operators, grep: operator } },
      { ...payload, ...(saved === undefined ? {} : { saved }) },
    );
    return this.ended(number);
  }

  /** The record of an attempt that has ended. */
  async ended(number: number): Promise<AttemptRecord> {
    const record = await this.attempt(attemptIdOf('work', 0, number));
    if (record === undefined) throw new Error('no record');
    expect(await namesIn(this.scratchRoot)).toEqual([]);
    return record;
  }

  /** The bytes of the task's output, its index, and what else its result tells of the whole task. */
  async outcome(): Promise<Outcome> {
    const [result] = await this.results();
    if (result === undefined) throw new Error('no result');
    const { final, partitions, bytesIn, bytesOut, recordsIn, counters } = result;
    const body =
      final === undefined
        ? await this.objects.readAll({
            bucket: this.dataBucket,
            key: attemptDataKey(this.jobId, result.attemptId),
          })
        : final.kind === 'inline'
          ? final.body
          : await this.#completed(final);
    return { body: Buffer.from(body).toString('latin1'), partitions, bytesIn, bytesOut, recordsIn, counters };
  }

  async #completed(final: object): Promise<Uint8Array> {
    if (!('uploadId' in final) || !('parts' in final)) return new Uint8Array();
    const ref = { bucket: 'output-bucket', key: 'out/part-00000', uploadId: String(final.uploadId) };
    await this.objects.completeUpload(ref, final.parts as never);
    return this.objects.readAll(ref);
  }
}

/** What is the same however often a task was interrupted. */
export interface Outcome {
  readonly body: string;
  readonly partitions: unknown;
  readonly bytesIn: number;
  readonly bytesOut: number;
  readonly recordsIn: number;
  readonly counters: unknown;
}

/** As a launch names what an attempt has handed on. */
export const savedBy = ({ attemptId, saved }: AttemptRecord): SavedOf | undefined =>
  saved && {
    attempt: Number(attemptId.split('/')[2]),
    dataBytes: saved.dataBytes,
    noteBytes: saved.noteBytes,
    noteCrc: saved.noteCrc,
  };
