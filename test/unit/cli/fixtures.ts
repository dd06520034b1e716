import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Console } from '../../../src/cli/console.ts';
import { makeStyle } from '../../../src/report/style.ts';

/** A directory that goes when the test has ended. */
export async function scratchDir(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'outrider-test-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** A console that keeps what is written; no terminal, no colour. */
export function memoryConsole(cwd: string, env: Readonly<Record<string, string>> = {}) {
  const written = { out: '', err: '' };
  const style = makeStyle({ isTty: false, env: {} });
  const console: Console = {
    env,
    cwd,
    out: (text) => {
      written.out += text;
    },
    err: (text) => {
      written.err += text;
    },
    terminalColumns: () => undefined,
    outStyle: style,
    errStyle: style,
  };
  return { console, written };
}
