import { chmod, mkdir, readdir, realpath, rename, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { refuseInputsInside, refuseStateInside } from '../../../src/cli/apart.ts';
import { parseAggregates } from '../../../src/cli/aggregates.ts';
import { findLocalFiles } from '../../../src/cli/local-inputs.ts';
import { checkOutputDir } from '../../../src/cli/output-dir.ts';
import {
  checkDeadline,
  parseBudget,
  parseWeight,
  parseSize,
  parseWhole,
} from '../../../src/cli/quantities.ts';
import { scratchDir } from './fixtures.ts';

const isRoot = process.getuid?.() === 0;

async function tree(names: readonly string[]): Promise<string> {
  const root = await scratchDir();
  for (const name of names) {
    await mkdir(join(root, name, '..'), { recursive: true });
    await writeFile(join(root, name), name);
  }
  return root;
}

const found = async (root: string, patterns: readonly string[]): Promise<string[]> =>
  (await findLocalFiles('--input', patterns, root)).map(({ path }) => relative(root, path));

describe('local inputs', () => {
  it('walks directories in byte order of whole paths and leaves hidden entries out', async () => {
    const root = await tree(['b.txt', 'a/z', 'a.txt', 'a/B', 'é', '.hidden', '.git/x', 'a/.also']);
    expect(await found(root, ['.'])).toEqual(['a.txt', 'a/B', 'a/z', 'b.txt', 'é']);
  });

  it('orders names beyond the basic plane by bytes and not by UTF-16 units', async () => {
    const root = await tree(['\u{1F600}', '\uFF5E']);
    expect(await found(root, ['.'])).toEqual(['\uFF5E', '\u{1F600}']);
  });

  it('takes each file once, in order of name, however often it is named', async () => {
    const root = await tree(['b', 'a']);
    expect(await found(root, ['b', '*', 'a', '.'])).toEqual(['a', 'b']);
  });

  it('takes a hidden file that is named, and a file whose name looks like a pattern', async () => {
    const root = await tree(['.secret', 'x[1].txt', 'x1.txt']);
    expect(await found(root, ['.secret', 'x[1].txt'])).toEqual(['.secret', 'x[1].txt']);
  });

  it('leaves out what begins with "_", as manifests do, where a directory or a pattern leads to it', async () => {
    const root = await tree([
      'out/part-0',
      'out/_SUCCESS',
      'out/_x/part-0',
      'out/_day=1/p',
      '_raw/a',
      '_raw/_b',
    ]);
    expect(await found(root, ['out'])).toEqual(['out/_day=1/p', 'out/part-0']);
    expect(await found(root, ['out/*'])).toEqual(['out/part-0']);
    expect(await found(root, ['out/**'])).toEqual(['out/_day=1/p', 'out/part-0']);
    expect(await found(root, ['_raw'])).toEqual(['_raw/a']);
    expect(await found(root, ['_raw/*'])).toEqual(['_raw/a']);
    expect(await found(root, ['out/_SUCCESS', '_raw/_b'])).toEqual(['_raw/_b', 'out/_SUCCESS']);
    expect(await found(root, ['out/_S*', '*/_x/*'])).toEqual(['out/_SUCCESS', 'out/_x/part-0']);
    expect(await found(root, ['{out,_raw/no}/p*'])).toEqual(['out/part-0']);
    expect(await found(root, ['{_raw,out}/{a,part*}'])).toEqual(['_raw/a', 'out/part-0']);
    expect(await found(root, ['_raw/[_b]*'])).toEqual(['_raw/_b']);
    expect(await found(root, ['o[_u]t/*'])).toEqual(['out/part-0']);
    await expect(found(root, ['out/*S'])).rejects.toThrow(
      '--input out/*S matches no file but those whose names begin with "_" or ".", which are passed over',
    );
  });

  it('follows links, and not in circles', async () => {
    const root = await tree(['real/f']);
    await symlink('real', join(root, 'link'));
    await symlink('..', join(root, 'real/up'));
    expect(await found(root, ['.'])).toEqual(['link/f', 'real/f']);
  });

  it('tells the size of files', async () => {
    const root = await tree(['abc']);
    expect(await findLocalFiles('--input', ['abc'], root)).toEqual([
      { path: join(root, 'abc'), sizeBytes: 3 },
    ]);
  });

  it.each([
    [['nothing'], '--input nothing cannot be read: there is no such file or directory'],
    [['*.csv'], '--input *.csv matches no file'],
    [['f/x'], '--input f/x cannot be read: a part of its path is not a directory'],
    [[''], '--input is empty: name a file, a directory or a pattern'],
    [['empty'], '--input empty holds no files (those whose names begin with "_" or "." do not count)'],
  ])('refuses %j', async (patterns, message) => {
    const root = await tree(['f']);
    await mkdir(join(root, 'empty'));
    await expect(found(root, patterns)).rejects.toMatchObject({ name: 'InvalidInput', message });
  });

  it('refuses a link that leads nowhere, and names it', async () => {
    const root = await tree(['d/f']);
    await symlink('gone', join(root, 'd/broken'));
    await expect(found(root, ['d'])).rejects.toThrow(
      `${join(root, 'd/broken')} cannot be read: there is no such file`,
    );
  });

  it('finds by a pattern what links lead to, files and directories', async () => {
    const root = await tree(['real/deep/f.txt', 'g.txt']);
    await symlink('real', join(root, 'link'));
    await symlink('g.txt', join(root, 'h.txt'));
    const all = ['g.txt', 'h.txt', 'link/deep/f.txt', 'real/deep/f.txt'];
    expect(await found(root, ['**/*.txt'])).toEqual(all);
    expect(await found(root, ['*.txt'])).toEqual(['g.txt', 'h.txt']);
  });

  it('ends where links go round in a circle below a pattern', async () => {
    const root = await tree(['real/f.txt']);
    await symlink('..', join(root, 'real/up'));
    await symlink('.', join(root, 'real/self'));
    const paths = await found(root, ['**/*.txt']);
    expect(new Set(await Promise.all(paths.map((path) => realpath(join(root, path)))))).toEqual(
      new Set([join(await realpath(root), 'real/f.txt')]),
    );
  });

  it('refuses a link that leads nowhere where a pattern names it, and else leaves it alone', async () => {
    const root = await tree(['d/f.txt', 'd/g.csv']);
    await symlink('gone', join(root, 'd/broken.txt'));
    await symlink('round.txt', join(root, 'd/round.txt'));
    await expect(found(root, ['d/b*.txt'])).rejects.toMatchObject({
      name: 'InvalidInput',
      message: `--input ${join(root, 'd/broken.txt')} cannot be read: there is no such file or directory`,
    });
    await expect(found(root, ['**/r*.txt'])).rejects.toThrow(
      `--input ${join(root, 'd/round.txt')} cannot be read: its symbolic links go round in a circle`,
    );
    expect(await found(root, ['**/*.csv', 'd/f*'])).toEqual(['d/f.txt', 'd/g.csv']);
  });

  it('refuses a pattern that leads into a directory which cannot be read, and no other', async () => {
    const root = await tree(['a.txt', 'b/a.txt']);
    // Not even root reads what has too long a name, which it gets by being moved.
    const [above, below] = [9, 12].map((count) => Array<string>(count).fill('d'.repeat(200)).join('/'));
    await mkdir(join(root, 'b', above ?? ''), { recursive: true });
    await mkdir(join(root, 'moved', below ?? ''), { recursive: true });
    await rename(join(root, 'moved'), join(root, 'b', above ?? '', 'c'));
    onTestFinished(() => rename(join(root, 'b', above ?? '', 'c'), join(root, 'moved')));
    await expect(found(root, ['**/*.txt'])).rejects.toThrow(
      /^--input \*\*\/\*\.txt: the directory \/.*d cannot be read: its name is too long$/,
    );
    expect(await found(root, ['*.txt', 'b/*', 'b*/a.txt'])).toEqual(['a.txt', 'b/a.txt']);
  });

  it.skipIf(isRoot)('refuses a pattern that leads into a directory which may not be read', async () => {
    const root = await tree(['a.txt', 'locked/b.txt']);
    await chmod(join(root, 'locked'), 0);
    onTestFinished(() => chmod(join(root, 'locked'), 0o700));
    for (const pattern of ['**/*.txt', '*/*', 'l*/b.txt'])
      await expect(found(root, [pattern])).rejects.toThrow(
        `--input ${pattern}: the directory ${join(root, 'locked')} cannot be read: permission denied`,
      );
    // In which nothing can be that these match.
    expect(await found(root, ['*', 'a*.txt'])).toEqual(['a.txt']);
  });

  it.skipIf(isRoot)('refuses a file that may not be read', async () => {
    const root = await tree(['locked']);
    await chmod(join(root, 'locked'), 0);
    await expect(found(root, ['locked'])).rejects.toThrow('locked cannot be read: permission denied');
  });
});

describe('output directory', () => {
  it('may be absent, even with its parents, or empty; nothing is made by looking', async () => {
    const root = await tree(['f']);
    await mkdir(join(root, 'empty'));
    expect(await checkOutputDir('empty', root)).toBe(join(root, 'empty'));
    expect(await checkOutputDir('new/deep', root)).toBe(join(root, 'new/deep'));
    expect(await found(root, ['.'])).toEqual(['f']);
  });

  it.each([
    [
      'full',
      '--output full is not empty: empty it, name another directory, or give --force where it holds an earlier output',
    ],
    ['file', '--output file is not a directory: name one that is empty or not there yet'],
    ['', '--output is empty: name a directory that is empty or not there yet'],
  ])('refuses %j', async (output, message) => {
    const root = await tree(['full/f', 'file']);
    await expect(checkOutputDir(output, root)).rejects.toMatchObject({ name: 'InvalidInput', message });
  });

  it('refuses one inside of a file', async () => {
    const root = await tree(['file']);
    await expect(checkOutputDir('file/out', root)).rejects.toThrow('--output file/out cannot be');
  });

  it.each(['latest', 'latest/out', 'latest/out/deep'])(
    'refuses %j, where a link to nothing is in the way',
    async (output) => {
      const root = await tree(['d/f']);
      await symlink('gone', join(root, 'latest'));
      await expect(checkOutputDir(output, root)).rejects.toMatchObject({
        name: 'InvalidInput',
        message: `--output ${output} cannot be made: ${join(root, 'latest')} is a link to what is not there: remove it, or name another directory`,
      });
      expect((await readdir(root)).toSorted()).toEqual(['d', 'latest']);
    },
  );

  it('may be a link to an empty directory, and lie below one', async () => {
    const root = await scratchDir();
    await mkdir(join(root, 'real'));
    await symlink('real', join(root, 'link'));
    expect(await checkOutputDir('link', root)).toBe(join(root, 'link'));
    expect(await checkOutputDir('link/out', root)).toBe(join(root, 'link/out'));
  });

  it.each([
    ['out', 'out'],
    ['out/state', 'out'],
    ['real/out/state', 'link/out'],
    ['link/out', 'real/out'],
    ['link/state', 'real'],
  ])('refuses the state of a stack in %j where the output is to be %j', async (stateDir, output) => {
    const root = await scratchDir();
    await mkdir(join(root, 'real'));
    await symlink('real', join(root, 'link'));
    await expect(refuseStateInside(join(root, stateDir), stateDir, join(root, output))).rejects.toMatchObject(
      {
        name: 'InvalidInput',
        message: `--state-dir ${stateDir} lies in the directory of --output, which holds the output alone: name one beside it`,
      },
    );
    for (const [state, beside] of [
      ['output', 'out'],
      ['state', 'state/out'],
    ] as const)
      await refuseStateInside(join(root, state), state, join(root, beside));
  });

  it.each([
    ['in/out/part-00000', 'in/out'],
    ['in/out/deep/part-00000', 'in/out'],
    ['in/out/part-00000', 'link'],
    ['link/part-00000', 'in/out'],
    ['part', 'in/out'],
  ])('refuses the input %j where the directory is to be %j', async (input, output) => {
    const root = await tree(['in/out/part-00000', 'in/out/deep/part-00000', 'in/output']);
    await symlink('in/out', join(root, 'link'));
    await symlink('in/out/part-00000', join(root, 'part'));
    const files = (...paths: readonly string[]) =>
      paths.map((path) => ({ path: join(root, path), sizeBytes: 1 }));
    await expect(refuseInputsInside(files(input), join(root, output), '--output x')).rejects.toMatchObject({
      name: 'InvalidInput',
      message: `input ${join(root, input)} lies in the directory of --output x: inputs must lie apart from it, so leave it out or name another directory`,
    });
    await refuseInputsInside(files('in/output'), join(root, output), '--output x');
    await refuseInputsInside(files(input), join(root, 'none'), '--output x');
  });

  it.runIf(process.platform === 'linux')('refuses one where not even root can make any', async () => {
    await expect(checkOutputDir('/proc/new/out', '/')).rejects.toMatchObject({
      name: 'InvalidInput',
      message: '--output /proc/new/out cannot be made in /proc: there is no such file or directory',
    });
  });

  it.skipIf(isRoot)('refuses one that may not be made', async () => {
    const root = await scratchDir();
    await mkdir(join(root, 'locked'), { mode: 0o500 });
    await expect(checkOutputDir('locked/out', root)).rejects.toThrow(
      `cannot be made in ${join(root, 'locked')}: permission denied`,
    );
  });
});

describe('quantities on the command line', () => {
  it.each([
    ['1', 1],
    ['64k', 65_536],
    ['32m', 33_554_432],
    ['1.5MiB', 1_572_864],
    ['4G', 4_294_967_296],
  ])('reads the size %s', (text, sizeBytes) => {
    expect(parseSize('--split-size', text)).toBe(sizeBytes);
  });

  it.each(['', '0', 'm', '-1k', '5g', '1t', '1e6', '32 mm'])('refuses the size %j', (text) => {
    expect(() => parseSize('--split-size', text)).toThrow(
      `--split-size "${text}" must be a size from 1 byte to 4g, such as "64k" or "32m"`,
    );
  });

  it('reads whole numbers within their limits', () => {
    expect(parseWhole('--slots', '8', 1, 8)).toBe(8);
    for (const text of ['0', '9', '2.5', '', 'x', '-1', '1e1']) {
      expect(() => parseWhole('--slots', text, 1, 8)).toThrow(
        `--slots "${text}" must be a whole number from 1 to 8`,
      );
    }
  });

  it('reads deadlines from a second to a week', () => {
    expect(checkDeadline('10m')).toBe('10m');
    for (const text of ['soon', '0s', '8d', '-1s', '']) {
      expect(() => checkDeadline(text)).toThrow(
        `--deadline "${text}" must be a length of time from 1s to 7d`,
      );
    }
  });

  it('reads budgets', () => {
    expect([parseBudget('2'), parseBudget('$0.50'), parseBudget('.25')]).toEqual([2, 0.5, 0.25]);
    for (const text of ['0', '-1', 'x', '1e3', '1000001'])
      expect(() => parseBudget(text)).toThrow('must be dollars');
  });

  it('reads weights', () => {
    expect([parseWeight('2'), parseWeight('0.5'), parseWeight(' 1000 ')]).toEqual([2, 0.5, 1_000]);
    for (const text of ['0', '-1', 'x', '1e3', '1001', '0.001', ''])
      expect(() => parseWeight(text)).toThrow(`--weight "${text}" must be a number from 0.01 to 1000`);
  });
});

describe('aggregates on the command line', () => {
  it('reads operations, columns and names', () => {
    expect(parseAggregates('count, sum:amount,AVG: unit price as mean')).toEqual([
      { op: 'count' },
      { op: 'sum', column: 'amount' },
      { op: 'avg', column: 'unit price', as: 'mean' },
    ]);
    expect(parseAggregates('count:x as n')).toEqual([{ op: 'count', column: 'x', as: 'n' }]);
  });

  it.each([
    ['median:x', '--agg "median:x" must be one of count, sum, min, max, avg'],
    ['', '--agg "" must be one of'],
    ['count,,sum:a', '--agg "" must be one of'],
    ['sum', '--agg "sum" must name a column, such as "sum:amount"'],
  ])('refuses %j', (text, message) => {
    expect(() => parseAggregates(text)).toThrow(message);
  });
});
