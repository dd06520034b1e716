import type { PartitionIndex } from '../../contracts/records.ts';
import type { AttemptMeter } from '../attempt-meter.ts';
import type { ByteSink, FinishedOutput } from '../task-output.ts';
import { forEachFrame } from './batches.ts';
import { ProtocolError, type StartMessage } from './protocol.ts';

const noBytes = Buffer.alloc(0);

/**
 * The output of user code as its process sends it: bytes for the object, and where partitions end. Checks that they are
 * records, and in order where readers merge them, so that a process which has lost its way fails here and not there.
 */
export class ReceivedOutput {
  readonly #sink: ByteSink;
  readonly #meter: AttemptMeter;
  readonly #kind: StartMessage['output'];
  readonly #partitions: number;
  readonly #lengths: number[] = [];
  readonly #crcs: number[] = [];
  #lastKey: Buffer = noBytes;

  constructor(
    sink: ByteSink,
    meter: AttemptMeter,
    { output, partitions }: Pick<StartMessage, 'output' | 'partitions'>,
  ) {
    this.#sink = sink;
    this.#meter = meter;
    this.#kind = output;
    this.#partitions = partitions;
  }

  /** Throws `ProtocolError` for what is no output. */
  bytes(body: Buffer): Promise<void> | undefined {
    if (this.#kind !== 'final') this.#check(body);
    const stored = this.#sink.append(body, 0, body.length);
    return stored === undefined ? undefined : this.#meter.during('write', () => stored);
  }

  cut(): void {
    if (this.#kind === 'final' || this.#lengths.length === this.#partitions) {
      throw new ProtocolError('one partition too many');
    }
    const { lengthBytes, crc } = this.#sink.takeChecksum();
    this.#lengths.push(lengthBytes);
    this.#crcs.push(crc);
    this.#lastKey = noBytes;
  }

  /** Writes what is left. Throws `ProtocolError` where partitions are missing. */
  async finish(): Promise<FinishedOutput> {
    const { written, bytesOut } = await this.#close();
    if (this.#kind === 'final') return { written, bytesOut };
    const partitions: PartitionIndex = { lengths: this.#lengths, crcs: this.#crcs };
    return { written, partitions, bytesOut };
  }

  async #close(): Promise<Pick<FinishedOutput, 'written' | 'bytesOut'>> {
    if (this.#kind !== 'final' && this.#lengths.length !== this.#partitions) {
      throw new ProtocolError(
        `${String(this.#lengths.length)} partitions where there should be ${String(this.#partitions)}`,
      );
    }
    return { written: await this.#sink.finish(), bytesOut: this.#sink.sizeBytes };
  }

  #check(body: Buffer): void {
    if (this.#lengths.length === this.#partitions)
      throw new ProtocolError('records after the last partition');
    const isSorted = this.#kind === 'sorted';
    let last = this.#lastKey;
    let [lastStart, lastEnd] = [0, last.length];
    forEachFrame(body, (keyStart, keyEnd) => {
      if (isSorted && last.compare(body, keyStart, keyEnd, lastStart, lastEnd) > 0) {
        throw new ProtocolError('records out of order');
      }
      last = body;
      [lastStart, lastEnd] = [keyStart, keyEnd];
    });
    this.#lastKey = last.subarray(lastStart, lastEnd);
  }
}
