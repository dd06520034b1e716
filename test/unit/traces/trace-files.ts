import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { readTrace } from '../../../src/traces/read-trace.ts';
import type { TraceOptions } from '../../../src/traces/read-trace.ts';
import type { TraceFormat } from '../../../src/traces/trace-formats.ts';
import type { TraceJob } from '../../../src/traces/trace-job.ts';

/** Path of a trace written for the tests. */
export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/traces/${name}`, import.meta.url));

const dataFolder =
  process.env['OUTRIDER_TRACES'] ?? fileURLToPath(new URL('../../../../shared/data', import.meta.url));

/** Whether the public traces are on this machine; tests that replay them skip where they are not. */
export const hasTraces = existsSync(join(dataFolder, 'swim-facebook'));

/** Path within the public traces. */
export const traceData = (name: string): string => join(dataFolder, name);

/** All jobs of a trace. */
export async function jobsOf(format: TraceFormat, path: string, options?: TraceOptions): Promise<TraceJob[]> {
  const jobs: TraceJob[] = [];
  for await (const job of readTrace(format, path, options)) jobs.push(job);
  return jobs;
}

/** A folder with these files, gone after the test that asks for it: this module may serve several test files. */
export async function folderWith(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'outrider-trace-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await Promise.all(Object.entries(files).map(([name, content]) => writeFile(join(folder, name), content)));
  return folder;
}
