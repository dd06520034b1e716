import { readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { synthesize } from '../../src/local/provision/synthesize.ts';
import { scratchDirectory } from './local-stack-support.ts';

const SYNTHESIS_LIMIT_MS = 180_000;

let out: Awaited<ReturnType<typeof scratchDirectory>>;

beforeAll(async () => {
  out = await scratchDirectory();
});

afterAll(async () => {
  await out.remove();
});

describe('synthesize', () => {
  it(
    'writes the assembly with code in its assets, also when two ask at once',
    async () => {
      await Promise.all([synthesize({ outDir: out.path }), synthesize({ outDir: out.path })]);
      const names = await readdir(out.path);
      expect(names).toEqual(expect.arrayContaining(['manifest.json', 'OutriderApi.template.json']));
      const assets = await Promise.all(
        names.filter((name) => name.startsWith('asset.')).map((name) => readdir(join(out.path, name))),
      );
      expect(assets.flat()).toEqual(expect.arrayContaining(['index.mjs', 'main.mjs', 'Dockerfile']));
      expect(names.filter((name) => name.startsWith('bundling-temp'))).toEqual([]);
    },
    SYNTHESIS_LIMIT_MS,
  );

  it('says that its time was up', async () => {
    const other = await scratchDirectory();
    await expect(synthesize({ outDir: other.path, limitMs: 1 })).rejects.toThrow(
      'the CDK app cannot be synthesized within 0.001 s; on a busy machine try again',
    );
    await other.remove();
  });

  it('leaves an assembly alone that is as the sources are', async () => {
    const marker = join(out.path, 'OutriderApi.template.json');
    await writeFile(marker, 'touched');
    await synthesize({ outDir: out.path });
    expect(await readFile(marker, 'utf8')).toBe('touched');
  });

  /** Where the lock of a synthesis lies. */
  const lockPath = (): string => `${out.path}.lock`;

  it(
    'makes anew what another program has written there, also where one was killed as it made its lock',
    async () => {
      await writeFile(join(out.path, 'manifest.json'), '{}');
      await writeFile(lockPath(), '');
      await utimes(lockPath(), 0, 0);
      await synthesize({ outDir: out.path });
      expect(await readFile(join(out.path, 'manifest.json'), 'utf8')).toContain('OutriderApi');
      await expect(readFile(lockPath())).rejects.toThrow('ENOENT');
    },
    SYNTHESIS_LIMIT_MS,
  );

  it(
    'makes anew what an interrupted synthesis left half done, also where another process has its id by now',
    async () => {
      await rm(join(out.path, 'outrider-inputs.sha256'));
      await writeFile(lockPath(), process.platform === 'linux' ? `${String(process.pid)} 1` : '999999999');
      await synthesize({ outDir: out.path });
      expect(await readFile(join(out.path, 'OutriderApi.template.json'), 'utf8')).toContain('"Resources"');
    },
    SYNTHESIS_LIMIT_MS,
  );
});
