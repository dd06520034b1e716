import { frameBytes, frameOf, writeFrame } from '../framing.ts';
import type { ClosableOutput, FinishedOutput, Trailer } from '../task-output.ts';
import { outputBytes, type StartMessage } from './protocol.ts';
import type { ReceivedOutput } from './received-output.ts';

/**
 * The output of a task of user code while what an earlier attempt has put out goes into it, before the user's operator runs.
 * What readers merge is sorted and combined in the process of the user code, and so goes there in frames of one partition at a
 * time; all else lies in the object as it comes. Afterwards `flush` has to be called.
 */
export class TakenOutput implements ClosableOutput {
  readonly #received: ReceivedOutput;
  readonly #isSorted: boolean;
  readonly #put: (partition: number, frames: Buffer) => Promise<void>;
  #frames: Buffer = Buffer.alloc(0);
  #used = 0;
  #partition = 0;

  constructor(
    received: ReceivedOutput,
    { output }: Pick<StartMessage, 'output'>,
    put: (partition: number, frames: Buffer) => Promise<void>,
  ) {
    this.#received = received;
    this.#isSorted = output === 'sorted';
    this.#put = put;
  }

  emit(key: Uint8Array, value: Uint8Array, partition = 0): Promise<void> | undefined {
    if (!this.#isSorted) return this.#received.bytes(frameOf(key, value));
    const sizeBytes = frameBytes(key.length, value.length);
    const isOther = this.#used > 0 && partition !== this.#partition;
    if (isOther || this.#used + sizeBytes > this.#frames.length)
      return this.#emitBehind(key, value, partition);
    this.#partition = partition;
    this.#used = writeFrame(this.#frames, this.#used, key, value);
    return undefined;
  }

  async #emitBehind(key: Uint8Array, value: Uint8Array, partition: number): Promise<void> {
    await this.flush();
    const sizeBytes = frameBytes(key.length, value.length);
    this.#frames = Buffer.allocUnsafeSlow(Math.max(outputBytes, sizeBytes));
    this.#partition = partition;
    this.#used = writeFrame(this.#frames, 0, key, value);
  }

  write(bytes: Uint8Array): Promise<void> | undefined {
    return this.#received.bytes(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length));
  }

  /** Has all records reach the process. */
  async flush(): Promise<void> {
    if (this.#used === 0) return;
    const frames = this.#frames.subarray(0, this.#used);
    this.#frames = Buffer.alloc(0);
    this.#used = 0;
    await this.#put(this.#partition, frames);
  }

  finish(trailer?: Trailer): Promise<FinishedOutput> {
    return this.#received.finish(trailer);
  }
}
