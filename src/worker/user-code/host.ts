import { spawnSync } from 'node:child_process';
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { limits } from '../../contracts/limits.ts';
import { epochMs } from '../../contracts/units.ts';
import type { Clock } from '../../ports/clock.ts';
import { AttemptMeter } from '../attempt-meter.ts';
import { ScratchError } from '../run-file.ts';
import type { Failure } from '../../contracts/records.ts';
import { failureOf, failureWith } from '../failure-of.ts';
import { BadInputError, CancelledError, saysItResumes, UserCodeError } from '../operator.ts';
import type { Operator, TaskContext } from '../operator.ts';
import { checkShare, ShareTeller } from '../progress-share.ts';
import { type ClosableOutput, guarded } from '../task-output.ts';
import { Channel } from './channel.ts';
import { framesOf, tellExit, tellStack } from './user-frames.ts';
import { decodeRecords } from './batches.ts';
import { HostInputs } from './host-inputs.ts';
import { hostOutput, UserOutput } from './host-output.ts';
import {
  channelNumber,
  doubleBody,
  FromHost,
  jsonBody,
  mostBytesToHost,
  numberOf,
  parsedBody,
  protocolVersion,
  type StartMessage,
  ToHost,
} from './protocol.ts';
import { placeOf } from './record-place.ts';

/** Bound before there is user code, which may change it. */
const sinceStart = performance.now.bind(performance);

/** Counts from the process's start, since only lengths of time are asked for: the machine's clock may be set back. */
const hostClock: Clock = {
  now: () => epochMs(sinceStart()),
  sleep: (length, signal) =>
    delay(length, undefined, signal === undefined ? {} : { signal }).catch(() => undefined),
};

const die = process.abort.bind(process);

/** The task of this process, once it is there. */
interface Loaded {
  readonly start: StartMessage;
  readonly operator: Operator;
  readonly output: ClosableOutput;
  readonly inputs: HostInputs;
  readonly meter: AttemptMeter;
}

/**
 * The process that runs the user code of one attempt, seen from within. It has no credentials and no other connection
 * than to its worker, serves one task, and is killed then, with all that user code has left behind or changed.
 */
class Host {
  readonly #channel: Channel;
  readonly #abort = new AbortController();
  #loaded: Loaded | undefined;
  /** Whether the operator has said that its task is done. */
  #hasRun = false;
  #hasFailed = false;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  /** Serves until the worker is gone. */
  async serve(): Promise<void> {
    this.#channel.send(FromHost.hello, jsonBody({ version: protocolVersion }));
    for await (const message of this.#channel.messages()) {
      switch (message.type) {
        case ToHost.start:
          void this.#guard(() => this.#load(parsedBody(message.body) as StartMessage));
          break;
        case ToHost.take:
          void this.#guard(() => this.#take(message.body));
          break;
        case ToHost.run:
          void this.#guard(() => this.#run());
          break;
        case ToHost.cancel:
          this.#abort.abort(new CancelledError('the attempt was told to cancel'));
          break;
        default:
          this.#loaded?.inputs.take(message);
      }
    }
  }

  /** Tells what `work` throws. Without `catch`, which is looked up where user code can change it. */
  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.fail(error);
    }
  }

  async #load(start: StartMessage): Promise<void> {
    tellExits();
    const operator = await importOperator(start);
    operator.check(start.options);
    const combine = start.output === 'sorted' ? operator.combiner?.(start.options) : undefined;
    const meter = new AttemptMeter(hostClock, this.#abort.signal, () => 0);
    this.#loaded = {
      start,
      operator,
      meter,
      inputs: new HostInputs(this.#channel, start.inputs, meter, this.#mayRead),
      output: hostOutput(this.#channel, start, meter, { combine, signal: this.#abort.signal }),
    };
    const readsStages = start.inputs.some(({ kind }) => kind === 'stage');
    const resumes: unknown = saysItResumes(operator, start.options, readsStages);
    if (typeof resumes !== 'boolean') {
      const given = resumes instanceof Promise ? 'a promise' : typeof resumes;
      throw new UserCodeError(`resumes must answer true or false, not ${given}`);
    }
    this.#channel.send(FromHost.ready, jsonBody({ resumes }));
  }

  /** Puts records of an earlier attempt's output into this one's. */
  async #take(body: Buffer): Promise<void> {
    const { output, meter } = this.#mustBeLoaded();
    const partition = numberOf(body);
    for (const { key, value } of decodeRecords(body.subarray(4))) {
      const wait = output.emit(key, value, partition);
      if (wait !== undefined) await wait;
    }
    meter.recordsOut = 0; // They are counted already.
    this.#channel.send(FromHost.taken);
  }

  #mustBeLoaded(): Loaded {
    if (this.#loaded === undefined) throw new Error('asked to work before it was ready');
    return this.#loaded;
  }

  async #run(): Promise<void> {
    const { start, operator, output, inputs, meter } = this.#mustBeLoaded();
    const { signal } = this.#abort;
    const given = new UserOutput(output, this.#mayPut);
    const shares = new ShareTeller();
    let state: string | null | undefined;
    const { stage, task, attempt, partitions, options } = start;
    const context: TaskContext = {
      stage,
      task,
      attempt,
      partitions,
      options,
      inputs: inputs.inputs,
      output: guarded(given, signal),
      scratchDir: start.operatorDir,
      environment: { ...process.env } as Record<string, string>,
      signal,
      ...(start.kept === undefined ? {} : { kept: start.kept }),
      keep: (left) => {
        state = textOfState(left);
      },
      count: (name, by) => {
        meter.count(name, by);
      },
      progress: (fraction) => {
        checkShare(fraction);
        if (!shares.isNews(fraction)) return;
        this.#channel.send(FromHost.progress, doubleBody(fraction));
      },
    };
    await operator.run(context);
    signal.throwIfAborted();
    this.#hasRun = true;
    await given.settled();
    // A stream over an input reads ahead, so that what was asked for last may be wanted by nobody: only what follows tells.
    await inputs.answered(signal);
    await output.finish();
    // Whatever is ready to go on may still show itself.
    await turn();
    if (this.#hasFailed) return;
    const done = {
      recordsOut: meter.recordsOut,
      peakMemoryBytes: process.resourceUsage().maxRSS * 1024,
      counters: Object.entries(meter.counters()),
      ...(state === undefined ? {} : { state }),
    };
    this.#channel.send(FromHost.done, jsonBody(done));
  }

  /** Fails the task that puts something out once it is done, whether or not its operator looks at what is thrown. */
  readonly #mayPut = (): void => {
    this.#mustRun('run ended before all of its output was written: is an await missing?');
  };

  /** Fails the task that goes on reading once it is done: its process would end with it, and nobody would see that work. */
  readonly #mayRead = (): void => {
    this.#mustRun(
      'run ended while it still read one of its inputs: is an await missing? (a stream over an input that is not wanted to its end is given up by destroy(), an iterator by return())',
    );
  };

  #mustRun(message: string): void {
    if (!this.#hasRun) return;
    const error = new UserCodeError(message);
    this.fail(error);
    throw error;
  }

  /** Tells the worker what was thrown, whoever threw it and wherever; once. */
  readonly fail = (error: unknown): void => {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    try {
      const stream = this.#loaded?.inputs.streamOf(error);
      tellStack(error);
      const place = placeOf(error);
      const failed = {
        ...failureIn(error),
        ...(stream === undefined ? {} : { stream }),
        ...(place === undefined ? {} : { place }),
      };
      this.#channel.send(FromHost.failed, jsonBody(failed));
    } catch {
      // User code has changed so much that nothing can be told any more: its end tells the worker enough.
      die();
    }
  };
}

/** As JSON; null where it has no such form, or is too long to be handed on. */
function textOfState(state: unknown): string | null {
  const text = JSON.stringify(state) as string | undefined;
  return text === undefined || Buffer.byteLength(text) > limits.savedNoteBytes ? null : text;
}

/** What was thrown, and where in the user's files: the deepest frames, as far as they fit. */
function failureIn(error: unknown): Failure {
  // By its class, which user code has not: its own errors may have any name.
  const { cause, message } = failureOf(error, error instanceof ScratchError ? 'operator' : 'user-code');
  const frames = framesOf(error);
  return frames.length === 0
    ? { cause, message }
    : failureWith(cause, `${message} (at ${frames.join(', ')})`);
}

async function importOperator({ codePath, codeName }: StartMessage): Promise<Operator> {
  // Costs nothing until somebody looks at a stack.
  process.setSourceMapsEnabled(true);
  const loaded: unknown = await import(pathToFileURL(codePath).href).catch((error: unknown) => {
    throw error instanceof SyntaxError ? located(error, codePath, codeName) : error;
  });
  const operator =
    typeof loaded === 'object' && loaded !== null && 'default' in loaded ? loaded.default : undefined;
  if (isOperator(operator)) return operator;
  throw new BadInputError(
    `code ${codeName}: its default export must be an operator: { check(options), run(context) }`,
  );
}

const checkLimitMs = 5_000;

/** A syntax error with the line of the bundle at which it was found: Node tells that to nobody but whoever checks. */
function located(error: SyntaxError, codePath: string, codeName: string): SyntaxError {
  const { stderr } = spawnSync(process.execPath, ['--check', codePath], {
    encoding: 'utf8',
    timeout: checkLimitMs,
  });
  const line = new RegExp(String.raw`^\S*${basename(codePath)}:(\d+)$`, 'm').exec(stderr)?.[1];
  const place = line === undefined ? codeName : `${codeName}, line ${line}`;
  return new SyntaxError(`${error.message}; at ${place}`, { cause: error });
}

/** Has it said, with the place, that user code ends its process: the worker only sees the end. */
function tellExits(): void {
  const exit = process.exit.bind(process);
  process.exit = (code) => {
    const called = new Error(`user code called process.exit(${code === undefined ? '' : String(code)})`);
    tellExit(called);
    return exit(code);
  };
}

function isOperator(value: unknown): value is Operator {
  return (
    typeof value === 'object' &&
    value !== null &&
    'check' in value &&
    typeof value.check === 'function' &&
    'run' in value &&
    typeof value.run === 'function' &&
    (!('combiner' in value) || value.combiner === undefined || typeof value.combiner === 'function')
  );
}

/** Runs the process; resolves when the worker is gone. Throws where it was not started by a worker. */
export async function runHost(): Promise<void> {
  const socket = new Socket({ fd: channelNumber, readable: true, writable: true });
  const host = new Host(new Channel(socket, mostBytesToHost));
  process.on('uncaughtException', host.fail);
  process.on('unhandledRejection', host.fail);
  try {
    await host.serve();
  } catch (error) {
    host.fail(error);
  }
  die();
}
