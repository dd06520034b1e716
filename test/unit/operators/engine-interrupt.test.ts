import { pbkdf2 } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { Engine } from '../../../src/operators/duckdb/engine.ts';

it('a statement that waits for a thread as its task is told to stop does not run then', async () => {
  const scratchDir = await mkdtemp(join(tmpdir(), 'engine-'));
  const controller = new AbortController();
  const engine = await Engine.open({ scratchDir, signal: controller.signal });
  try {
    // More than there are threads, of some tenths of a second.
    const busy = Array.from({ length: 6 }, () => promisify(pbkdf2)('a', 'b', 100_000, 64, 'sha512'));
    // Minutes of work.
    const asked = engine.run('SELECT sum(sqrt(a.range * b.range)) FROM range(100000) a, range(100000) b');
    const ended = expect(asked).rejects.toThrow('told to stop');
    controller.abort(new Error('told to stop'));
    await ended;
    await Promise.all(busy);
  } finally {
    engine.close();
    await rm(scratchDir, { recursive: true });
  }
});
