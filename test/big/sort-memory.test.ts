import { execFileSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { planStaging, uploadStaged } from '../../src/cli/staging.ts';
import { parseUri } from '../../src/contracts/keys.ts';
import type { JobRecord } from '../../src/contracts/records.ts';
import { createRng } from '../../src/lib/rng.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

const sizeBytes = 1024 ** 3;
const mostResidentBytes = 512 * 1024 ** 2;

/** Lines of 98 bytes that begin at random. */
function* randomLines(): Generator<Buffer> {
  const rng = createRng('big');
  const tail = ' '.padEnd(70, 'lorem ipsum ');
  const piece = (): string =>
    Math.floor(rng.next() * 2 ** 32)
      .toString(36)
      .padStart(9, '0');
  for (let written = 0; written < sizeBytes;) {
    const block = Buffer.from(
      Array.from({ length: 4_096 }, () => `${piece()}${piece()}${piece()}${tail}\n`).join(''),
    );
    written += block.length;
    yield block;
  }
}

async function download(system: EmbeddedSystem, job: JobRecord, path: string): Promise<void> {
  const bucket = parseUri(job.output)?.bucket ?? '';
  const all = async function* (): AsyncGenerator<Uint8Array> {
    for (const { key } of job.parts) yield* system.objects.read({ bucket, key });
  };
  await pipeline(Readable.from(all()), createWriteStream(path));
}

// Some two minutes and 5 GB of disk: `OUTRIDER_BIG=1 npm run test:all` runs it.
describe.skipIf(process.env['OUTRIDER_BIG'] === undefined)('a sort of 1 GB', () => {
  it('is exact, and no worker process holds 512 MB', { timeout: 900_000 }, async () => {
    const dir = await mkdtemp(join(tmpdir(), 'outrider-big-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const path = join(dir, 'lines');
    await pipeline(Readable.from(randomLines()), createWriteStream(path));
    const system = await EmbeddedSystem.start({ slots: 2 });
    onTestFinished(() => system.stop());
    const set = planStaging(system.bucket, [{ path, sizeBytes: (await stat(path)).size }]);
    await uploadStaged(system.objects, set, new AbortController().signal);
    const jobId = await system.submit(builtinJob('sort', { inputs: [set.uri], partitions: 16 }));
    const job = await system.ended(jobId, 600_000);
    expect(job.error).toBeUndefined();
    const { attempts } = await system.api.attempts(jobId);
    const peaks = attempts.map(({ progress }) => progress?.peakMemoryBytes ?? 0);
    expect(Math.min(...peaks)).toBeGreaterThan(0);
    expect(Math.max(...peaks)).toBeLessThan(mostResidentBytes);
    await download(system, job, join(dir, 'sorted'));
    execFileSync('sh', ['-c', 'LC_ALL=C sort -S 256M -T . lines | cmp - sorted'], { cwd: dir });
  });
});
