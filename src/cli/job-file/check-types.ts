import { execFile } from 'node:child_process';
import { readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import * as z from 'zod';
import { badInput } from '../failures.ts';
import { makeTemporaryDirectory } from '../temporary-directory.ts';
import { KeptChecks, settingsFiles, userCache } from './kept-checks.ts';
import { isOwnOrBrought } from './own-package.ts';
import {
  type Basis,
  basisFor,
  noSettings,
  type OwnSettings,
  ownSettingsIn,
  projectFor,
  writePackageTypes,
} from './types-project.ts';

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
  const basis = basisFor(file);
  const settings = basis.own === undefined ? [] : await settingsFiles(basis.own);
  const fixed = projectFor(file, basis, { own: noSettings, packageTypes: '' });
  const kept = settings && new KeptChecks(cache, { ...compiler, file, basis, project: fixed });
  if ((await kept?.has()) === true) return true;
  const directory = await realpath(await makeTemporaryDirectory('outrider-types-'));
  try {
    const output = await check(file, basis, { program: compiler.program, directory });
    refuse(file, output, directory);
    const others = [dirname(manifest) + sep, directory + sep];
    const read = output
      .split(/\r?\n/)
      .filter((line) => isAbsolute(line) && !others.some((other) => line.startsWith(other)));
    // Without the file itself its list was not understood.
    if (settings !== undefined && read.includes(file)) await kept?.add([...read, ...settings]);
    return true;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** What the compiler says of a file, and the files that it has read. */
async function check(
  file: string,
  basis: Basis,
  { program, directory }: { readonly program: string; readonly directory: string },
): Promise<string> {
  const cwd = dirname(file);
  const own = basis.own === undefined ? noSettings : await ownSettings(basis.own, program);
  const packageTypes = join(directory, 'types');
  if (!basis.hasPackage) await writePackageTypes(packageTypes);
  const path = join(directory, 'tsconfig.json');
  await writeFile(path, JSON.stringify(projectFor(file, basis, { own, packageTypes })));
  return run(program, ['--project', path, '--pretty', 'false', '--listFiles'], cwd);
}

async function ownSettings(own: string, program: string): Promise<OwnSettings> {
  // What keeps it from being told, the check itself tells.
  const shown = await run(program, ['--project', own, '--showConfig'], dirname(own)).catch(() => '');
  return ownSettingsIn(shown, own);
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

const run = (program: string, args: readonly string[], cwd: string): Promise<string> =>
  new Promise((done, fail) => {
    const options = { cwd, maxBuffer: longestOutput };
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
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

/** @param directory - of what was written for the check. */
function refuse(file: string, output: string, directory: string): void {
  const problems = problemsIn(output).flatMap(({ line, why }) => {
    const [, path, row, column, what = ''] = problemLine.exec(line) ?? [];
    if (ofNode.test(what)) return [];
    const absolute = resolve(dirname(file), path ?? '');
    // A place in settings that are gone by then tells nobody anything.
    if (path === undefined || absolute.startsWith(directory + sep)) return [what + why];
    // Ours were checked when they were made, and by other settings.
    if (isOwnOrBrought(absolute)) return [];
    const name = relative(dirname(file), absolute);
    return [`${name}:${String(row)}:${String(column)}: ${what.replace(/^error /, '')}${why}`];
  });
  if (problems.length === 0) return;
  const told = problems.slice(0, mostProblems).join('; ');
  const more = problems.length - mostProblems;
  throw badInput(more > 0 ? `${told}; and ${String(more)} more` : told);
}
