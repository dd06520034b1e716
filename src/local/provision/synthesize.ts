import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { waitForLock } from '../process-lock.ts';

const rootDir = fileURLToPath(new URL('../../../', import.meta.url));

/** What the assembly is made from; the rest of `src` runs outside of it. */
const INPUTS = ['cdk', 'cdk.json', 'functions', 'package-lock.json', 'src'] as const;
const OUTSIDE = new Set(
  ['cli', 'experiments', 'local', 'packaging', 'report', 'sim', 'traces'].map((name) => join('src', name)),
);

const STAMP_NAME = 'outrider-inputs.sha256';
const LOCK_WAIT_MS = 120_000;
const LOCK_POLL_MS = 100;
const SYNTH_LIMIT_MS = 120_000;
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

/** The CDK app could not be synthesized; the message holds what it said. */
export class SynthesisError extends Error {
  override readonly name = 'SynthesisError';
}

/**
 * Makes sure that `outDir` holds the CDK app's cloud assembly, made from the sources as they are now: synthesizes
 * if anything that goes into it has changed since. Several processes may call it at once; one of them works.
 *
 * @throws SynthesisError if the app fails, or if another process holds the lock for two minutes.
 */
export async function synthesize({
  outDir,
  onWork,
  limitMs = SYNTH_LIMIT_MS,
}: {
  readonly outDir: string;
  /** Told where there is anything to do. */
  readonly onWork?: () => void;
  /** How long the app may run. */
  readonly limitMs?: number;
}): Promise<void> {
  const directory = resolve(outDir);
  if (await isFresh(directory, await inputsHash())) return;
  onWork?.();
  await mkdir(directory, { recursive: true });
  const unlock = await lock(directory);
  try {
    // Taken before the app runs: a change made meanwhile shows the next time.
    const hash = await inputsHash();
    if (await isFresh(directory, hash)) return;
    await prepare(directory);
    await runApp(directory, limitMs);
    await writeFile(join(directory, STAMP_NAME), await stampOf(directory, hash));
  } finally {
    await unlock();
  }
}

async function isFresh(directory: string, inputs: string): Promise<boolean> {
  try {
    const stamp = await readFile(join(directory, STAMP_NAME), 'utf8');
    return stamp === (await stampOf(directory, inputs));
  } catch {
    return false;
  }
}

/** Of the manifest too, which names the hashes of all else: the CDK's own command may have written since. */
async function stampOf(directory: string, inputs: string): Promise<string> {
  const manifest = await readFile(join(directory, 'manifest.json'));
  return `${inputs} ${createHash('sha256').update(manifest).digest('hex')}`;
}

/** Contents and names, not times: those of a fresh clone say nothing. */
async function inputsHash(): Promise<string> {
  const hash = createHash('sha256');
  const files = (await Promise.all(INPUTS.map(filesBelow))).flat().toSorted();
  const contents = await Promise.all(files.map((file) => readFile(join(rootDir, file))));
  files.forEach((file, index) => {
    const content = contents[index] ?? Buffer.alloc(0);
    hash.update(`${file}\0${String(content.length)}\0`).update(content);
  });
  return hash.digest('hex');
}

/** Files at or below a path, relative to the root. */
async function filesBelow(path: string): Promise<string[]> {
  if (OUTSIDE.has(path)) return [];
  try {
    const entries = await readdir(join(rootDir, path), { withFileTypes: true });
    const nested = await Promise.all(
      entries.map(async (entry) => {
        const inner = join(path, entry.name);
        return entry.isDirectory() ? filesBelow(inner) : [inner];
      }),
    );
    return nested.flat();
  } catch (cause) {
    if (isErrno(cause, 'ENOTDIR')) return [path];
    if (isErrno(cause, 'ENOENT')) return [];
    throw cause;
  }
}

/** An interrupted synthesis leaves bundles behind which the CDK would take for finished ones. */
async function prepare(directory: string): Promise<void> {
  const names = await readdir(directory);
  const stale = names.filter((name) => name === STAMP_NAME || name.startsWith('bundling-temp-'));
  await Promise.all(stale.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}

function runApp(directory: string, limitMs: number): Promise<void> {
  // The caller may itself run under the CDK's command or a debugger.
  const inherited = Object.entries(process.env).filter(
    ([name]) => !['CDK_CONTEXT_JSON', 'NODE_OPTIONS'].includes(name),
  );
  const options = {
    cwd: rootDir,
    env: { ...Object.fromEntries(inherited), CDK_OUTDIR: directory },
    timeout: limitMs,
    maxBuffer: MAX_OUTPUT_BYTES,
  };
  return new Promise((done, fail) => {
    execFile(process.execPath, [join('cdk', 'app.ts')], options, (error, stdout, stderr) => {
      if (error === null) done();
      else {
        // What it says until then is its progress alone.
        const why =
          error.killed === true
            ? ` within ${String(limitMs / 1_000)} s; on a busy machine try again when it has less to do`
            : '';
        fail(
          new SynthesisError(`the CDK app cannot be synthesized${why}:\n${stdout}${stderr}`, {
            cause: error,
          }),
        );
      }
    });
  });
}

/**
 * Beside the output, which the CDK's own command may replace, and not in a directory for temporary files: two callers may have
 * different ones.
 */
async function lock(directory: string): Promise<() => Promise<void>> {
  const path = `${directory}.lock`;
  const unlock = await waitForLock(path, { use: 'synthesis', limitMs: LOCK_WAIT_MS, pollMs: LOCK_POLL_MS });
  if (unlock !== undefined) return unlock;
  throw new SynthesisError(
    `another process is synthesizing into ${directory}; remove ${path} if there is none`,
  );
}

const isErrno = (cause: unknown, code: string): boolean =>
  cause instanceof Error && 'code' in cause && cause.code === code;
