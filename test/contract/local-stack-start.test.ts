import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { readAssembly } from '../../src/local/provision/assembly.ts';
import { synthesize } from '../../src/local/provision/synthesize.ts';

const rootDir = fileURLToPath(new URL('../..', import.meta.url));

/** Runs a module in a process of its own; answers what it prints. */
async function print(script: string, args: readonly string[]): Promise<unknown> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', script, ...args],
    { cwd: rootDir, env: { PATH: process.env['PATH'] } },
  );
  return JSON.parse(stdout);
}

/** Loads modules, whatever they say of settings that are missing, and tells what of Node that has loaded. */
const loadAll = `
  let loaded = 0;
  for (const path of process.argv.slice(1)) {
    await import(path).then(() => loaded++, (error) => { if (/setting/.test(error.message)) loaded++; else throw error; });
  }
  console.log(JSON.stringify({ loaded, fetch: process.moduleLoadList.filter((name) => /undici/.test(name)) }));
  process.exit(0);`;

it('loads nothing of fetch in the stack, its environments and its functions, which would take 40 ms of each start', async () => {
  const outDir = join(rootDir, 'cdk.out');
  await synthesize({ outDir });
  const bundles = [...(await readAssembly(outDir)).files.values()]
    .map((directory) => join(directory, 'index.mjs'))
    .filter((path) => existsSync(path));
  expect(bundles.length).toBeGreaterThanOrEqual(8);
  expect(await print(loadAll, bundles)).toEqual({ loaded: bundles.length, fetch: [] });
  const own = ['src/cli/run-command.ts', 'src/local/stack.ts'].map((path) => join(rootDir, path));
  expect(await print(loadAll, own)).toEqual({ loaded: 2, fetch: [] });
});

it('loads no client of AWS, simulator or experiment, nor what runs state machines, before they are needed', async () => {
  const script = `
    import { registerHooks } from 'node:module';
    const found = [];
    const late = /@aws-sdk\\/|aws-local-stepfunctions|asl-validator|src\\/(sim|experiments|traces)\\//;
    registerHooks({ load: (url, context, next) => { if (late.test(url)) found.push(url); return next(url, context); } });
    for (const path of process.argv.slice(1)) await import(path);
    console.log(JSON.stringify(found));`;
  const paths = ['src/cli/main.ts', 'src/cli/run-command.ts', 'src/local/stack.ts'];
  expect(
    await print(
      script,
      paths.map((path) => join(rootDir, path)),
    ),
  ).toEqual([]);
});

it('keeps what environments compile where this process keeps it, and there alone', async () => {
  const cache = await mkdtemp(join(tmpdir(), 'outrider-compiled-'));
  try {
    const script = `
      import { enableCompileCache } from 'node:module';
      const { buildEnvironmentVariables } = await import(process.argv[1]);
      const fn = { name: 'f', handler: 'index.handler', memoryMb: 128, codeDir: '/', environment: {} };
      const server = { credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, extraEnvironment: {}, region: 'r' };
      const seen = () => buildEnvironmentVariables({ fn, server }).NODE_COMPILE_CACHE ?? null;
      const before = seen();
      enableCompileCache(process.argv[2]);
      console.log(JSON.stringify([before, seen()]));`;
    const path = join(rootDir, 'src/local/lambda/environment-variables.ts');
    expect(await print(script, [path, cache])).toEqual([null, cache]);
    expect((await readdir(cache)).length).toBe(1);
  } finally {
    await rm(cache, { recursive: true, force: true });
  }
});
