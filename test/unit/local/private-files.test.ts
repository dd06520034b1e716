import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  createPrivateFile,
  makePrivateDirectory,
  readPrivateFile,
} from '../../../src/local/private-files.ts';
import { stackCredentials } from '../../../src/local/stack-credentials.ts';

const isRoot = process.geteuid?.() === 0;
const NOBODY = 65_534;

let dir: string;
let umaskBefore: number;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'outrider-private-'));
  umaskBefore = process.umask(0);
});

afterEach(async () => {
  process.umask(umaskBefore);
  await rm(dir, { recursive: true, force: true });
});

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

describe('makePrivateDirectory', () => {
  it('lets nobody else in, whatever the umask', async () => {
    await makePrivateDirectory(join(dir, 'a', 'b'));
    expect([await modeOf(join(dir, 'a')), await modeOf(join(dir, 'a', 'b'))]).toEqual([0o700, 0o700]);
  });

  it('closes one that is open to others', async () => {
    await mkdir(join(dir, 'open'));
    await chmod(join(dir, 'open'), 0o777);
    await makePrivateDirectory(join(dir, 'open'));
    expect(await modeOf(join(dir, 'open'))).toBe(0o700);
  });

  it('refuses a link, and leaves what it stands for as it is', async () => {
    await mkdir(join(dir, 'real'));
    await chmod(join(dir, 'real'), 0o755);
    await symlink('real', join(dir, 'link'));
    await expect(makePrivateDirectory(join(dir, 'link'))).rejects.toThrow('is a symbolic link');
    expect(await modeOf(join(dir, 'real'))).toBe(0o755);
  });

  it.runIf(isRoot)("refuses another user's", async () => {
    await mkdir(join(dir, 'theirs'));
    await chown(join(dir, 'theirs'), NOBODY, NOBODY);
    await expect(makePrivateDirectory(join(dir, 'theirs'))).rejects.toThrow('belongs to another user');
  });
});

describe('createPrivateFile', () => {
  it('lets nobody else read, and leaves no other name of the file', async () => {
    await createPrivateFile(join(dir, 'secret'), 'x');
    expect(await modeOf(join(dir, 'secret'))).toBe(0o600);
    expect(await readPrivateFile(join(dir, 'secret'))).toBe('x');
    expect(await readdir(dir)).toEqual(['secret']);
  });

  it('keeps what was there first, and writes through no link', async () => {
    await writeFile(join(dir, 'victim'), 'v');
    await symlink('victim', join(dir, 'secret'));
    expect(await createPrivateFile(join(dir, 'secret'), 'x')).toBe('v');
    expect(await readFile(join(dir, 'victim'), 'utf8')).toBe('v');
    await expect(readPrivateFile(join(dir, 'secret'))).rejects.toThrow('is a symbolic link');
  });
});

describe('stackCredentials', () => {
  it('gives a directory keys once, also when two ask at once', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => stackCredentials(dir)));
    expect(new Set(all.map(({ secretAccessKey }) => secretAccessKey)).size).toBe(1);
    expect(await stackCredentials(dir)).toEqual(all[0]);
    expect(await modeOf(join(dir, 'credentials.json'))).toBe(0o600);
  });

  it('gives no two directories the same', async () => {
    await Promise.all(['a', 'b'].map((name) => mkdir(join(dir, name))));
    const [a, b] = await Promise.all(['a', 'b'].map((name) => stackCredentials(join(dir, name))));
    expect(a?.accessKeyId).not.toBe(b?.accessKeyId);
    expect(a?.secretAccessKey).not.toBe(b?.secretAccessKey);
  });

  it.each([
    ['open to others', 0o644, undefined],
    ['cut short', 0o600, '{"accessKeyId":"AKIA'],
    ['chosen by someone', 0o600, '{"accessKeyId":"outrider","secretAccessKey":"outrider-local-secret"}'],
  ])('gives up keys in a file that is %s', async (_what, mode, text) => {
    const first = await stackCredentials(dir);
    const path = join(dir, 'credentials.json');
    if (text !== undefined) await writeFile(path, text);
    await chmod(path, mode);
    const second = await stackCredentials(dir);
    expect(second.secretAccessKey).not.toBe(first.secretAccessKey);
    expect(second.secretAccessKey).toMatch(/^[A-Za-z0-9+/]{40}$/);
    expect(await modeOf(path)).toBe(0o600);
  });
});
