import { types } from 'node:util';
import type { AttemptMeter } from '../attempt-meter.ts';
import { ExternalSort } from '../external-sort.ts';
import type { WrittenObject } from '../object-writer.ts';
import { type Combine, type TaskOutput, UserCodeError } from '../operator.ts';
import {
  type ByteSink,
  type ClosableOutput,
  FinalOutput,
  SortedOutput,
  UnsortedOutput,
} from '../task-output.ts';
import type { Channel } from './channel.ts';
import { FromHost, isCount, outputBytes, type StartMessage } from './protocol.ts';

/**
 * Sends the bytes of an output to the worker, in the order in which they are to lie in the object. A message never
 * ends within what was appended at once, unless that is text.
 */
class ChannelSink implements ByteSink {
  sizeBytes = 0;
  readonly #channel: Channel;
  readonly #isText: boolean;
  #buffer = Buffer.allocUnsafeSlow(outputBytes);
  #used = 0;
  #markBytes = 0;

  constructor(channel: Channel, isText: boolean) {
    this.#channel = channel;
    this.#isText = isText;
  }

  append(bytes: Uint8Array, start: number, end: number): Promise<void> | undefined {
    const size = end - start;
    this.sizeBytes += size;
    if (size > this.#buffer.length - this.#used) this.#flush();
    if (size > this.#buffer.length) this.#sendWhole(bytes, start, end);
    else {
      this.#buffer.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), this.#used);
      this.#used += size;
    }
    return this.#channel.drained();
  }

  /** Copies, since the bytes are only lent. */
  #sendWhole(bytes: Uint8Array, start: number, end: number): void {
    const step = this.#isText ? outputBytes : end - start;
    for (let at = start; at < end; at += step) {
      this.#channel.send(FromHost.bytes, Buffer.from(bytes.subarray(at, Math.min(end, at + step))));
    }
  }

  #flush(): void {
    if (this.#used === 0) return;
    this.#channel.send(FromHost.bytes, this.#buffer.subarray(0, this.#used));
    this.#buffer = Buffer.allocUnsafeSlow(outputBytes);
    this.#used = 0;
  }

  /** The checksum is the worker's, who has the bytes that count. */
  takeChecksum(): { readonly lengthBytes: number; readonly crc: number } {
    this.#flush();
    this.#channel.send(FromHost.cut);
    const lengthBytes = this.sizeBytes - this.#markBytes;
    this.#markBytes = this.sizeBytes;
    return { lengthBytes, crc: 0 };
  }

  async finish(): Promise<WrittenObject> {
    this.#flush();
    await this.#channel.drained();
    return { kind: 'none' };
  }
}

/**
 * The output of a task of user code. It sorts and combines here, beside the user's combiner, which is called for each
 * record: what goes to the worker is in order and combined already.
 */
export function hostOutput(
  channel: Channel,
  start: StartMessage,
  meter: AttemptMeter,
  { combine, signal }: { readonly combine: Combine | undefined; readonly signal: AbortSignal },
): ClosableOutput {
  const { output, partitions, sortMemoryBytes, sortDir } = start;
  const sink = new ChannelSink(channel, output === 'final');
  switch (output) {
    case 'final':
      return new FinalOutput(sink, meter);
    case 'unsorted':
      return new UnsortedOutput(sink, partitions, meter);
    case 'sorted': {
      const sort = new ExternalSort({
        partitions,
        memoryBytes: sortMemoryBytes,
        combine: combine === undefined ? undefined : checkedCombine(combine),
        scratchDir: sortDir,
        signal,
      });
      return new SortedOutput(sort, sink, partitions, meter);
    }
  }
}

/** The user's combiner, held to bytes as an output is: a text would leave zeros where two records meet as they are sorted. */
function checkedCombine(combine: Combine): Combine {
  return (left, right) => {
    const combined = combine(left, right);
    checkBytes('combiner: what it returns', combined);
    return combined;
  };
}

function checkBytes(what: string, bytes: unknown): void {
  if (types.isUint8Array(bytes)) return;
  const given = typeof bytes === 'object' && bytes !== null ? 'another object' : typeof bytes;
  throw new UserCodeError(`${what} must be bytes, a Buffer or Uint8Array, not ${given}`);
}

/**
 * An output as user code has it. Refuses what is no bytes, as `UserCodeError`: copied as if it were, text would leave zeros in
 * the output without a word. User code need not have been checked for its types.
 */
export class UserOutput implements TaskOutput {
  readonly #output: TaskOutput;
  readonly #mayPut: () => void;
  readonly #open = new Set<Promise<void>>();

  /** `mayPut` throws where nothing may be put out any more. */
  constructor(output: TaskOutput, mayPut: () => void) {
    this.#output = output;
    this.#mayPut = mayPut;
  }

  emit(key: Uint8Array, value: Uint8Array, partition?: number): Promise<void> | undefined {
    this.#mayPut();
    checkBytes('emit: the key', key);
    checkBytes('emit: the value', value);
    return this.#noted(this.#output.emit(key, value, partition));
  }

  write(bytes: Uint8Array, records?: number): Promise<void> | undefined {
    this.#mayPut();
    checkBytes('write: what is written', bytes);
    return this.#noted(this.#output.write(bytes, isCount(records) ? records : undefined));
  }

  /** Waits for what was begun, whether or not anybody else does: it would go on behind the end of the output. */
  async settled(): Promise<void> {
    for (const wait of this.#open) await wait;
  }

  #noted(wait: Promise<void> | undefined): Promise<void> | undefined {
    if (wait === undefined) return undefined;
    this.#open.add(wait);
    return this.#untilDone(wait);
  }

  async #untilDone(wait: Promise<void>): Promise<void> {
    try {
      await wait;
    } finally {
      this.#open.delete(wait);
    }
  }
}
