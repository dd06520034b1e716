import { createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { expect } from 'vitest';
import { planStaging, uploadStaged } from '../../src/cli/staging.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { parseUri } from '../../src/contracts/keys.ts';
import type { EmbeddedSystem } from './embedded-system.ts';

/**
 * Gigabytes of input: `OUTRIDER_BIG=1 npm run test:all` runs jobs over 1 GB, and with 0.25 over a quarter of it. What one
 * task has to carry is the same, since there are as many fewer.
 */
export const bigGib = Number(process.env['OUTRIDER_BIG'] ?? '0');
export const isBig = bigGib > 0;
export const bigPartitions = Math.ceil(bigGib * 16);

const mostResidentBytes = 512 * 1024 ** 2;

/** Uploads a file; answers the address under which a job reads it. */
export async function staged(system: EmbeddedSystem, path: string): Promise<string> {
  const set = planStaging(system.bucket, [{ path, sizeBytes: (await stat(path)).size }]);
  await uploadStaged(system.objects, set, new AbortController().signal);
  return set.uri;
}

/** Runs a job, of which no worker process may ever hold 512 MB; its parts go into one file. */
export async function runBelow512Mb(system: EmbeddedSystem, spec: JobSpecInput, path: string): Promise<void> {
  const jobId = await system.submit(spec);
  const job = await system.ended(jobId, 900_000);
  expect(job.error).toBeUndefined();
  const { attempts } = await system.api.attempts(jobId);
  const peaks = attempts.map(({ progress }) => progress?.peakMemoryBytes ?? 0);
  expect(Math.min(...peaks)).toBeGreaterThan(0);
  expect(Math.max(...peaks)).toBeLessThan(mostResidentBytes);
  const bucket = parseUri(job.output)?.bucket ?? '';
  const all = async function* (): AsyncGenerator<Uint8Array> {
    for (const { key } of job.parts) yield* system.objects.read({ bucket, key });
  };
  await pipeline(Readable.from(all()), createWriteStream(path));
}
