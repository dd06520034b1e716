import { InvalidInputError } from '../../contracts/errors.ts';
import type { AttemptMeter } from '../attempt-meter.ts';
import { skippedRecords } from '../../contracts/own-counters.ts';
import type { TaskInput } from '../operator.ts';
import { decodeBlock, decodeLocated, decodeRecords, decodeRows } from './batches.ts';
import type { Channel, Message } from './channel.ts';
import {
  encodePull,
  FromHost,
  numberBody,
  numberOf,
  parsedBody,
  ProtocolError,
  type StartMessage,
  type StreamKind,
  type ThrownMessage,
  ToHost,
} from './protocol.ts';

type Answer = { readonly kind: 'batch'; readonly bytes: Buffer } | { readonly kind: 'end' };
type Waiting = PromiseWithResolvers<Answer>;

const peakMemoryBytes = (): number => process.resourceUsage().maxRSS * 1024;

/** The inputs of a task as user code reads them: batch by batch from the worker, which asks no more of memory. */
export class HostInputs {
  readonly inputs: readonly TaskInput[];
  readonly #channel: Channel;
  readonly #meter: AttemptMeter;
  readonly #mayRead: () => void;
  readonly #waiting = new Map<number, Waiting>();
  readonly #streamOfError = new WeakMap<object, number>();
  #streams = 0;

  /** `mayRead` throws where nothing may be asked for any more. */
  constructor(channel: Channel, described: StartMessage['inputs'], meter: AttemptMeter, mayRead: () => void) {
    this.#channel = channel;
    this.#meter = meter;
    this.#mayRead = mayRead;
    this.inputs = described.map(({ kind, format, stage, skipsBadValues = false }, input) => ({
      kind,
      format,
      ...(stage === undefined ? {} : { stage }),
      ...(skipsBadValues
        ? {
            onBadValue: () => {
              meter.count(skippedRecords, 1);
            },
          }
        : {}),
      blocks: () => this.#stream(input, 'blocks', (bytes) => decodeBlock(bytes)),
      records: () => this.#stream(input, 'records', (bytes) => decodeRecords(bytes)),
      rows: () => {
        if (kind === 'source') return this.#stream(input, 'rows', (bytes) => decodeRows(bytes));
        throw new InvalidInputError(`the operator reads rows, which stage ${stage ?? ''} does not give`);
      },
      ...(kind === 'source'
        ? { located: () => this.#stream(input, 'located', (bytes) => decodeLocated(bytes)) }
        : {}),
    }));
  }

  /**
   * Waits until what was asked for has come, or cannot be read, whether or not anybody else does. Throws where it was aborted. One
   * after the other: user code may have changed the methods of promises, without which whatever waits for several waits for ever.
   */
  async answered(signal: AbortSignal): Promise<void> {
    for (const { promise } of [...this.#waiting.values()]) {
      signal.throwIfAborted();
      try {
        await promise;
      } catch {
        // Whoever asked hears of it.
      }
    }
    signal.throwIfAborted();
  }

  /** The stream whose reading threw this very error. */
  streamOf(error: unknown): number | undefined {
    return typeof error === 'object' && error !== null ? this.#streamOfError.get(error) : undefined;
  }

  /** Takes a message that answers a pull. */
  take({ type, body }: Message): void {
    const stream = numberOf(body);
    const waiting = this.#waiting.get(stream);
    if (waiting === undefined) throw new ProtocolError('a batch that nobody waits for');
    this.#waiting.delete(stream);
    const rest = body.subarray(4);
    if (type === ToHost.batch) waiting.resolve({ kind: 'batch', bytes: rest });
    else if (type === ToHost.end) waiting.resolve({ kind: 'end' });
    else waiting.reject(this.#errorOf(stream, rest));
  }

  #errorOf(stream: number, body: Buffer): Error {
    const { name, message } = parsedBody(body) as ThrownMessage;
    const error = new Error(message);
    error.name = name;
    this.#streamOfError.set(error, stream);
    return error;
  }

  async *#stream<T>(input: number, kind: StreamKind, decode: (bytes: Buffer) => T): AsyncGenerator<T> {
    const stream = this.#streams++;
    let isOpen = true;
    try {
      for (;;) {
        const answer = await this.#meter.during('read', () => this.#pull(stream, input, kind));
        if (answer.kind === 'end') {
          isOpen = false;
          return;
        }
        yield decode(answer.bytes);
      }
    } finally {
      if (isOpen) this.#channel.send(FromHost.close, numberBody(stream));
    }
  }

  #pull(stream: number, input: number, kind: StreamKind): Promise<Answer> {
    this.#mayRead();
    const { recordsOut } = this.#meter;
    const pull = { stream, input, kind, recordsOut, peakMemoryBytes: peakMemoryBytes() };
    const waiting: Waiting = Promise.withResolvers();
    this.#waiting.set(stream, waiting);
    this.#channel.send(FromHost.pull, encodePull(pull));
    return waiting.promise;
  }
}
