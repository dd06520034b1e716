import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { signalGroup } from './signal-group.ts';

/** How a process ended: one of the two is null; both are if it never started. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ProcessSpec {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** All that the process gets; nothing is inherited. */
  readonly environment: Readonly<Record<string, string>>;
  /** Called for each line of stdout and stderr, without its end. */
  readonly onLine: (line: string) => void;
  /** Called as soon as the process is gone, before the rest of its output is read. */
  readonly onExit?: () => void;
}

/** A process that leads its own group, with its output cut into lines. */
export interface LoggedProcess {
  /** Undefined if the program could not be started. */
  readonly pid: number | undefined;
  /** Settles once the process is gone and its output is read; never rejects. */
  readonly exited: Promise<ProcessExit>;
  /** Signals the whole group; a process that is gone already is no error. */
  signal(signal: NodeJS.Signals): void;
  /** SIGTERM, then SIGKILL after `graceMs`; resolves when the process is gone. */
  stop(graceMs: number): Promise<void>;
}

const MAX_LINE_CHARS = 256 * 1024;
/** Output may be held open by a grandchild that left the group. */
const DRAIN_LIMIT_MS = 500;

function readLines(stream: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  stream.on('data', (chunk: Buffer) => {
    const lines = (rest + decoder.write(chunk)).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
    if (rest.length > MAX_LINE_CHARS) {
      onLine(rest);
      rest = '';
    }
  });
  stream.on('end', () => {
    if (rest !== '') onLine(rest);
    rest = '';
  });
  // The pipe breaks with its process, and `exited` tells of that.
  stream.on('error', () => undefined);
}

/** Starts a program; one that cannot be started ends at once, with a line that says why. */
export function startLoggedProcess(spec: ProcessSpec): LoggedProcess {
  const child = spawn(spec.command, spec.args, {
    cwd: spec.cwd,
    env: { ...spec.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  readLines(child.stdout, spec.onLine);
  readLines(child.stderr, spec.onLine);

  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('error', (cause) => {
      spec.onLine(`cannot start ${spec.command}: ${cause.message}`);
      if (child.pid === undefined) resolve({ code: null, signal: null });
    });
    child.once('exit', (code, signal) => {
      spec.onExit?.();
      // Programs that the process left behind end with it, as in a real sandbox.
      signalGroup(child.pid, 'SIGKILL');
      const settle = () => {
        clearTimeout(limit);
        resolve({ code, signal });
      };
      const limit = setTimeout(settle, DRAIN_LIMIT_MS);
      child.once('close', settle);
    });
  });

  return {
    pid: child.pid,
    exited,
    signal(signal) {
      signalGroup(child.pid, signal);
    },
    async stop(graceMs) {
      signalGroup(child.pid, 'SIGTERM');
      const killer = setTimeout(() => {
        signalGroup(child.pid, 'SIGKILL');
      }, graceMs);
      await exited;
      clearTimeout(killer);
    },
  };
}

/** "signal: killed" or "exit status 1", in the words of AWS. */
export function describeExit(exit: ProcessExit): string {
  if (exit.signal === 'SIGKILL') return 'signal: killed';
  if (exit.signal === 'SIGABRT') return 'signal: aborted';
  if (exit.signal === 'SIGSEGV') return 'signal: segmentation fault';
  if (exit.signal === 'SIGTERM') return 'signal: terminated';
  if (exit.signal !== null) return `signal: ${exit.signal}`;
  return `exit status ${String(exit.code ?? 1)}`;
}
