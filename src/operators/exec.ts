import { spawn } from 'node:child_process';
import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { OutriderError } from '../contracts/errors.ts';
import { CancelledError } from '../worker/operator.ts';
import type { Operator, TaskContext, TaskInput } from '../worker/operator.ts';
import { onlyOptions, wrongOption } from './options.ts';
import type { Options } from './options.ts';

const maxArguments = 1_000;
/** What is kept of standard error, for the message of a failure. */
const errorBytes = 8 * 1024;
const errorLines = 10;

/** Thrown where a program of an `exec` stage cannot be started or does not end with code 0. */
export class ProgramFailedError extends OutriderError {
  override readonly name = 'ProgramFailed';
}

/**
 * Runs a program, `command` being its name and arguments (no shell): its input is the lines of all inputs in
 * order, its output the stage's. It sees this worker's environment, what `env` adds, and OUTRIDER_STAGE and
 * OUTRIDER_TASK; it runs in the attempt's scratch directory. It may end before it has read all.
 */
export const exec: Operator = {
  check(options) {
    onlyOptions(options, ['command', 'env']);
    commandOf(options);
    environmentOf(options);
  },
  async run(context) {
    context.signal.throwIfAborted();
    const [program, ...rest] = commandOf(context.options);
    const child = spawn(program, rest, {
      cwd: context.scratchDir,
      env: {
        ...process.env,
        ...environmentOf(context.options),
        OUTRIDER_STAGE: context.stage,
        OUTRIDER_TASK: String(context.task),
      },
      stdio: 'pipe',
    });
    const kill = (): void => {
      child.kill('SIGKILL');
      // A grandchild may hold the pipes open; nothing that it says is wanted any more.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    context.signal.addEventListener('abort', kill, { once: true });
    try {
      await runChild(child, program, context);
    } finally {
      context.signal.removeEventListener('abort', kill);
      if (child.exitCode === null && child.signalCode === null) kill();
    }
  },
};

async function runChild(
  child: ChildProcessWithoutNullStreams,
  program: string,
  context: TaskContext,
): Promise<void> {
  const complaint = keepTail(child);
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve, reject) => {
    child.once('error', (cause) => {
      reject(
        new ProgramFailedError(`${program} cannot be started: ${cause.message}`, { program }, { cause }),
      );
    });
    child.once('close', (code, signal) => {
      resolve({ code, signal });
    });
  });
  const [end, fed, read] = await Promise.allSettled([
    ended,
    feed(child.stdin, context.inputs).catch((cause: unknown) => {
      // An input that cannot be read must not look to the program like one that has ended.
      child.kill('SIGKILL');
      throw cause;
    }),
    drain(child, context),
  ]);
  if (context.signal.aborted) throw new CancelledError('the attempt was cancelled while its program ran');
  if (end.status === 'rejected') throw end.reason;
  if (fed.status === 'rejected') throw fed.reason;
  if (read.status === 'rejected') throw read.reason;
  const { code, signal } = end.value;
  if (code === 0) return;
  const how = code === null ? `was ended by ${String(signal)}` : `ended with code ${String(code)}`;
  const said = complaint();
  throw new ProgramFailedError(`${program} ${how}${said === '' ? '' : `: ${said}`}`, {
    program,
    code,
    signal,
  });
}

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
  if (isStillOpen()) stdin.end();
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

async function drain(child: ChildProcessWithoutNullStreams, { output, signal }: TaskContext): Promise<void> {
  try {
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      const wait = output.write(chunk);
      if (wait !== undefined) await wait;
    }
  } catch (cause) {
    // The output failed, or the pipe was torn down by a cancel.
    child.kill('SIGKILL');
    if (!signal.aborted) throw cause;
  }
}

/** Gathers the end of standard error; the function answers its last lines as one. */
function keepTail(child: ChildProcessWithoutNullStreams): () => string {
  let tail = Buffer.alloc(0);
  child.stderr.on('data', (chunk: Buffer) => {
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
