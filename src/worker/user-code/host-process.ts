import { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { invariant } from '../../contracts/errors.ts';
import type { ProgramEnd } from '../processes/process-group.ts';
import { ProcessGroup } from '../processes/process-group.ts';
import { printLines } from '../processes/printed-lines.ts';
import { Channel } from './channel.ts';
import { channelNumber, mostBytesFromHost } from './protocol.ts';

/** How hosts are started. */
export interface HostProgram {
  /** The module that runs a host. */
  readonly entryPath: string;
  /** Bound of V8's heap in it; V8's own where it is left out. */
  readonly heapMb?: number;
}

/** What one host is started for. */
export interface HostOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Takes each line that user code prints; no more than a bounded number of them. */
  readonly onLine: (stream: 'stdout' | 'stderr', text: string) => void;
}

/** What is kept of standard error, to tell why a process died. */
const tailBytes = 8 * 1024;
const ranOutOfMemory = /heap out of memory|allocation failed|ENOMEM/i;
/** What V8 adds of its own when a process dies: its collections, and frames of native code; it tells users nothing. */
const collections = '<--- Last few GCs --->';
const nativeLine = /^\s*(\d+: 0x[0-9a-f]+ |-+ Native stack trace -+$)/;

/** The last lines that were written, but for what V8 adds; parted by bars. */
const lastWordsOf = (text: string): string =>
  (text.split(collections, 1)[0] ?? '')
    .trim()
    .split('\n')
    .filter((line) => !nativeLine.test(line))
    .slice(-3)
    .join(' | ');

/** A process for user code, leader of a group of its own; what it prints goes to `onLine`. */
export class HostProcess {
  readonly channel: Channel;
  readonly #group: ProcessGroup;
  #tail = Buffer.alloc(0);
  #isEnded = false;
  #ending: Promise<void> | undefined;

  constructor({ entryPath, heapMb }: HostProgram, { cwd, env, onLine }: HostOptions) {
    const flags = [
      '--max-semi-space-size=4',
      ...(heapMb === undefined ? [] : [`--max-old-space-size=${heapMb}`]),
    ];
    this.#group = new ProcessGroup(process.execPath, [...flags, entryPath], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    });
    const { stdout, stderr, stdio } = this.#group.child;
    const socket = stdio[channelNumber];
    invariant(socket instanceof Socket && stdout !== null && stderr !== null, 'a host has its pipes');
    this.channel = new Channel(socket, mostBytesFromHost);
    const printed = { lines: 0 };
    printLines(stdout, printed, (text) => {
      onLine('stdout', text);
    });
    printLines(stderr, printed, (text) => {
      onLine('stderr', text);
    });
    stderr.on('data', (chunk: Buffer) => {
      this.#tail = Buffer.concat([this.#tail, chunk]).subarray(-tailBytes);
    });
  }

  /** Whether `end` was called: how the process ended tells nothing then. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** How the process ended, once it has. Rejects where it could not be started. */
  async ended(): Promise<ProgramEnd & { readonly ranOutOfMemory: boolean; readonly lastWords: string }> {
    const end = await this.#group.exited;
    const { stderr } = this.#group.child;
    // What it wrote last is in the pipe, which nobody can hold open for long.
    if (stderr?.closed === false) await Promise.race([closed(stderr), this.#group.endStrays()]);
    const text = this.#tail.toString();
    return { ...end, ranOutOfMemory: ranOutOfMemory.test(text), lastWords: lastWordsOf(text) };
  }

  /** Kills the process and all that it has started; resolves when they are gone. May be called again. */
  end(): Promise<void> {
    this.#isEnded = true;
    const { stdout, stderr } = this.#group.child;
    this.#ending ??= this.#group.end().then(() => {
      this.channel.close();
      stdout?.destroy();
      stderr?.destroy();
    });
    return this.#ending;
  }
}

const closed = (pipe: Readable): Promise<void> =>
  new Promise((resolve) => {
    pipe.once('close', () => {
      resolve();
    });
  });
