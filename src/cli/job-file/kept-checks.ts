import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import * as z from 'zod';

/** What a check has read that has found nothing wrong: each file, and a digest of what was in it. */
const entrySchema = z.array(z.tuple([z.string(), z.string()]));

/** Entries that are kept; the oldest go. */
const mostEntries = 200;
const mostConfigs = 20;

/** The user's own place for what can be made again. */
export const userCache = (env: Readonly<Record<string, string | undefined>> = process.env): string =>
  join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'outrider');

const digestOf = (text: string | Uint8Array): string => createHash('sha256').update(text).digest('hex');

/** Undefined where it cannot be read. */
const contentOf = (path: string): Promise<string | undefined> =>
  readFile(path).then(digestOf, () => undefined);

/**
 * Remembers which checks of types have found nothing wrong, by the content of all files that they have read: they take
 * seconds, and most files are run many times. A check is named by its compiler and settings.
 */
export class KeptChecks {
  readonly #path: string;

  /** @param identity - all that is the same for the same check, but for the content of files. */
  constructor(cache: string, identity: unknown) {
    this.#path = join(cache, 'types', `${digestOf(JSON.stringify(identity)).slice(0, 32)}.json`);
  }

  /** Whether the check has passed with all files as they are now. */
  async has(): Promise<boolean> {
    try {
      const files = entrySchema.parse(JSON.parse(await readFile(this.#path, 'utf8')));
      const found = await Promise.all(
        files.map(async ([path, digest]) => (await contentOf(path)) === digest),
      );
      return files.length > 0 && found.every(Boolean);
    } catch {
      return false; // Not there, or cut short: the check is made.
    }
  }

  /** Remembers a check that has passed; where that cannot be written, the next one takes its time again. */
  async add(paths: readonly string[]): Promise<void> {
    const files = await Promise.all(paths.map(async (path) => [path, await contentOf(path)] as const));
    if (files.some(([, digest]) => digest === undefined)) return;
    const directory = dirname(this.#path);
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const draft = `${this.#path}.${String(process.pid)}`;
      await writeFile(draft, JSON.stringify(files), { mode: 0o600 });
      await rename(draft, this.#path);
      await dropOldest(directory);
    } catch {
      // A user without a home, or a full disk.
    }
  }
}

async function dropOldest(directory: string): Promise<void> {
  const names = await readdir(directory);
  if (names.length <= mostEntries) return;
  const aged = await Promise.all(
    names.map(async (name) => ({ name, ms: (await stat(join(directory, name))).mtimeMs })),
  );
  for (const { name } of aged.toSorted((a, b) => b.ms - a.ms).slice(mostEntries))
    await rm(join(directory, name), { force: true });
}

/** `"extends": "./base.json"`, or a list; comments may stand around it. */
const extending = /"extends"\s*:\s*(\[[^\]]*\]|"[^"]*")/;

/**
 * A file of settings and those that it builds on; undefined where one of them is not found, so that nobody knows whether
 * they are the same the next time.
 */
export async function settingsFiles(own: string): Promise<readonly string[] | undefined> {
  const found: string[] = [];
  const open = [own];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.includes(path)) continue;
    if (found.length === mostConfigs) return undefined;
    const text = await readFile(path, 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    found.push(path);
    for (const [, base = ''] of (extending.exec(text)?.[1] ?? '').matchAll(/"([^"]*)"/g)) {
      const next = await basePath(path, base);
      if (next === undefined) return undefined;
      open.push(next);
    }
  }
  return found;
}

async function basePath(from: string, base: string): Promise<string | undefined> {
  const isPath = /^\.{0,2}\//.test(base);
  const candidates = isPath
    ? [resolve(dirname(from), base), resolve(dirname(from), `${base}.json`)]
    : [base, `${base}.json`, `${base}/tsconfig.json`].flatMap((name) => {
        try {
          return [createRequire(from).resolve(name)];
        } catch {
          return [];
        }
      });
  for (const path of candidates) if ((await contentOf(path)) !== undefined) return path;
  return undefined;
}
