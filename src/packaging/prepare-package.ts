import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { synthesize } from '../local/provision/synthesize.ts';
import { emitProgram } from './emit-program.ts';
import {
  packedManifest,
  publicModules,
  sourceManifestSchema,
  type SourceManifest,
} from './packed-manifest.ts';

/** Where the package's programs are built, below the root of the checkout, with the checkout's own layout. */
export const builtDir = 'dist';

const manifestName = 'package.json';
const commandPath = join('src', 'cli', 'outrider.js');
/** Besides the command: the CDK's app, for those who deploy with settings of their own. */
const programs = [join('src', 'cli', 'main.ts'), join('cdk', 'app.ts')];
const copied = [commandPath, 'cdk.json'];

/**
 * Builds what the package holds: all programs as JavaScript, since Node strips no types below `node_modules`, the types
 * of what may be imported, and the synthesized templates with the functions' bundles; then puts the package's own
 * manifest in place of the checkout's, which `restoreManifest` brings back.
 *
 * @param root - of the checkout.
 * @throws Error where the sources do not compile, a program imports a package that nothing asks for, or the app cannot
 * be synthesized; the manifest is as it was then.
 */
export async function preparePackage(root: string): Promise<void> {
  await restoreManifest(root);
  const source = await readManifest(root);
  const outDir = join(root, builtDir);
  await rm(outDir, { recursive: true, force: true });
  const { imported } = await emitProgram({
    root,
    outDir,
    programs: programs.map((path) => join(root, path)),
    publicModules: publicModules(source).map((path) => join(root, path)),
  });
  for (const path of copied) {
    await mkdir(dirname(join(outDir, path)), { recursive: true });
    await copyFile(join(root, path), join(outDir, path));
  }
  await addAssembly(outDir);
  const manifest = packedManifest(source, { builtDir, commandPath, imported });
  const { name, version } = source;
  const { dependencies } = manifest;
  // The programs look for versions, their own among them, in the manifest above them, in a checkout and here.
  await writeManifest(join(outDir, manifestName), { name, version, type: 'module', dependencies });
  await mkdir(dirname(backupOf(root)), { recursive: true });
  await copyFile(join(root, manifestName), backupOf(root));
  await writeManifest(join(root, manifestName), manifest);
}

/** Brings back the manifest of the checkout; does nothing where it is in its place. */
export async function restoreManifest(root: string): Promise<void> {
  try {
    await rename(backupOf(root), join(root, manifestName));
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')) throw cause;
  }
}

/** Where the checkout's manifest waits: the package's list of files does not reach there. */
const backupOf = (root: string): string => join(root, '.outrider', 'checkout-package.json');

/** Templates, the functions' bundles and the image's directory; nothing that only the CDK's own command reads. */
async function addAssembly(outDir: string): Promise<void> {
  const assembly = join(outDir, 'cdk.out');
  await synthesize({ outDir: assembly });
  for (const name of ['.cache', 'tree.json', 'validation-report.json'])
    await rm(join(assembly, name), { recursive: true, force: true });
}

async function readManifest(root: string): Promise<SourceManifest> {
  return sourceManifestSchema.parse(JSON.parse(await readFile(join(root, manifestName), 'utf8')));
}

async function writeManifest(path: string, manifest: Readonly<Record<string, unknown>>): Promise<void> {
  await writeFile(path, `${JSON.stringify(manifest, undefined, 2)}\n`);
}
