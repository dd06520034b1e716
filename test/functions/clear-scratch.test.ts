import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { clearScratch } from '../../functions/worker/clear-scratch.ts';

it('removes what attempts of a killed process left, and nothing else', async () => {
  const root = await mkdtemp(join(tmpdir(), 'outrider-scratch-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'attempt-x1', 'runs'), { recursive: true });
  await writeFile(join(root, 'attempt-x1', 'runs', '0'), 'records');
  await mkdir(join(root, 'attempt-x2'));
  await writeFile(join(root, 'other'), 'kept');
  await clearScratch(root);
  expect(await readdir(root)).toEqual(['other']);
});

it('is no failure where there is nothing to look at', async () => {
  const nowhere = join(tmpdir(), 'outrider-no-such-directory');
  await clearScratch(nowhere);
  expect(existsSync(nowhere)).toBe(false);
});
