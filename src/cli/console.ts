import { makeStyle, type Style } from '../report/style.ts';

/** Where a command reads its surroundings and writes: real streams, or a test's. */
export interface Console {
  readonly env: Readonly<Record<string, string | undefined>>;
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

/** The console of this process. */
export function processConsole(): Console {
  return {
    env: process.env,
    cwd: process.cwd(),
    out: (text) => {
      process.stdout.write(text);
    },
    err: (text) => {
      process.stderr.write(text);
    },
    terminalColumns: () => (process.stderr.isTTY ? process.stderr.columns || fallbackColumns : undefined),
    outStyle: styleOf(process.stdout),
    errStyle: styleOf(process.stderr),
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
