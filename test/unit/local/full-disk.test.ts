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

const wholeMap = '         0          0 4294967295\n';
it.each([
  ['of the system itself', 0, wholeMap, 1_228_800],
  ['of a system without such maps', 0, undefined, 1_228_800],
  ['of a container that a user runs', 0, '0 1000 1\n1 100000 65536\n', 409_600],
  ['of a container with users of its own', 0, '         0     100000      65536\n', 409_600],
  ['whose map is not known', 0, '', 409_600],
])('tells what of the reserve of a file system is room for a root %s', (_, uid, uidMap, bytes) => {
  expect(freeBytes({ bsize: 4096, bfree: 300, bavail: 100 }, { uid, uidMap })).toBe(bytes);
});

it.each([1000, undefined])('counts it as room for nobody else: %s', (uid) => {
  expect(freeBytes({ bsize: 4096, bfree: 300, bavail: 100 }, { uid, uidMap: wholeMap })).toBe(409_600);
});
