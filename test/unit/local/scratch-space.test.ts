import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { startOf } from '../../../src/local/live-process.ts';
import { ScratchSpace } from '../../../src/local/s3/scratch-space.ts';

const token = '01234567-89ab-cdef-0123-456789abcdef';

it.runIf(process.platform === 'linux')(
  'removes files of processes that are gone, also where another one has their id by now',
  async () => {
    const dir = await mkdtemp(join(tmpdir(), 'outrider-scratch-'));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const first = await ScratchSpace.open(dir);
    const mine = basename(first.newPath());
    const ofParent = `${process.ppid}_${String(startOf(process.ppid))}_${token}_1`;
    const gone = [
      `${process.ppid}_1_${token}_1`,
      `${process.pid}_1_${token}_1`,
      `${process.ppid}_${token}_1`,
    ];
    for (const name of [mine, ofParent, ...gone, 'other']) await writeFile(join(dir, name), '');
    const second = await ScratchSpace.open(dir);
    expect((await readdir(dir)).toSorted()).toEqual([mine, ofParent].toSorted());
    second.close();
    first.close();
  },
);
