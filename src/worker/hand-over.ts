import { crc32 } from 'node:zlib';
import type { ObjectRef } from '../contracts/keys.ts';
import { limits } from '../contracts/limits.ts';
import type { SavedNote, SavedWork } from '../contracts/saved-work.ts';
import { type DurationMs, durationMs, elapsedMs, type EpochMs } from '../contracts/units.ts';
import type { Clock } from '../ports/clock.ts';
import type { AttemptMeter } from './attempt-meter.ts';
import { type AttemptPlan, placeInAll } from './attempt-plan.ts';
import type { ObjectWriter } from './object-writer.ts';
import type { HandOver, PreparedTask } from './run-task.ts';
import type { OutOfTimeError, PlaceTakenError } from './time-limit.ts';

/** An attempt that would have read all within this share of its notice goes on, and has the rest of it to write. */
const ownEndShare = 1 / 3;

/** What an attempt works with, as far as handing on needs it. */
export interface HandingOver {
  readonly clock: Clock;
  readonly meter: AttemptMeter;
  /** Where what is handed on is put. */
  readonly ref: ObjectRef;
}

/** Has an attempt whose place or time is nearly up end its input early, so that what it has done can be handed on. */
export class Leaving {
  readonly deps: HandingOver;
  readonly #over = new AbortController();
  #task: { readonly handOver: HandOver; readonly writer: ObjectWriter; readonly since: EpochMs } | undefined;
  #reason: OutOfTimeError | PlaceTakenError | undefined;
  #hasBegun = false;
  #hasBegunLate = false;

  constructor(deps: HandingOver) {
    this.deps = deps;
  }

  /** Why it leaves; undefined as long as it does not. */
  get reason(): OutOfTimeError | PlaceTakenError | undefined {
    return this.#reason;
  }

  /**
   * Whether another attempt may have the time, or hand on its work, if this one is ended now for want of time: nothing of its
   * task has run until its time was nearly up, or it was about to hand on what it had done.
   */
  get mayPass(): boolean {
    return !this.#hasBegun || this.#hasBegunLate || this.#reason !== undefined;
  }

  /** From now on the operator runs. */
  begin({ handOver }: PreparedTask, writer: ObjectWriter): void {
    this.#hasBegun = true;
    this.deps.meter.handsOn = () => handOver !== undefined && writer.canMoveTo(this.deps.ref);
    if (handOver !== undefined) this.#task = { handOver, writer, since: this.deps.clock.now() };
  }

  /** The attempt is done, or begins anew: no notice has any effect. */
  end(): void {
    this.#task = undefined;
    this.#over.abort();
  }

  /**
   * The attempt has so long left. False where it cannot hand on anything: its operator does not allow it, has not begun, or
   * its output has been sent to where nobody can read it. Else its input ends soon, or by itself.
   */
  notice(reason: OutOfTimeError | PlaceTakenError, left: DurationMs): boolean {
    const task = this.#task;
    this.#hasBegunLate ||= !this.#hasBegun;
    if (task === undefined || !task.writer.canMoveTo(this.deps.ref)) return false;
    if (this.#reason !== undefined) return true;
    this.#reason = reason;
    const ownEndMs = left * ownEndShare;
    if (this.#readsAllWithin(task.since, ownEndMs)) void this.#cutLater(task.handOver, durationMs(ownEndMs));
    else task.handOver.cut.request();
    return true;
  }

  /** Whether it will have read all of its input in that time, at the rate at which it has read so far. */
  #readsAllWithin(since: EpochMs, ms: number): boolean {
    const { meter, clock } = this.deps;
    const leftBytes = meter.bytesTotal - meter.bytesRead;
    return leftBytes * elapsedMs(since, clock.now()) <= ms * meter.bytesRead;
  }

  async #cutLater({ cut }: HandOver, wait: DurationMs): Promise<void> {
    await this.deps.clock.sleep(wait, this.#over.signal);
    if (!this.#over.signal.aborted) cut.request();
  }
}

/**
 * Writes what a task that was cut has done, for another attempt to take up. Undefined, with nothing written, where it has
 * done nothing, or its output has meanwhile gone elsewhere. Throws what the store throws.
 */
export async function saveWork(
  { meter, ref }: HandingOver,
  { cut, output, state }: HandOver,
  { plan, writer }: { readonly plan: AttemptPlan; readonly writer: ObjectWriter },
): Promise<SavedWork | undefined> {
  const rest = cut.rest();
  const taken = meter.takenUp?.bytes ?? 0;
  if (rest === undefined || cut.hasLeftAny || cut.bytesBefore === 0 || !writer.canMoveTo(ref))
    return undefined;
  writer.moveTo(ref);
  const bytesDone = taken + cut.bytesBefore;
  const left = state();
  let noteBytes = 0;
  let noteCrc = 0;
  const { bytesOut } = await output.finish(({ lengths, crcs }) => {
    const { recordsIn, recordsOut } = meter.totals();
    const note: SavedNote = {
      version: 1,
      inputs: [...rest].map(([input, place]) => ({ input, ...placeInAll(plan, input, place) })),
      partitions: { lengths: [...lengths], crcs: [...crcs] },
      bytesDone,
      recordsIn: Math.max(0, recordsIn - meter.recordsOfStages),
      recordsOut,
      counters: Object.entries(meter.counters()),
      ...(left === undefined ? {} : { state: left as NonNullable<SavedNote['state']> }),
    };
    const bytes = Buffer.from(JSON.stringify(note));
    noteBytes = bytes.length;
    noteCrc = crc32(bytes);
    return bytes;
  });
  if (noteBytes > limits.savedNoteBytes) return undefined;
  return { dataBytes: bytesOut, noteBytes, noteCrc, bytesDone, bytesTotal: taken + meter.bytesTotal };
}
