import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import * as z from 'zod';
import { badInput } from '../failures.ts';
import { moduleOfPackage } from './bundle-job.ts';
import { KeptChecks, settingsFiles, userCache } from './kept-checks.ts';

const packageRoot = dirname(moduleOfPackage('outrider/package.json'));
const mostProblems = 5;
const longestOutput = 16 * 1024 * 1024;
/** Names of Node's that are not known where a project has no types of Node. */
const ofNode = /^error TS(2307|2580|2591|2688): .*('node(:|')|@types\/node|'process'|'Buffer'|'require')/;

/**
 * Checks the types of a user's file, with the TypeScript of its own project, or else with that beside this package, by the
 * project's own settings where it has some. Answers false where there is no TypeScript: then nothing was checked. What has
 * passed is not checked again until a file of it has changed.
 *
 * @param file - absolute path.
 * @param cache - directory that remembers what has passed.
 * @throws InvalidInputError with file, line and what is wrong.
 */
export async function checkTypes(file: string, cache = userCache()): Promise<boolean> {
  const manifest = findCompiler(dirname(file));
  if (manifest === undefined) return false;
  const compiler = await compilerOf(manifest);
  const project = projectFor(file);
  const settings = project.extends === undefined ? [] : await settingsFiles(project.extends);
  const kept = settings && new KeptChecks(cache, { ...compiler, file, project });
  if ((await kept?.has()) === true) return true;
  const directory = await mkdtemp(join(tmpdir(), 'outrider-types-'));
  try {
    const path = join(directory, 'tsconfig.json');
    await writeFile(path, JSON.stringify(project));
    const output = await run(compiler.program, path, dirname(file));
    refuse(file, output);
    const libraries = dirname(manifest) + sep;
    const read = output.split(/\r?\n/).filter((line) => isAbsolute(line) && !line.startsWith(libraries));
    // Without the file itself its list was not understood.
    if (settings !== undefined && read.includes(file)) await kept?.add([...read, ...settings]);
    return true;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** The manifest of TypeScript. */
function findCompiler(directory: string): string | undefined {
  for (const from of [join(directory, 'job.ts'), import.meta.url]) {
    try {
      return createRequire(from).resolve('typescript/package.json');
    } catch {
      // Not there: the next place.
    }
  }
  return undefined;
}

async function compilerOf(manifest: string): Promise<{ readonly program: string; readonly version: string }> {
  const { bin, version } = z
    .object({ bin: z.object({ tsc: z.string() }), version: z.string() })
    .parse(JSON.parse(await readFile(manifest, 'utf8')));
  return { program: resolve(dirname(manifest), bin.tsc), version };
}

/** Settings for one file; `extends` is where its own project has some. */
interface Project {
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

function projectFor(file: string): Project {
  const above = directoriesAbove(file);
  const own = above.map((directory) => join(directory, 'tsconfig.json')).find((path) => existsSync(path));
  const typeRoots = above.map((directory) => join(directory, 'node_modules', '@types')).filter(existsSync);
  const usual = {
    strict: true,
    noUncheckedIndexedAccess: false,
    target: 'es2024',
    module: 'nodenext',
    ...(typeRoots.some((root) => existsSync(join(root, 'node'))) ? { types: ['node'] } : { types: [] }),
  };
  return {
    ...(own === undefined ? {} : { extends: own }),
    files: [file],
    include: [],
    compilerOptions: {
      ...(own === undefined ? usual : {}),
      ...(hasPackage(file) ? {} : { paths: ownPaths() }),
      typeRoots,
      noEmit: true,
      composite: false,
      incremental: false,
      tsBuildInfoFile: null,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
    },
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

/** For a file whose project does not have this package: it was installed for all, or is run from a checkout. */
const ownPaths = (): Record<string, readonly string[]> =>
  Object.fromEntries(
    ['outrider', 'outrider/testing'].map((name) => {
      const path = moduleOfPackage(name);
      return [name, [path.replace(/\.js$/, '.d.ts')]];
    }),
  );

const run = (program: string, project: string, cwd: string): Promise<string> =>
  new Promise((done, fail) => {
    const args = [program, '--project', project, '--pretty', 'false', '--listFiles'];
    execFile(process.execPath, args, { cwd, maxBuffer: longestOutput }, (error, stdout, stderr) => {
      // It ends with 1 or 2 where it has found something, and has told it.
      if (error !== null && typeof error.code !== 'number')
        fail(badInput(`TypeScript cannot be started: ${error.message}`, error));
      else done(stdout + stderr);
    });
  });

/** `file(12,5): error TS2322: …`, or without a place. */
const problemLine = /^(?:(.+?)\((\d+),(\d+)\): )?(error TS\d+: .*)$/;

/** What TypeScript tells of one problem: the line that says where, and the last of those below it, which says why. */
function problemsIn(output: string): readonly { readonly line: string; readonly why: string }[] {
  const problems: { line: string; why: string }[] = [];
  for (const text of output.split(/\r?\n/)) {
    const last = problems.at(-1);
    if (!text.startsWith(' ')) problems.push({ line: text, why: '' });
    else if (last !== undefined) last.why = ` ${text.trim()}`;
  }
  return problems.filter(({ line }) => problemLine.test(line));
}

function refuse(file: string, output: string): void {
  const problems = problemsIn(output).flatMap(({ line, why }) => {
    const [, path, row, column, what = ''] = problemLine.exec(line) ?? [];
    if (ofNode.test(what)) return [];
    if (path === undefined) return [what + why];
    const absolute = resolve(dirname(file), path);
    // Ours were checked when they were made, and by other settings.
    if (
      absolute.startsWith(packageRoot + sep) &&
      !absolute.slice(packageRoot.length).startsWith(`${sep}test${sep}`)
    )
      return [];
    const name = relative(dirname(file), absolute);
    return [`${name}:${String(row)}:${String(column)}: ${what.replace(/^error /, '')}${why}`];
  });
  if (problems.length === 0) return;
  const told = problems.slice(0, mostProblems).join('; ');
  const more = problems.length - mostProblems;
  throw badInput(more > 0 ? `${told}; and ${String(more)} more` : told);
}
