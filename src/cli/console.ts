import { badInput, systemCode } from './failures.ts';
import { makeStyle, type Style } from '../report/style.ts';

/** Where a command reads its surroundings and writes: real streams, or a test's. */
export interface Console {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Throws `InvalidInputError` where it was removed. */
  readonly cwd: string;
  /** Results. */
  readonly out: (text: string) => void;
  /** Progress and errors. */
  readonly err: (text: string) => void;
  /** Columns of the terminal behind `err`; undefined where that is none. */
  readonly terminalColumns: () => number | undefined;
  /** Colours for `out` and for `err`. */
  readonly outStyle: Style;
  readonly errStyle: Style;
}

const fallbackColumns = 80;

/** The console of this process. `onUnread` is called once, when the reader of what it writes has gone. */
export function processConsole(onUnread: () => void): Console {
  let isTold = false;
  const onGone = (): void => {
    if (isTold) return;
    isTold = true;
    onUnread();
  };
  return {
    env: process.env,
    // Asked for where it is needed, within what tells of errors.
    get cwd() {
      return workingDirectory();
    },
    out: untilGone(process.stdout, onGone),
    err: untilGone(process.stderr, onGone),
    terminalColumns: () => (process.stderr.isTTY ? process.stderr.columns || fallbackColumns : undefined),
    outStyle: styleOf(process.stdout),
    errStyle: styleOf(process.stderr),
  };
}

function workingDirectory(): string {
  try {
    return process.cwd();
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    throw badInput('the working directory is gone: go to another', error);
  }
}

/** Why a write fails where a pipe's reader has gone, as `head` does, a terminal was closed, or a connection was cut. */
const goneCodes: ReadonlySet<unknown> = new Set(['EPIPE', 'EIO', 'ENXIO', 'ECONNRESET']);

/**
 * Writes to a stream until its reader has gone, which is told once, and drops what comes after that: whoever takes something
 * down then may go on saying so. Other errors of the stream are thrown.
 */
export function untilGone(stream: NodeJS.WritableStream, onGone: () => void): (text: string) => void {
  let isGone = false;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (!goneCodes.has(error.code)) throw error;
    if (isGone) return;
    isGone = true;
    onGone();
  });
  return (text) => {
    if (!isGone) stream.write(text);
  };
}

const styleOf = ({ isTTY, columns }: NodeJS.WriteStream): Style =>
  makeStyle({ isTty: isTTY, env: process.env, columns: columns || fallbackColumns });

/** Writes lines, each with its end. */
export function writeLines(write: (text: string) => void, lines: readonly string[]): void {
  if (lines.length > 0) write(`${lines.join('\n')}\n`);
}

/** Writes the one JSON document of a `--json` command. */
export function writeJson(console: Console, value: unknown): void {
  console.out(`${JSON.stringify(value, undefined, 2)}\n`);
}
