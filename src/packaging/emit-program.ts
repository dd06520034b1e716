import { glob, mkdir, readFile, writeFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';

export interface EmitOptions {
  /** Directory of the sources; what is emitted keeps their places below it. */
  readonly root: string;
  readonly outDir: string;
  /** Modules that are run. */
  readonly programs: readonly string[];
  /** Modules that others import, and whose types they need. */
  readonly publicModules: readonly string[];
}

export interface Emitted {
  /** Names of the packages that the programs import. */
  readonly imported: ReadonlySet<string>;
}

/** A module that is started as a process, or loaded by its address: no import names it. */
const moduleAddress = /new URL\((['"])(\.{1,2}\/[^'"]+)\.ts\1, import\.meta\.url\)/g;
/** A package that is looked for where it may be missing. */
const resolved = /\brequire\.resolve\((['"])([^'"./][^'"]*)\1\)/g;

/**
 * Compiles programs, and all that they import or start, to JavaScript, with declarations for what others import.
 *
 * @throws Error with what the compiler says of sources that do not compile.
 */
export async function emitProgram({ root, outDir, programs, publicModules }: EmitOptions): Promise<Emitted> {
  const options = compilerOptions(root, outDir);
  const entries = await withStarted([...programs, ...publicModules], root);
  const program = ts.createProgram(entries, options);
  refuseErrors(ts.getPreEmitDiagnostics(program), root);
  const texts = new Map<string, string>();
  const { diagnostics } = program.emit(undefined, (path, text) => texts.set(resolve(path), text));
  refuseErrors(diagnostics, root);

  const declared = reachable(
    publicModules.map((path) => emittedPath(path, { root, outDir, extension: '.d.ts' })),
    texts,
  );
  const imported = new Set<string>();
  for (const [path, text] of texts) {
    if (path.endsWith('.d.ts') && !declared.has(path)) continue;
    for (const name of packagesOf(text)) imported.add(name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text.replace(moduleAddress, 'new URL($1$2.js$1, import.meta.url)'));
  }
  return { imported };
}

function compilerOptions(root: string, outDir: string): ts.CompilerOptions {
  const read = ts.readConfigFile(join(root, 'tsconfig.json'), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent(read.config, ts.sys, root);
  // Of the checkout's own incremental builds, which this is none of.
  delete options.tsBuildInfoFile;
  return {
    ...options,
    noEmit: false,
    incremental: false,
    rootDir: root,
    outDir,
    declaration: true,
    rewriteRelativeImportExtensions: true,
    noEmitOnError: true,
  };
}

/** Adds the functions, which are bundled anew for a deployment, and all modules that are started as processes. */
async function withStarted(entries: readonly string[], root: string): Promise<string[]> {
  const found = new Set(entries);
  for await (const path of glob(join(root, 'functions', '*', '*.ts'))) found.add(path);
  for await (const path of glob(join(root, 'src', '**', '*.ts'))) {
    if (path.endsWith('.d.ts')) found.add(path);
    const text = await readFile(path, 'utf8');
    for (const [, , stem = ''] of text.matchAll(moduleAddress))
      found.add(resolve(dirname(path), `${stem}.ts`));
  }
  return [...found];
}

/** Emitted modules at these paths, and those that they name, in any number of steps. */
function reachable(paths: readonly string[], texts: ReadonlyMap<string, string>): ReadonlySet<string> {
  const seen = new Set<string>();
  const waiting = [...paths];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const text = texts.get(path);
    if (text === undefined || seen.has(path)) continue;
    seen.add(path);
    for (const name of namedIn(text))
      if (name.startsWith('.')) waiting.push(resolve(dirname(path), name.replace(/\.(js|ts)$/, '.d.ts')));
  }
  return seen;
}

const namedIn = (text: string): string[] =>
  ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => fileName);

function packagesOf(text: string): string[] {
  const looked = [...text.matchAll(resolved)].map(([, , name = '']) => name);
  return [...namedIn(text), ...looked]
    .filter((name) => !name.startsWith('.') && !isBuiltin(name))
    .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
}

function emittedPath(
  path: string,
  { root, outDir, extension }: { readonly root: string; readonly outDir: string; readonly extension: string },
): string {
  return join(outDir, relative(root, path).replace(/\.ts$/, extension));
}

function refuseErrors(diagnostics: readonly ts.Diagnostic[], root: string): void {
  const errors = diagnostics.filter(({ category }) => category === ts.DiagnosticCategory.Error);
  if (errors.length === 0) return;
  const host: ts.FormatDiagnosticsHost = {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => root,
    getNewLine: () => '\n',
  };
  throw new Error(`the sources do not compile:\n${ts.formatDiagnostics(errors, host)}`);
}
