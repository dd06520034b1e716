import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { limits } from '../../contracts/limits.ts';
import type { Failure } from '../../contracts/records.ts';
import type { ObjectStore } from '../../ports/object-store.ts';
import type { AttemptMeter } from '../attempt-meter.ts';
import { failureReading, failureWith, ReportedFailure } from '../failure-of.ts';
import type { TaskInput } from '../operator.ts';
import type { ByteSink, FinishedOutput } from '../task-output.ts';
import { describeInputs } from '../task-files.ts';
import { type CodeRef, fetchBundle } from './bundle.ts';
import type { Message } from './channel.ts';
import { doneOf, failedOf, helloOf, readyOf } from './checked-messages.ts';
import { HostProcess, type HostOptions, type HostProgram } from './host-process.ts';
import {
  decodePull,
  FromHost,
  jsonBody,
  numberBody,
  numberOf,
  shareOf,
  ProtocolError,
  type StartMessage,
  type FailedMessage,
  ToHost,
} from './protocol.ts';
import { ReceivedOutput } from './received-output.ts';
import { ServedInputs } from './served-inputs.ts';
import { TakenOutput } from './taken-output.ts';

/** What a worker needs to run user code. */
export interface UserCodeHost {
  readonly objects: ObjectStore;
  readonly program: HostProgram;
}

/** One task of user code. */
export interface UserTaskOptions extends HostOptions {
  readonly code: CodeRef;
  /** An empty directory for the bundle. */
  readonly codeDir: string;
  readonly start: Omit<StartMessage, 'codePath' | 'codeName' | 'inputs'>;
  readonly inputs: readonly TaskInput[];
  readonly sink: ByteSink;
  readonly meter: AttemptMeter;
  readonly signal: AbortSignal;
}

/**
 * A task of user code in a process of its own, which serves nothing else: it has no credentials, and whatever it
 * changes, starts or leaves running ends with it. `close` has to be called at the end, however that comes.
 */
export class UserTask {
  readonly #host: HostProcess;
  readonly #messages: AsyncGenerator<Message>;
  readonly #inputs: ServedInputs;
  readonly #output: ReceivedOutput;
  readonly #meter: AttemptMeter;
  readonly #signal: AbortSignal;
  /** What the task reads, for the message of its process's death. */
  readonly #reads: string;
  /** What serving an input threw that the process is to blame for. */
  #fault: unknown;
  /** Where what an earlier attempt has handed on goes before `run`. */
  readonly taken: TakenOutput;
  #resumes = false;
  #state: string | null | undefined;
  /** Records and bytes of the output that an earlier attempt has put out. */
  #before = { records: 0, bytes: 0 };

  private constructor(host: HostProcess, options: UserTaskOptions) {
    this.#host = host;
    this.#messages = host.channel.messages();
    this.#inputs = new ServedInputs(host.channel, options.inputs);
    this.#output = new ReceivedOutput(options.sink, options.meter, options.start);
    this.#meter = options.meter;
    this.#signal = options.signal;
    this.#reads = describeInputs(options.inputs);
    this.taken = new TakenOutput(this.#output, options.start, (partition, frames) =>
      this.#take(partition, frames),
    );
  }

  /** Whether its operator says that it may be cut, and gone on with by another attempt. */
  get resumes(): boolean {
    return this.#resumes;
  }

  /** What its operator has left for whoever goes on; after `run`. Throws where that is more than can be handed on. */
  state(): unknown {
    if (this.#state === null) throw new Error('its operator keeps more than can be handed on');
    return this.#state === undefined ? undefined : JSON.parse(this.#state);
  }

  /**
   * Starts the process, has it load the bundle and check the options. Throws `BadInputError` where there is no such
   * bundle or no operator in it, `ReportedFailure` for what the user's code throws, and leaves no process then.
   */
  static async open({ objects, program }: UserCodeHost, options: UserTaskOptions): Promise<UserTask> {
    options.signal.throwIfAborted();
    // The process takes about as long to start as the bundle to come.
    const task = new UserTask(new HostProcess(program, options), options);
    const { code, signal } = options;
    try {
      await task.#orKilled(async () => task.#load(await fetchBundle(objects, code, { signal }), options));
      return task;
    } catch (error) {
      await task.close();
      signal.throwIfAborted();
      throw error;
    }
  }

  /** Waits for the process, which is killed when the attempt is aborted: nothing else would end the waiting. */
  async #orKilled(work: () => Promise<void>): Promise<void> {
    const kill = (): void => void this.#host.end();
    this.#signal.addEventListener('abort', kill, { once: true });
    try {
      await work();
    } finally {
      this.#signal.removeEventListener('abort', kill);
    }
  }

  #take(partition: number, frames: Buffer): Promise<void> {
    this.#signal.throwIfAborted();
    return this.#orKilled(async () => {
      this.#host.channel.send(ToHost.take, numberBody(partition), frames);
      await this.#next(FromHost.taken, () => undefined);
    });
  }

  async #load(source: Uint8Array, { code, codeDir, start, inputs }: UserTaskOptions): Promise<void> {
    const codePath = join(codeDir, `code-${code.sha256}.mjs`);
    await writeFile(codePath, source);
    await this.#next(FromHost.hello, helloOf);
    const described = inputs.map(({ kind, format, stage, onBadValue }) => ({
      kind,
      format,
      ...(stage === undefined ? {} : { stage }),
      ...(onBadValue === undefined ? {} : { skipsBadValues: true }),
    }));
    const message: StartMessage = { ...start, codePath, codeName: code.s3, inputs: described };
    this.#host.channel.send(ToHost.start, jsonBody(message));
    this.#resumes = (await this.#next(FromHost.ready, readyOf)).resumes;
  }

  /** What `read` finds in the next message, which must be of this type. */
  async #next<T>(type: number, read: (body: Buffer) => T): Promise<T> {
    try {
      const next = await this.#messages.next();
      if (next.done === true) throw await this.#death();
      if (next.value.type === FromHost.failed) throw this.#failed(failedOf(next.value.body));
      if (next.value.type !== type) throw new ProtocolError('an answer to another question');
      return read(next.value.body);
    } catch (error) {
      throw reported(error);
    }
  }

  /** Runs the task to its end. Throws what reading and writing throw, and `ReportedFailure` for the user's code. */
  async run(): Promise<void> {
    const { channel } = this.#host;
    const cancel = (): void => {
      channel.send(ToHost.cancel);
    };
    this.#signal.addEventListener('abort', cancel, { once: true });
    this.#before = { records: this.#meter.recordsOut, bytes: this.#output.sizeBytes };
    channel.send(ToHost.run);
    try {
      while (!(await this.#step()));
    } catch (error) {
      throw reported(this.#fault ?? error);
    } finally {
      this.#signal.removeEventListener('abort', cancel);
    }
  }

  /** Takes one message; whether it was the last. */
  async #step(): Promise<boolean> {
    const next = await this.#messages.next();
    if (this.#fault !== undefined) throw reported(this.#fault);
    if (next.done === true) throw await this.#death();
    const { type, body } = next.value;
    switch (type) {
      case FromHost.pull: {
        const pull = decodePull(body);
        this.#note(pull);
        void this.#inputs.serve(pull).catch(this.#stop);
        return false;
      }
      case FromHost.close:
        void this.#inputs.close(numberOf(body));
        return false;
      case FromHost.bytes:
        if (!this.#signal.aborted) await this.#output.bytes(body);
        return false;
      case FromHost.cut:
        if (!this.#signal.aborted) this.#output.cut();
        return false;
      case FromHost.progress:
        this.#meter.saidDone = Math.max(this.#meter.saidDone ?? 0, shareOf(body));
        return false;
      case FromHost.done:
        this.#inputs.throwIfUnread();
        this.#finish(body);
        return true;
      case FromHost.failed:
        throw await this.#failedAt(failedOf(body));
      default:
        throw new ProtocolError('a message of no known type');
    }
  }

  readonly #stop = (error: unknown): void => {
    this.#fault ??= error;
    void this.#host.end();
  };

  #note({
    recordsOut,
    peakMemoryBytes,
  }: {
    readonly recordsOut: number;
    readonly peakMemoryBytes: number;
  }): void {
    this.#meter.recordsOut = this.#before.records + recordsOut;
    this.#meter.hostPeakMemoryBytes = peakMemoryBytes;
  }

  #finish(body: Buffer): void {
    const done = doneOf(body);
    this.#note(done);
    // What it said on the way; it has read what it has read.
    this.#meter.saidDone = undefined;
    this.#state = done.state;
    // A line that an earlier attempt has begun and nobody has gone on with.
    const { isLineOpen, sizeBytes } = this.#output;
    if (isLineOpen && sizeBytes === this.#before.bytes) this.#meter.recordsOut++;
    for (const [name, total] of done.counters) this.#meter.count(name, total);
  }

  /** What the process threw; where it was thrown here first, that very error. */
  #failed({ cause, message, stream }: FailedMessage): unknown {
    return this.#inputs.errorOf(stream) ?? new ReportedFailure({ cause, message });
  }

  /** The same, with the place of the record for which it was thrown. */
  async #failedAt(failed: FailedMessage): Promise<unknown> {
    const thrown = this.#failed(failed);
    const { place } = failed;
    if (place === undefined || !(thrown instanceof ReportedFailure)) return thrown;
    const { cause, message } = thrown.failure;
    return failure(cause, withPlace(message, await this.#inputs.wordsOf(place)));
  }

  async #death(): Promise<Error> {
    const { code, signal, ranOutOfMemory, lastWords } = await this.#host.ended();
    const said = lastWords === '' ? '' : `: ${lastWords}`;
    const dead = (cause: Failure['cause'], message: string): Error => {
      const { cause: known, message: told } = failureReading(failureWith(cause, message), this.#reads);
      return failure(known, told);
    };
    if (ranOutOfMemory) return dead('out-of-memory', `the process of the user code ran out of memory${said}`);
    if (signal === 'SIGKILL' && !this.#host.isEnded) {
      return dead(
        'out-of-memory',
        'the process of the user code was killed, as machines do that lack memory',
      );
    }
    const how = code === null ? `was ended by ${String(signal)}` : `ended with code ${String(code)}`;
    return dead('user-code', `the process of the user code ${how} before its task was done${said}`);
  }

  /** The rest of the output; after `run`. */
  async finish(): Promise<FinishedOutput> {
    try {
      return await this.#output.finish();
    } catch (error) {
      throw reported(error);
    }
  }

  /** Ends the process, with whatever it has started. May be called again. */
  async close(): Promise<void> {
    await this.#host.end();
    await this.#inputs.closeAll();
  }
}

const failure = (cause: Failure['cause'], message: string): ReportedFailure =>
  new ReportedFailure(failureWith(cause, message));

/** Put before what was thrown where that is long: the place tells more than the end of a message. */
function withPlace(message: string, place: string): string {
  const mostChars = limits.failureChars - place.length - '…; at '.length;
  return `${message.length > mostChars ? `${message.slice(0, mostChars)}…` : message}; at ${place}`;
}

/** A broken protocol is the user code's doing: nothing else speaks on its side. */
function reported(error: unknown): unknown {
  if (!(error instanceof ProtocolError)) return error;
  return failure(
    'user-code',
    `the process of the user code sent ${error.message}: it must leave alone file descriptor 3 and the built-in objects`,
  );
}
