import { basename, dirname, relative, resolve, sep } from 'node:path';
import type { BuildFailure, BuildResult, Message, OutputFile, Plugin } from 'esbuild';
import * as z from 'zod';
import { requireBanner } from '../../lib/require-banner.ts';
import { userFileScheme } from '../../worker/user-code/user-frames.ts';
import { badInput } from '../failures.ts';
import { isOwnModule, moduleOfPackage } from './own-package.ts';

/** What a file of the user's exports as its default. */
export type ModuleKind = 'job' | 'operator';

/** The module that becomes the bundle: what a worker runs as its default export, and what the command asks for. */
const entryOf = (kind: ModuleKind, file: string): string =>
  kind === 'job'
    ? [
        `import * as user from ${JSON.stringify(`./${basename(file)}`)};`,
        "import { describeJob, operatorOf } from 'outrider/runtime';",
        'export default operatorOf(user.default);',
        'export const describe = () => describeJob(user.default);',
      ].join('\n')
    : `export { default } from ${JSON.stringify(`./${basename(file)}`)};`;

/** One version of this package in a bundle, wherever the user's file lies. */
const ownModules: Plugin = {
  name: 'outrider',
  setup(build) {
    build.onResolve({ filter: /^outrider(\/|$)/ }, ({ path }) => {
      try {
        return { path: moduleOfPackage(path) };
      } catch {
        return { errors: [{ text: `outrider has no module "${path}"` }] };
      }
    });
  },
};

/**
 * A file of the user's with all that it imports as one ES module, with a source map inside that names his files relative to
 * the directory of this one. The same files give the same bytes.
 *
 * @param file - absolute path.
 * @throws InvalidInputError with file and line where it does not parse or imports what is not there.
 */
export async function bundleModule(file: string, kind: ModuleKind): Promise<Uint8Array> {
  const directory = dirname(file);
  const { build } = await import('esbuild');
  let result: BuildResult<{ write: false }>;
  try {
    result = await build({
      stdin: { contents: entryOf(kind, file), resolveDir: directory, sourcefile: 'outrider-entry.js' },
      absWorkingDir: directory,
      outfile: 'bundle.mjs',
      write: false,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      mainFields: ['module', 'main'],
      banner: { js: requireBanner },
      sourcemap: 'external',
      sourcesContent: false,
      keepNames: true,
      legalComments: 'none',
      logLevel: 'silent',
      plugins: [ownModules],
    });
  } catch (error) {
    throw badInput(`${basename(file)} cannot be bundled: ${problemsOf(error)}`, error);
  }
  const text = (isWanted: (file: OutputFile) => boolean): string =>
    result.outputFiles.find(isWanted)?.text ?? '';
  const map = mapFor(
    text(({ path }) => path.endsWith('.map')),
    directory,
  );
  const code = text(({ path }) => path.endsWith('.mjs'));
  return Buffer.from(`${code}//# sourceMappingURL=data:application/json;base64,${map.toString('base64')}\n`);
}

const mostProblems = 5;

function problemsOf(error: unknown): string {
  const errors = (error as Partial<BuildFailure>).errors;
  if (!Array.isArray(errors)) return error instanceof Error ? error.message : String(error);
  const told = (errors as readonly Message[]).slice(0, mostProblems).map(({ text, location }) => {
    if (location === null || location.file === 'outrider-entry.js') return text;
    return `${location.file}:${String(location.line)}:${String(location.column + 1)}: ${text}`;
  });
  return told.join('; ');
}

const mapSchema = z.looseObject({ sources: z.array(z.string()) });

/** Names the user's files as messages are to name them, and ours so that they are seen to be ours. */
function mapFor(text: string, directory: string): Buffer {
  const map = mapSchema.parse(JSON.parse(text));
  const sources = map.sources.map((source) => {
    const path = resolve(directory, source);
    if (source === 'outrider-entry.js' || isOwnModule(path)) return `outrider:///${basename(path)}`;
    const name = isBelow(path, directory) ? relative(directory, path).split(sep).join('/') : path;
    return userFileScheme + name;
  });
  return Buffer.from(JSON.stringify({ ...map, sources }));
}

const isBelow = (path: string, directory: string): boolean => path.startsWith(`${directory}${sep}`);
