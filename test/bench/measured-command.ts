import { execFileSync } from 'node:child_process';
import { cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('../../', import.meta.url));
/** What `npm pack` reads of a checkout. */
const packedSources = [
  ...['LICENSE', 'README.md', 'cdk', 'cdk.json', 'functions', 'package-lock.json', 'package.json', 'src'],
  'tsconfig.json',
];
const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline', '--loglevel=error'];
/** Of its command below the directory that it is installed in. */
const installedCommand = join('node_modules', 'outrider', 'dist', 'src', 'cli', 'outrider.js');

/** The command of this checkout, run from its sources, under this Node. */
export const commandOfSources = (): readonly string[] => [
  process.execPath,
  join(checkout, 'src', 'cli', 'outrider.js'),
];

/**
 * The command as users have it, under this Node: packed from a copy of this checkout, since packing writes into it, and
 * installed into `place` by npm.
 *
 * @throws what npm fails with, where no registry can be reached among others.
 */
export async function commandOfPackage(place: string): Promise<readonly string[]> {
  const [copy, installed] = [join(place, 'checkout'), join(place, 'installed')];
  for (const path of [copy, installed]) await mkdir(path, { recursive: true });
  for (const name of packedSources) await cp(join(checkout, name), join(copy, name), { recursive: true });
  await symlink(join(checkout, 'node_modules'), join(copy, 'node_modules'));
  npm(['pack', '--pack-destination', place], copy);
  const tarball = (await readdir(place)).find((name) => name.endsWith('.tgz')) ?? 'no tarball';
  await writeFile(join(installed, 'package.json'), JSON.stringify({ private: true }));
  npm(['install', join(place, tarball)], installed);
  return [process.execPath, join(installed, installedCommand)];
}

function npm(args: readonly string[], cwd: string): void {
  // Without what an npm that runs this hands down to its scripts.
  const env = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|config_local)/.test(name),
  );
  execFileSync('npm', [...args, ...quiet], {
    cwd,
    env: Object.fromEntries(env),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
