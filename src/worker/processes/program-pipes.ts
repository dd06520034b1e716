import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { withoutInherited } from './inherited-files.ts';

/** Which way bytes go, as the program sees it. */
export type PipeWay = 'in' | 'out';

/** Pipes between this process and a program that it is about to start. */
export interface ProgramPipes {
  /** This process's ends, in the order of what was asked for. */
  readonly ours: readonly Socket[];
  /** The program's ends, for its stdio. */
  readonly theirs: readonly number[];
  /** Gives up the program's ends once it has them, or could not be started. */
  handOver(): void;
}

/** The lowest number of a pipe in the shell: what is below is its own. */
const firstNumber = 3;
/** A shell opens files by numbers of one digit alone. */
const mostPipes = 7;
/** A shell that does not begin for so long is done without. */
const longestStartMs = 5_000;

/**
 * Pipes of the kernel's. Those that Node makes for a program are sockets, which nobody can open by a name: /dev/stdin, /dev/stdout and
 * /dev/stderr would be "No such device or address" to it. Node makes no others, so a shell does, as which a
 * short text in a script is given to a command; they are taken over from it through /proc. Not named ones: whoever
 * opens such a one waits for somebody at its other end, who may have gone. Undefined where that cannot be had: not on
 * Linux, no shell, or one that uses a file. On macOS a socket can be opened so.
 */
export async function openPipes(ways: readonly PipeWay[]): Promise<ProgramPipes | undefined> {
  if (process.platform !== 'linux' || ways.length > mostPipes) return undefined;
  const texts = ways.map((_, index) => `${String(firstNumber + index)}<<E`).join(' ');
  const script = `exec ${texts}\n${'\nE\n'.repeat(ways.length)}echo; read -r _`;
  const shell = spawn('/bin/sh', ['-c', script], {
    cwd: '/',
    env: {},
    // It ends with this process, since it reads from it.
    stdio: withoutInherited(['pipe', 'pipe', 'ignore']),
  });
  try {
    await begun(shell);
    return takePipes(ways, `/proc/${String(shell.pid)}/fd`);
  } catch {
    return undefined;
  } finally {
    shell.kill('SIGKILL');
  }
}

/** Resolves once the shell has its pipes; rejects where it never will. */
async function begun(shell: ChildProcess): Promise<void> {
  shell.stdin?.on('error', () => undefined);
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (): void => {
        reject(new Error('the shell has not begun'));
      };
      timer = setTimeout(fail, longestStartMs);
      shell.once('error', fail).once('exit', fail);
      shell.stdout?.once('data', () => {
        resolve();
      });
    });
  } finally {
    clearTimeout(timer);
  }
}

function takePipes(ways: readonly PipeWay[], directory: string): ProgramPipes {
  const opened = new Set<number>();
  const open = (index: number, flags: number): number => {
    const number = openSync(`${directory}/${String(firstNumber + index)}`, flags);
    opened.add(number);
    return number;
  };
  const close = (number: number): void => {
    if (opened.delete(number)) closeSync(number);
  };
  try {
    const ends = ways.map((way, index) => takePipe(way, (flags) => open(index, flags), close));
    const ours = ends.map(({ our }, index) => {
      opened.delete(our);
      const isRead = ways[index] === 'out';
      return new Socket({ fd: our, readable: isRead, writable: !isRead });
    });
    const theirs = ends.map(({ their }) => their);
    return {
      ours,
      theirs,
      handOver: () => {
        theirs.forEach(close);
      },
    };
  } catch (cause) {
    [...opened].forEach(close);
    throw cause;
  }
}

/** Only the program's end is one that it waits at. Throws where this is no pipe that is empty. */
function takePipe(
  way: PipeWay,
  open: (flags: number) => number,
  close: (number: number) => void,
): { readonly our: number; readonly their: number } {
  const { O_RDONLY, O_WRONLY, O_NONBLOCK } = constants;
  const reading = open(O_RDONLY | O_NONBLOCK);
  if (!fstatSync(reading).isFIFO()) throw new Error('the shell has used no pipe');
  // The text's only line.
  if (readSync(reading, Buffer.alloc(2)) !== 1) throw new Error('the shell has written something else');
  if (way === 'out') return { our: reading, their: open(O_WRONLY) };
  const our = open(O_WRONLY | O_NONBLOCK);
  const their = open(O_RDONLY);
  close(reading);
  return { our, their };
}
