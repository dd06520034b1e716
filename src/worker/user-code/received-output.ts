import type { PartitionIndex } from '../../contracts/records.ts';
import type { AttemptMeter } from '../attempt-meter.ts';
import { appendTrailer, type ByteSink, type FinishedOutput, type Trailer } from '../task-output.ts';
import { forEachFrame } from './batches.ts';
import { ProtocolError, type StartMessage } from './protocol.ts';

const noBytes = Buffer.alloc(0);
const newline = 10;

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
  /** Of text: whether the last byte so far is not the end of a line. */
  #isLineOpen = false;

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
    else if (body.length > 0) this.#isLineOpen = body[body.length - 1] !== newline;
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

  /** Bytes so far. */
  get sizeBytes(): number {
    return this.#sink.sizeBytes;
  }

  get isLineOpen(): boolean {
    return this.#isLineOpen;
  }

  /** Writes what is left, and `trailer` behind it. Throws `ProtocolError` where partitions are missing. */
  async finish(trailer?: Trailer): Promise<FinishedOutput> {
    const isText = this.#kind === 'final';
    if (!isText && this.#lengths.length !== this.#partitions) {
      throw new ProtocolError(
        `${String(this.#lengths.length)} partitions where there should be ${String(this.#partitions)}`,
      );
    }
    const bytesOut = this.#sink.sizeBytes;
    const partitions: PartitionIndex = { lengths: this.#lengths, crcs: this.#crcs };
    if (trailer !== undefined) {
      // Whoever goes on counts a line that is not at its end.
      if (this.#isLineOpen) this.#meter.recordsOut--;
      await appendTrailer(this.#sink, isText ? this.#wholeIndex() : partitions, trailer);
    }
    const written = await this.#sink.finish();
    return isText ? { written, bytesOut } : { written, partitions, bytesOut };
  }

  #wholeIndex(): PartitionIndex {
    const { lengthBytes, crc } = this.#sink.takeChecksum();
    return { lengths: [lengthBytes], crcs: [crc] };
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
