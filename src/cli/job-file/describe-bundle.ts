import { spawn } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import * as z from 'zod';
import type { JobDescription } from '../../dataflow/runtime.ts';
import { plainEnvironment } from '../../worker/processes/child-environment.ts';
import { framesIn } from '../../worker/user-code/user-frames.ts';
import { badInput } from '../failures.ts';
import { makeTemporaryDirectory } from '../temporary-directory.ts';

/** What the process answers on file descriptor 3. */
const answerSchema = z.union([
  z.object({ job: z.custom<JobDescription>((value) => typeof value === 'object' && value !== null) }),
  z.object({ message: z.string(), stack: z.string() }),
]);

/**
 * Loads a bundle and asks it for its job. In a process of its own, since the user's code runs there and may do anything;
 * with the environment that workers give it.
 */
const script = `
process.setSourceMapsEnabled(true);
const { writeSync } = await import('node:fs');
const { pathToFileURL } = await import('node:url');
const say = (answer) => { const bytes = Buffer.from(JSON.stringify(answer)); for (let at = 0; at < bytes.length;) at += writeSync(3, bytes, at); };
try {
  const bundle = await import(pathToFileURL(process.argv[1]).href);
  say({ job: bundle.describe() });
} catch (error) {
  const isError = error instanceof Error;
  const label = isError && !['Error', 'InvalidInput'].includes(error.name) ? error.name + ': ' : '';
  const words = isError ? label + error.message : (await import(process.argv[2])).wordsOfThrown(error);
  say({ message: words, stack: String(isError ? error.stack : '') });
}
process.exit(0);
`;

/** Puts into words what is thrown and is no error. */
const wordsModule = new URL('../../worker/failure-of.ts', import.meta.url).href;

const limitMs = 30_000;

/**
 * The job of a bundle, without its functions.
 *
 * @param name - of the job file, for messages.
 * @throws InvalidInputError where the file fails when it is loaded, exports no job, or does not come to an end.
 */
export async function describeBundle(bundle: Uint8Array, name: string): Promise<JobDescription> {
  const directory = await makeTemporaryDirectory('outrider-job-');
  try {
    const path = join(directory, 'bundle.mjs');
    await writeFile(path, bundle);
    return await ask(path, directory, name);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function ask(path: string, cwd: string, name: string): Promise<JobDescription> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, path, wordsModule], {
    cwd,
    env: plainEnvironment(process.env),
    // What the file prints is for people: standard output may have to be one JSON document.
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  });
  child.stdout?.pipe(process.stderr, { end: false });
  const limit = { isOver: false };
  const timer = setTimeout(() => {
    limit.isOver = true;
    child.kill('SIGKILL');
  }, limitMs);
  const ended = new Promise<number | NodeJS.Signals | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve(code ?? signal);
    });
  });
  try {
    const [said, end] = await Promise.all([text(child.stdio[3] as Readable), ended]);
    if (limit.isOver) throw badInput(`${name} did not come to its end within 30 s of being loaded`);
    if (said === '') throw badInput(`${name} ended its process (${String(end)}) while it was loaded`);
    return jobOf(answerSchema.parse(JSON.parse(said)), name);
  } finally {
    clearTimeout(timer);
  }
}

function jobOf(answer: z.output<typeof answerSchema>, name: string): JobDescription {
  if ('job' in answer) return answer.job;
  const frames = framesIn(answer.stack);
  const place = frames.length === 0 ? '' : ` (at ${frames.join(', ')})`;
  throw badInput(`${name}: ${answer.message}${place}`);
}
