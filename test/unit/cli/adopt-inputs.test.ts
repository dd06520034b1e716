import { describe, expect, it } from 'vitest';
import { adoptStaged, planStaging } from '../../../src/cli/staging.ts';
import type { ObjectFiles } from '../../../src/local/s3/object-files.ts';

const never = new AbortController().signal;
const set = planStaging('data', [
  { path: '/in/b c.txt', sizeBytes: 3 },
  { path: '/in/d.gz', sizeBytes: 5 },
]);

/** Takes files in as told. */
const filesThat = (adopt: ObjectFiles['adopt']): ObjectFiles => ({
  adopt,
  bring: () => Promise.reject(new Error('nothing is brought here')),
  giveBack: () => Promise.reject(new Error('nothing is brought here')),
});

const systemError = (code: string): Error => Object.assign(new Error(`${code}: no`), { code });

describe('inputs of a stack in this process', () => {
  it('are taken in by their paths, each under its key', async () => {
    const taken: string[] = [];
    let doneBytes = 0;
    const files = filesThat((object, path, sizeBytes) => {
      taken.push(`${object.bucket}/${object.key.slice(set.prefix.length)} ${path} ${String(sizeBytes)}`);
      return Promise.resolve('adopted');
    });
    await adoptStaged(files, set, never, (more) => {
      doneBytes += more;
    });
    expect(taken.sort()).toEqual(['data/0-b_c.txt /in/b c.txt 3', 'data/1-d.gz /in/d.gz 5']);
    expect(doneBytes).toBe(8);
  });

  it.each([
    [
      'changed',
      '/in/b c.txt changed while it was read: name a file that nobody writes to, such as a copy of it',
    ],
    ['EACCES', '/in/b c.txt cannot be read: permission denied'],
    ['ENOENT', '/in/b c.txt cannot be read: there is no such file or directory'],
    [
      'ENOSPC',
      'there is no room for a copy of /in/b c.txt where the stack keeps its data: make some, or name another place with --state-dir',
    ],
  ])('that cannot be taken in for %s end the command with one line', async (code, message) => {
    const files = filesThat((_, path) =>
      path !== '/in/b c.txt'
        ? Promise.resolve('adopted')
        : code === 'changed'
          ? Promise.resolve('changed')
          : Promise.reject(systemError(code)),
    );
    await expect(adoptStaged(files, set, never)).rejects.toMatchObject({ name: 'InvalidInput', message });
  });

  it('are left alone once the command is interrupted', async () => {
    const controller = new AbortController();
    const taken: string[] = [];
    const many = planStaging(
      'data',
      Array.from({ length: 20 }, (_, n) => ({ path: `/in/${String(n)}`, sizeBytes: 1 })),
    );
    const files = filesThat((_, path) => {
      taken.push(path);
      controller.abort(new Error('interrupted'));
      return Promise.resolve('adopted');
    });
    await expect(adoptStaged(files, many, controller.signal)).rejects.toThrow('interrupted');
    expect(taken).toEqual(['/in/0']);
  });
});
