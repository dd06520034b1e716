import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, parse, resolve } from 'node:path';
import * as z from 'zod';
import { moduleOfPackage, packageRoot } from './own-package.ts';

/** Where a file's settings come from, as far as it is known without asking a compiler. */
export interface Basis {
  /** The settings of the file's own project; absent where it has none. */
  readonly own?: string;
  /** Whether the file's project has this package. Else it was installed for all, or is run from a checkout. */
  readonly hasPackage: boolean;
  /** Directories of types above the file, in which a compiler looks where nothing else is said. */
  readonly typeRoots: readonly string[];
}

/** What the compiler tells of the settings of a file's own project; all paths are absolute. */
export interface OwnSettings {
  /** Absent where the project leaves them as they are. */
  readonly typeRoots?: readonly string[];
  /** Files that declare what no import names, such as modules without types. */
  readonly declarations: readonly string[];
}

/** Of a file without a project, or of a project that tells nothing. */
export const noSettings: OwnSettings = { declarations: [] };

/** A tsconfig.json for one file. */
export interface Project {
  readonly extends?: string;
  readonly files: readonly string[];
  readonly include: readonly string[];
  readonly compilerOptions: object;
}

/** Directories from that of the file up to the root. */
function directoriesAbove(file: string): readonly string[] {
  const directories = [dirname(file)];
  for (let at = dirname(file); dirname(at) !== at; at = dirname(at)) directories.push(dirname(at));
  return directories;
}

export function basisFor(file: string): Basis {
  const above = directoriesAbove(file);
  const own = above.map((directory) => join(directory, 'tsconfig.json')).find((path) => existsSync(path));
  const typeRoots = above.map((directory) => join(directory, 'node_modules', '@types')).filter(existsSync);
  return {
    // By that of a checkout its own sources are checked, and no user's file.
    ...(own === undefined || own === join(packageRoot, 'tsconfig.json') ? {} : { own }),
    hasPackage: hasPackage(file),
    typeRoots,
  };
}

function hasPackage(file: string): boolean {
  try {
    createRequire(file).resolve('outrider');
    return true;
  } catch {
    return false;
  }
}

const shownSchema = z.object({
  compilerOptions: z.object({ typeRoots: z.array(z.string()).optional() }).default({}),
  files: z.array(z.string()).default([]),
});

/**
 * Reads what `tsc --showConfig` prints of a project's settings: nothing is known of them where it prints something else, as
 * where no file of the project is there yet.
 *
 * @param own - path of the settings.
 */
export function ownSettingsIn(shown: string, own: string): OwnSettings {
  let document: unknown;
  try {
    document = JSON.parse(shown);
  } catch {
    return noSettings;
  }
  const parsed = shownSchema.safeParse(document);
  if (!parsed.success) return noSettings;
  const { compilerOptions, files } = parsed.data;
  const absolute = (path: string): string => resolve(dirname(own), path);
  return {
    ...(compilerOptions.typeRoots === undefined
      ? {}
      : { typeRoots: compilerOptions.typeRoots.map(absolute) }),
    declarations: files.filter((path) => /\.d\.[cm]?ts$/.test(path)).map(absolute),
  };
}

/** For a file without a project: as the bundle is made, and what each version of TypeScript knows. */
const usual = {
  strict: true,
  noUncheckedIndexedAccess: false,
  target: 'esnext',
  module: 'esnext',
  moduleResolution: 'bundler',
};

/** @param packageTypes - directory that `writePackageTypes` has filled. */
export function projectFor(
  file: string,
  basis: Basis,
  { own, packageTypes }: { readonly own: OwnSettings; readonly packageTypes: string },
): Project {
  const hasNode = basis.typeRoots.some((root) => existsSync(join(root, 'node')));
  return {
    ...(basis.own === undefined ? {} : { extends: basis.own }),
    files: [file, ...own.declarations.filter((path) => path !== file)],
    include: [],
    compilerOptions: {
      ...(basis.own === undefined ? { ...usual, types: hasNode ? ['node'] : [] } : {}),
      typeRoots: [...(own.typeRoots ?? basis.typeRoots), ...(basis.hasPackage ? [] : [packageTypes])],
      noEmit: true,
      // What a project says of its output means nothing here, and may contradict the above.
      rootDir: parse(file).root,
      emitDeclarationOnly: false,
      declarationMap: false,
      composite: false,
      incremental: false,
      tsBuildInfoFile: null,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
    },
  };
}

/**
 * Fills a directory of types in which compilers find this package's modules by their names. `paths` would do the same, but
 * for those that a project has itself: settings that extend others can only replace them.
 */
export async function writePackageTypes(directory: string): Promise<void> {
  for (const name of ['outrider', 'outrider/testing']) {
    const path = join(directory, ...name.split('/'));
    await mkdir(path, { recursive: true });
    // Modules of ECMAScript look for nothing that is not named.
    await writeFile(join(path, 'package.json'), JSON.stringify({ types: './index.d.ts' }));
    await writeFile(join(path, 'index.d.ts'), `export * from ${JSON.stringify(moduleOfPackage(name))};\n`);
  }
}
