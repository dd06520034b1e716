import { expect, it } from 'vitest';
import { freeBytes, fullDiskText, whyNoRoom } from '../../../src/local/full-disk.ts';

const systemError = (code: string): Error => Object.assign(new Error(`${code}: refused, write`), { code });

it.each([
  ['ENOSPC', 'the disk is full'],
  ['EDQUOT', 'the quota of disk space is used up'],
  ['EROFS', 'the file system is read-only'],
])('tells %s in words, with what to do', (code, words) => {
  expect(fullDiskText(systemError(code))).toBe(
    `${words} where the stack keeps its data: make room there, and try again (${code}: refused, write)`,
  );
});

it('says nothing of other errors', () => {
  for (const error of [systemError('ENOENT'), new Error('full'), 'ENOSPC'])
    expect(fullDiskText(error)).toBeUndefined();
});

it('refuses to begin where there is less room than a job needs, and nowhere else', async () => {
  const { dirname: dir } = import.meta;
  expect(await whyNoRoom(dir, 1)).toBeUndefined();
  expect(await whyNoRoom(dir, Infinity)).toBe(
    `the disk is full where the stack keeps its data, ${dir}, and no new job can be begun: make room there, and try again`,
  );
  expect(await whyNoRoom(`${dir}/none`, Infinity)).toBeUndefined();
});

it('counts what a file system keeps for root as room for root alone', () => {
  const found = { bsize: 4096, bfree: 300, bavail: 100 };
  expect([freeBytes(found, 0), freeBytes(found, 1000), freeBytes(found, undefined)]).toEqual([
    1_228_800, 409_600, 409_600,
  ]);
});
