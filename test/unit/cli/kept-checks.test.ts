import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkTypes } from '../../../src/cli/job-file/check-types.ts';
import { settingsFiles } from '../../../src/cli/job-file/kept-checks.ts';
import { scratchDir } from './fixtures.ts';

/** A project whose compiler is the real one and counts its runs in a file. */
async function project(): Promise<{ file: string; cache: string; runs: () => Promise<number> }> {
  const dir = await scratchDir();
  const compiler = join(dir, 'node_modules', 'typescript');
  const real = createRequire(import.meta.url).resolve('typescript/package.json');
  await mkdir(compiler, { recursive: true });
  await writeFile(
    join(compiler, 'package.json'),
    JSON.stringify({ name: 'typescript', version: '6.0.3', type: 'commonjs', bin: { tsc: 'tsc.cjs' } }),
  );
  const program = `require('node:fs').appendFileSync(__dirname + '/runs', 'x');\nrequire(${JSON.stringify(join(dirname(real), 'lib', 'tsc.js'))});`;
  await writeFile(join(compiler, 'tsc.cjs'), program);
  return {
    file: join(dir, 'job.ts'),
    cache: join(dir, 'cache'),
    runs: () =>
      readFile(join(compiler, 'runs'), 'utf8').then(
        ({ length }) => length,
        () => 0,
      ),
  };
}

const jobText = (word: string): string =>
  `import { named } from './names.ts';\nexport const name: string = named('${word}');\n`;

describe('the check of types', () => {
  it('is made once for the same files, and again when one of them, or a setting, has changed', async () => {
    const { file, cache, runs } = await project();
    const dir = dirname(file);
    await writeFile(file, jobText('one'));
    await writeFile(join(dir, 'names.ts'), 'export const named = (text: string): string => text;\n');
    const check = (): Promise<boolean> => checkTypes(file, cache);
    expect([await check(), await check(), await runs()]).toEqual([true, true, 1]);

    await writeFile(file, jobText('two'));
    expect([await check(), await check(), await runs()]).toEqual([true, true, 2]);

    await writeFile(join(dir, 'names.ts'), 'export const named = (text: string): number => text.length;\n');
    await expect(check()).rejects.toThrow(/^job\.ts:2:14: TS2322: /);
    await expect(check()).rejects.toThrow(/^job\.ts:2:14: TS2322: /);
    expect(await runs()).toBe(4);

    await writeFile(join(dir, 'names.ts'), 'export const named = (text: string): string => text + 1;\n');
    await writeFile(join(dir, 'base.json'), '{ "compilerOptions": { "strict": true } }');
    await writeFile(join(dir, 'tsconfig.json'), '{ // ours\n "extends": "./base" }');
    // Of a project's settings the compiler is asked first, once for each check.
    expect([await check(), await check(), await runs()]).toEqual([true, true, 6]);
    await writeFile(
      join(dir, 'base.json'),
      '{ "compilerOptions": { "strict": true, "noUnusedLocals": true } }',
    );
    expect([await check(), await check(), await runs()]).toEqual([true, true, 8]);
  });

  it('is made each time where nothing can be kept', async () => {
    const { file, cache, runs } = await project();
    await writeFile(file, 'export const name = 1;\n');
    await writeFile(cache, 'in the way');
    await chmod(cache, 0o400);
    expect([await checkTypes(file, cache), await checkTypes(file, cache), await runs()]).toEqual([
      true,
      true,
      2,
    ]);
    expect(await readdir(dirname(file))).toContain('cache');
  });

  it('knows all files that its settings build on, or none', async () => {
    const dir = await scratchDir();
    const write = (name: string, text: string): Promise<void> => writeFile(join(dir, name), text);
    await write('a.json', '{ "extends": ["./b.json", "./c"] }');
    await write('b.json', '{ "extends": "./a.json" }');
    await write('c.json', '{}');
    expect([...((await settingsFiles(join(dir, 'a.json'))) ?? [])].toSorted()).toEqual(
      ['a.json', 'b.json', 'c.json'].map((name) => join(dir, name)),
    );
    await write('c.json', '{ "extends": "no-such-package/base" }');
    expect(await settingsFiles(join(dir, 'a.json'))).toBeUndefined();
  });
});
