import { execFile } from 'node:child_process';
import { copyFile, cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { scratchDir } from './fixtures.ts';

const root = join(import.meta.dirname, '..', '..', '..');

/** Checks `job.ts` beside the sources of a checkout, bundles it, and prints what came of both. */
const script = `
const { checkTypes } = await import('./src/cli/job-file/check-types.ts');
const { bundleModule } = await import('./src/cli/job-file/bundle-job.ts');
const types = await checkTypes(process.cwd() + '/job.ts', process.cwd() + '/cache').catch(({ message }) => message);
const [, map] = Buffer.from(await bundleModule(process.cwd() + '/job.ts', 'job')).toString().split('base64,');
const { sources } = JSON.parse(Buffer.from(map, 'base64').toString());
console.log(JSON.stringify({ types, own: sources.filter((name) => name.startsWith('job:')) }));
`;

it('takes a file that lies in a checkout for the user’s: its types, its places, and no settings of the checkout', async () => {
  const checkout = await scratchDir();
  await cp(join(root, 'src'), join(checkout, 'src'), { recursive: true });
  for (const name of ['package.json', 'tsconfig.json'])
    await copyFile(join(root, name), join(checkout, name));
  await symlink(join(root, 'node_modules'), join(checkout, 'node_modules'));
  const loaded = async (text: string): Promise<unknown> => {
    await writeFile(join(checkout, 'job.ts'), text);
    const args = ['--input-type=module', '-e', script];
    return JSON.parse((await promisify(execFile)(process.execPath, args, { cwd: checkout })).stdout);
  };
  const text = `import { job, read } from 'outrider';
const unused = 1;
export default job('x', read.text().map((line) => [line.length][0] + 1).write.ndjson());
`;
  expect(await loaded(text)).toEqual({ types: true, own: ['job:///job.ts'] });
  expect(await loaded(text.replace('length', 'lenght'))).toEqual({
    types: expect.stringMatching(/^job\.ts:3:57: TS2551: .*Did you mean 'length'\?$/),
    own: ['job:///job.ts'],
  });

  // The example that is copied first passes also by the settings of a strict project.
  const [, example = ''] =
    /```ts\n(import \{ job, read \} from 'outrider';\n[\s\S]*?)```/.exec(
      await readFile(join(root, 'README.md'), 'utf8'),
    ) ?? [];
  const strict = join(checkout, 'strict');
  await cp(join(checkout, 'tsconfig.json'), join(strict, 'tsconfig.json'));
  await writeFile(join(strict, 'job.ts'), example);
  const checked = `import { checkTypes } from './src/cli/job-file/check-types.ts';\nconsole.log(await checkTypes(process.cwd() + '/strict/job.ts', process.cwd() + '/cache'));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', checked], {
    cwd: checkout,
  });
  expect([example.length > 0, stdout]).toEqual([true, 'true\n']);
});
