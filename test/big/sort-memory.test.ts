import { execFileSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { describe, it, onTestFinished } from 'vitest';
import { createRng } from '../../src/lib/rng.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { bigGib, bigPartitions, isBig, runBelow512Mb, staged } from '../support/big-job.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

/** Lines of 98 bytes that begin at random. */
function* randomLines(): Generator<Buffer> {
  const rng = createRng('big');
  const tail = ' '.padEnd(70, 'lorem ipsum ');
  const piece = (): string =>
    Math.floor(rng.next() * 2 ** 32)
      .toString(36)
      .padStart(9, '0');
  for (let written = 0; written < bigGib * 1024 ** 3;) {
    const block = Buffer.from(
      Array.from({ length: 4_096 }, () => `${piece()}${piece()}${piece()}${tail}\n`).join(''),
    );
    written += block.length;
    yield block;
  }
}

// Some two minutes and 5 GB of disk for 1 GB.
describe.skipIf(!isBig)(`a sort of ${bigGib} GB`, () => {
  it('is exact, and no worker process holds 512 MB', { timeout: 900_000 }, async () => {
    const dir = await mkdtemp(join(tmpdir(), 'outrider-big-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const path = join(dir, 'lines');
    await pipeline(Readable.from(randomLines()), createWriteStream(path));
    const system = await EmbeddedSystem.start({ slots: 2 });
    onTestFinished(() => system.stop());
    const inputs = [await staged(system, path)];
    await runBelow512Mb(
      system,
      builtinJob('sort', { inputs, partitions: bigPartitions }),
      join(dir, 'sorted'),
    );
    execFileSync('sh', ['-c', 'LC_ALL=C sort -S 256M -T . lines | cmp - sorted'], { cwd: dir });
  });
});
