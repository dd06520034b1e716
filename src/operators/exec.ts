import { once } from 'node:events';
import { constants } from 'node:os';
import { Readable, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { invariant, OutriderError } from '../contracts/errors.ts';
import { taskFilesOf } from '../contracts/task-files.ts';
import { CancelledError } from '../worker/operator.ts';
import type { Operator, TaskContext, TaskInput } from '../worker/operator.ts';
import { printLines } from '../worker/processes/printed-lines.ts';
import { ProcessGroup, type ProgramEnd } from '../worker/processes/process-group.ts';
import { openPipes } from '../worker/processes/program-pipes.ts';
import { taskVariables } from '../worker/task-files.ts';
import { flagOption, onlyOptions, wrongOption } from './options.ts';
import type { Options } from './options.ts';
import { readShares } from './told-shares.ts';

const maxArguments = 1_000;
/** The file descriptor into which a program may write how far it is. */
const sharesNumber = 3;
/** What is kept of standard error, for the message of a failure. */
const errorBytes = 8 * 1024;
const errorLines = 10;
/** After its program is gone, a pipe that nothing comes through for so long is given up. */
const idleMs = 500;
const closingMs = 50;
/** A pipe through which something still comes whenever all before was written away: somebody living writes to it. */
const mostPauses = 10;
/** More than pipes and buffers of a program that is gone can still hold. */
const mostPipedBytes = 4 * 1024 * 1024;

/** Thrown where a program of an `exec` stage cannot be started or does not end with code 0. */
export class ProgramFailedError extends OutriderError {
  override readonly name = 'ProgramFailed';
}

/** Thrown where a program had too little memory: a larger worker may do what this one could not. */
export class ProgramKilledError extends ProgramFailedError {
  /** As of a system call that finds no memory, by which failures are told apart. */
  readonly code = 'ENOMEM';
}

/**
 * Runs a program, `command` being its name and arguments (no shell): its input is the lines of all inputs in
 * order, its output the stage's. It sees the task's environment, what `env` adds, and OUTRIDER_STAGE, _TASK, _ATTEMPT,
 * _INPUT and _OFFSET (`taskVariables`); it runs in the attempt's scratch directory, which is its TMPDIR too and into
 * which the worker has laid what `files` names. What it says on standard error goes to the job's log, line by line, and
 * its last lines into the message of its failure. Into the file descriptor that OUTRIDER_PROGRESS says it may write how much of
 * its work is done, from 0 to 1, a line each time; from then on that is its progress, and not how much it was fed. It may end before it has read all. What it has started and left behind
 * ends with it. `resumes` says that it makes whole lines of each line by itself: a task may then be cut between two of them,
 * its program seeing the end of its input there.
 */
export const exec: Operator = {
  check(options) {
    onlyOptions(options, ['command', 'env', 'files', 'resumes']);
    commandOf(options);
    environmentOf(options);
    taskFilesOf(options);
    flagOption(options, 'resumes');
  },
  resumes: (options, readsStages) => !readsStages && flagOption(options, 'resumes'),
  async run(context) {
    context.signal.throwIfAborted();
    const { shares, ...running } = await startProgram(context);
    const { group, stdout, stderr } = running;
    tellShares(shares, context);
    const kill = (): void => {
      group.kill();
      // Somebody who has left the group may hold the pipes open; nothing that they say is wanted any more.
      stdout.destroy();
      stderr.destroy();
    };
    context.signal.addEventListener('abort', kill, { once: true });
    try {
      await runProgram(running, context);
    } finally {
      context.signal.removeEventListener('abort', kill);
      shares.destroy();
      await group.end();
    }
  },
};

/** Starts the program. Its pipes can be opened by name, `/dev/stdin` say, where the machine has such. */
async function startProgram(context: TaskContext): Promise<Running & { readonly shares: Readable }> {
  const [program, ...rest] = commandOf(context.options);
  const pipes = await openPipes(['in', 'out', 'out', 'out']);
  let group: ProcessGroup;
  try {
    context.signal.throwIfAborted();
    group = new ProcessGroup(placeOf(program, context.options), rest, {
      cwd: context.scratchDir,
      env: {
        ...context.environment,
        TMPDIR: context.scratchDir,
        ...environmentOf(context.options),
        ...taskVariables(
          context.stage,
          { task: context.task, attempt: context.attempt ?? 0 },
          context.inputs,
        ),
        OUTRIDER_PROGRESS: String(sharesNumber),
      },
      stdio: pipes?.theirs ?? ['pipe', 'pipe', 'pipe', 'pipe'],
    });
  } catch (cause) {
    for (const pipe of pipes?.ours ?? []) pipe.destroy();
    throw cause;
  } finally {
    pipes?.handOver();
  }
  const [stdin, stdout, stderr, shares] = pipes?.ours ?? group.child.stdio;
  invariant(
    stdin instanceof Writable &&
      stdout instanceof Readable &&
      stderr instanceof Readable &&
      shares instanceof Readable,
    'a program has its pipes',
  );
  return { program, group, stdin, stdout, stderr, shares, progress: { bytes: 0, isWriting: false } };
}

/** Takes what the program says of its progress. What it says wrong is told, once, and nothing more: it works all the same. */
function tellShares(shares: Readable, context: TaskContext): void {
  readShares(shares, {
    share: (share) => context.progress?.(share),
    other: (line) =>
      context.print?.(
        'stderr',
        `OUTRIDER_PROGRESS: ${JSON.stringify(line)} is no share from 0 to 1; such lines are passed over`,
      ),
  });
}

/** A program under way. */
interface Running {
  readonly program: string;
  readonly group: ProcessGroup;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** What came of its output: bytes read, and whether they are being written away just now. */
  readonly progress: { bytes: number; isWriting: boolean };
}

async function runProgram(running: Running, context: TaskContext): Promise<void> {
  const { program, group, stdin, stderr } = running;
  // Whoever has left the group may hold it open, and never read.
  void group.exited.finally(() => stdin.destroy()).catch(() => undefined);
  const complaint = keepTail(stderr);
  printLines(stderr, { lines: 0 }, (text) => context.print?.('stderr', text));
  const ended = group.exited.then(
    async (end) => {
      await releasePipes(running);
      return end;
    },
    (cause: unknown) => {
      throw new ProgramFailedError(`${program} cannot be started: ${whyNot(cause)}`, { program }, { cause });
    },
  );
  const [end, fed, read] = await Promise.allSettled([
    ended,
    feed(stdin, context.inputs).catch((cause: unknown) => {
      // An input that cannot be read must not look to the program like one that has ended.
      group.kill();
      throw cause;
    }),
    drain(running, context),
  ]);
  if (context.signal.aborted) throw new CancelledError('the attempt was cancelled while its program ran');
  if (end.status === 'rejected') throw end.reason;
  if (fed.status === 'rejected') throw fed.reason;
  if (read.status === 'rejected') throw read.reason;
  const { code, signal } = end.value;
  if (code === 0) return;
  const how = code === null ? `was ended by ${String(signal)}` : `ended with code ${String(code)}`;
  const said = complaint();
  const details = { program, code, signal };
  if (lacksMemory(end.value, said))
    throw new ProgramKilledError(`${program} ${how}, for want of memory${words(said)}`, details);
  throw new ProgramFailedError(`${program} ${how}${words(said)}`, details);
}

/** Why a program did not start, with what helps against it. */
function whyNot(cause: unknown): string {
  const why = cause instanceof Error ? cause.message : String(cause);
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  if (code === 'EACCES') return `${why}: make it executable (chmod +x) before the job is submitted`;
  if (code === 'ENOENT')
    return `${why}: it must be on the worker's PATH, or come with the stage's "files"; a script also needs the program that its first line names`;
  return why;
}

/** A program that came with the stage is the one meant, and no other of that name. */
const placeOf = (program: string, options: Options): string =>
  taskFilesOf(options).some(({ path }) => path === program) ? `./${program}` : program;

const words = (said: string): string => (said === '' ? '' : `: ${said}`);

/** As shells tell the signals of what they have run. */
const killedCode = 128 + constants.signals.SIGKILL;
const abortedCode = 128 + constants.signals.SIGABRT;
const complaintOfMemory = /out of memory|bad_alloc|allocation failed|cannot allocate|MemoryError/i;

/**
 * Whether a program had too little memory. The kernel kills the largest process of an environment that is full, and
 * nobody else kills one that was not told to stop; runtimes that find no more abort, and say why.
 */
function lacksMemory({ code, signal }: ProgramEnd, said: string): boolean {
  if (signal === 'SIGKILL' || code === killedCode) return true;
  return (signal === 'SIGABRT' || code === abortedCode) && complaintOfMemory.test(said);
}

/**
 * Waits for the rest of a program's output once it is gone, and gives up a pipe that somebody holds open who could not
 * be ended: after a pause without a byte, once more has come than a pipe holds, or once it was empty again and again.
 */
async function releasePipes({ group, stdout, stderr, progress }: Running): Promise<void> {
  const endedAt = progress.bytes;
  const closed = Promise.all([stdout, stderr].map((pipe) => closeOf(pipe)));
  const over = new AbortController();
  const watch = async (): Promise<void> => {
    // Most pipes close at once. Those that do not may be held by processes that have left the group.
    await sleep(closingMs, undefined, { signal: over.signal });
    await group.endStrays();
    for (let before = -1, pauses = 0; pauses < mostPauses; before = progress.bytes) {
      await sleep(idleMs, undefined, { signal: over.signal });
      const isIdle = progress.bytes === before && !progress.isWriting;
      if (isIdle || progress.bytes - endedAt > mostPipedBytes) break;
      if (!progress.isWriting) pauses++;
    }
    stdout.destroy();
    stderr.destroy();
  };
  const watching = watch().catch(() => undefined); // Aborted: the pipes have closed.
  await closed;
  over.abort();
  await watching;
}

const closeOf = async (pipe: Readable): Promise<void> => {
  if (!pipe.closed) await new Promise((resolve) => pipe.once('close', resolve));
};

/** Writes all lines to the program; ends early, and well, where it stops reading. */
async function feed(stdin: Writable, inputs: readonly TaskInput[]): Promise<void> {
  let isOpen = true;
  stdin.on('error', () => {
    isOpen = false;
  });
  stdin.on('close', () => {
    isOpen = false;
  });
  const isStillOpen = (): boolean => isOpen;
  let isLineOpen = false;
  for (const input of inputs) {
    for await (const { bytes } of input.blocks()) {
      if (!isStillOpen()) return;
      // The next file begins a line of its own, even if the last one did not end its last line.
      if (isLineOpen && bytes.length > 0) stdin.write('\n');
      if (bytes.length > 0) isLineOpen = bytes[bytes.length - 1] !== 0x0a;
      // A copy, since the block's memory may be used again before the pipe has taken it.
      if (!stdin.write(Buffer.from(bytes))) await drained(stdin);
    }
  }
  if (!isStillOpen()) return;
  // Nor does what another attempt makes of the rest go on with a line of this one.
  if (isLineOpen && inputs.some((input) => input.endedEarly?.() === true)) stdin.write('\n');
  stdin.end();
}

/** Resolves when more can be written, or never will. */
const drained = async (stdin: Writable): Promise<void> => {
  if (stdin.destroyed) return;
  const over = new AbortController();
  try {
    await Promise.race([
      once(stdin, 'drain', { signal: over.signal }),
      once(stdin, 'close', { signal: over.signal }),
    ]);
  } catch {
    // An error of the pipe: the program has closed it, which is its right.
  } finally {
    over.abort();
  }
};

async function drain({ group, stdout, progress }: Running, { output }: TaskContext): Promise<void> {
  try {
    for await (const chunk of stdout as AsyncIterable<Buffer>) {
      progress.bytes += chunk.length;
      progress.isWriting = true;
      const wait = output.write(chunk);
      if (wait !== undefined) await wait;
      progress.isWriting = false;
    }
  } catch (cause) {
    // A pipe that was given up has been read as far as it counts.
    if (isPrematureClose(cause)) return;
    group.kill();
    throw cause;
  } finally {
    progress.isWriting = false;
  }
}

const isPrematureClose = (cause: unknown): boolean =>
  cause instanceof Error && 'code' in cause && cause.code === 'ERR_STREAM_PREMATURE_CLOSE';

/** Gathers the end of standard error; the function answers its last lines as one. */
function keepTail(stderr: Readable): () => string {
  let tail = Buffer.alloc(0);
  stderr.on('data', (chunk: Buffer) => {
    tail = Buffer.concat([tail, chunk]).subarray(-errorBytes);
  });
  return () => tail.toString().trim().split('\n').slice(-errorLines).join(' | ');
}

function commandOf(options: Options): [program: string, ...rest: string[]] {
  const right = 'a list of texts: the program, then its arguments';
  const { command } = options;
  if (!Array.isArray(command) || command.length > maxArguments) throw wrongOption('command', right);
  const [program, ...rest] = command.map((item: unknown) => {
    if (typeof item !== 'string' || item.includes('\0')) throw wrongOption('command', right);
    return item;
  });
  if (program === undefined || program === '') throw wrongOption('command', right);
  return [program, ...rest];
}

function environmentOf(options: Options): Record<string, string> {
  const { env } = options;
  if (env === undefined) return {};
  if (typeof env !== 'object' || env === null || Array.isArray(env))
    throw wrongOption('env', 'names with texts');
  return Object.fromEntries(
    Object.entries(env).map(([name, value]: [string, unknown]) => {
      if (typeof value !== 'string' || value.includes('\0') || !/^[A-Za-z_]\w*$/.test(name)) {
        throw wrongOption(`env.${name}`, 'a text under a name of letters, digits and "_"');
      }
      return [name, value];
    }),
  );
}
