import type { TaskInput } from '../operator.ts';
import { encodeBlock, encodeLocated, encodeRecords, encodeRows } from './batches.ts';
import type { Channel } from './channel.ts';
import type { RecordPlace } from './record-place.ts';
import {
  jsonBody,
  mostStreams,
  numberBody,
  ProtocolError,
  type Pull,
  type StreamKind,
  ToHost,
} from './protocol.ts';

interface Stream {
  readonly input: number;
  readonly batches: AsyncIterator<readonly Uint8Array[]>;
  isPulled: boolean;
}

/** Reads the inputs of a task for the process that runs it: a batch for each that it pulls, one at a time a stream. */
export class ServedInputs {
  readonly #channel: Channel;
  readonly #inputs: readonly TaskInput[];
  readonly #streams = new Map<number, Stream>();
  readonly #errors = new Map<number, unknown>();
  /** By input: what reading it threw, where nobody has read it to its end since. */
  readonly #unread = new Map<number, unknown>();

  constructor(channel: Channel, inputs: readonly TaskInput[]) {
    this.#channel = channel;
    this.#inputs = inputs;
  }

  /** What reading a stream threw. */
  errorOf(stream: number | undefined): unknown {
    return stream === undefined ? undefined : this.#errors.get(stream);
  }

  /**
   * Throws what reading an input threw, for whoever says that all is done: user code may have swallowed that, and taken the
   * begin for all. Not where the stream was given up before, nor where the input was read again since, to its end.
   */
  throwIfUnread(): void {
    for (const error of this.#unread.values()) throw error;
  }

  /** Answers a pull; never rejects for what reading throws. Throws `ProtocolError` for a pull that makes no sense. */
  async serve({ stream: number, input, kind }: Pull): Promise<void> {
    const stream = this.#streams.get(number) ?? this.#open(number, input, kind);
    if (stream.isPulled) throw new ProtocolError('a batch was asked for twice');
    stream.isPulled = true;
    try {
      const next = await stream.batches.next();
      stream.isPulled = false;
      if (next.done !== true) {
        this.#channel.send(ToHost.batch, numberBody(number), ...next.value);
        return;
      }
      this.#streams.delete(number);
      this.#unread.delete(stream.input);
      this.#channel.send(ToHost.end, numberBody(number));
    } catch (error) {
      if (this.#streams.delete(number)) this.#unread.set(stream.input, error);
      if (this.#errors.size < mostStreams) this.#errors.set(number, error);
      this.#channel.send(ToHost.inputFailed, numberBody(number), jsonBody(thrownOf(error)));
    }
  }

  /** Lets a stream go that is not read to its end. */
  async close(number: number): Promise<void> {
    const stream = this.#streams.get(number);
    this.#streams.delete(number);
    await stream?.batches.return?.().catch(() => undefined);
  }

  /** A record's place in words: `file:line` where that can be found out. */
  async wordsOf(place: RecordPlace): Promise<string> {
    if (place.kind === 'words') return place.words;
    const { input, file, offset } = place;
    // The file may have gone meanwhile; what failed is no worse known for it.
    const found = await this.#inputs[input]?.placeAt?.(file, offset).catch(() => undefined);
    return found ?? `${file}, byte ${String(offset)}`;
  }

  async closeAll(): Promise<void> {
    for (const number of [...this.#streams.keys()]) await this.close(number);
  }

  #open(number: number, input: number, kind: StreamKind): Stream {
    const source = this.#inputs[input];
    if (source === undefined || this.#streams.size >= mostStreams) {
      throw new ProtocolError('an input that is not there, or too many at once');
    }
    const stream = { input, batches: encoded(source, kind), isPulled: false };
    this.#streams.set(number, stream);
    return stream;
  }
}

async function* encoded(input: TaskInput, kind: StreamKind): AsyncGenerator<readonly Uint8Array[]> {
  switch (kind) {
    case 'blocks':
      for await (const block of input.blocks()) yield encodeBlock(block);
      return;
    case 'records':
      for await (const records of input.records()) yield encodeRecords(records);
      return;
    case 'rows':
      for await (const rows of input.rows()) yield encodeRows(rows);
      return;
    case 'located':
      if (input.located === undefined) throw new ProtocolError('places of an input that is no file');
      for await (const located of input.located()) yield encodeLocated(located);
  }
}

const longestMessage = 10_000;

const thrownOf = (error: unknown): { name: string; message: string } =>
  error instanceof Error
    ? { name: error.name, message: error.message.slice(0, longestMessage) }
    : { name: 'Error', message: String(error).slice(0, longestMessage) };
