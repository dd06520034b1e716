import * as z from 'zod';

const versions = z.record(z.string(), z.string()).default({});

/** The checkout's manifest, as far as the package's is made from it. */
export const sourceManifestSchema = z.looseObject({
  name: z.string(),
  version: z.string(),
  description: z.string(),
  license: z.string(),
  keywords: z.array(z.string()).optional(),
  exports: z.record(z.string(), z.string()).default({}),
  dependencies: versions,
  optionalDependencies: versions,
  devDependencies: versions,
});

export type SourceManifest = z.output<typeof sourceManifestSchema>;

/** What the package's programs need: zstd in `node:zlib` came last, with 22.15. */
export const packedNode = '>=22.15.0';

/** Needed by those alone who deploy with settings of their own, and large. */
const forDeployment: ReadonlySet<string> = new Set(['aws-cdk-lib', 'cdk-nag', 'constructs']);

/** Binaries of Node, with which a checkout runs on a machine with an older one. */
const nodeBinary = /^node-(bin-)?(linux|darwin|win)-/;

export interface Packed {
  /** Directory of the programs, relative to the manifest. */
  readonly builtDir: string;
  /** The command, relative to that directory. */
  readonly commandPath: string;
  /** Names of the packages that the programs import. */
  readonly imported: ReadonlySet<string>;
}

/** Modules of the checkout that may be imported by the package's name, relative to the root, in order. */
export function publicModules({ exports }: SourceManifest): readonly string[] {
  return Object.values(exports)
    .filter((path) => path.endsWith('.ts'))
    .map((path) => path.replace(/^\.\//, ''));
}

/**
 * The manifest of the package: its command and modules are those that were built, and it asks for what these import.
 *
 * @throws Error where they import what the checkout's manifest does not ask for.
 */
export function packedManifest(
  source: SourceManifest,
  { builtDir, commandPath, imported }: Packed,
): Readonly<Record<string, unknown>> {
  const { name, version, description, license, keywords } = source;
  const known = { ...source.devDependencies, ...source.dependencies, ...source.optionalDependencies };
  // It may import itself by its name: what users write is bundled with it.
  const others = [...imported].filter((dependency) => dependency !== name);
  const asked = others.toSorted().map((dependency): [string, string] => {
    const range = known[dependency];
    if (range === undefined) throw new Error(`the programs import ${dependency}, which package.json lacks`);
    return [dependency, range];
  });
  const isOptional = ([dependency]: [string, string]): boolean =>
    source.optionalDependencies[dependency] !== undefined;
  const needed = asked.filter(([dependency]) => !forDeployment.has(dependency));
  const deploying = asked.filter(([dependency]) => forDeployment.has(dependency));
  return {
    name,
    version,
    description,
    license,
    ...(keywords === undefined ? {} : { keywords }),
    type: 'module',
    bin: { [name]: `${builtDir}/${commandPath}` },
    exports: packedExports(source, builtDir),
    engines: { node: packedNode },
    files: [builtDir],
    dependencies: Object.fromEntries(needed.filter((entry) => !isOptional(entry))),
    optionalDependencies: Object.fromEntries(
      Object.entries(source.optionalDependencies).filter(([dependency]) => !nodeBinary.test(dependency)),
    ),
    peerDependencies: Object.fromEntries(deploying),
    peerDependenciesMeta: Object.fromEntries(
      deploying.map(([dependency]) => [dependency, { optional: true }]),
    ),
  };
}

/** Each module as JavaScript with its types; other files, such as the manifest, as they are. */
function packedExports({ exports }: SourceManifest, builtDir: string): Readonly<Record<string, unknown>> {
  const entries = Object.entries(exports).map(([name, path]): [string, unknown] => {
    if (!path.endsWith('.ts')) return [name, path];
    const stem = path.replace(/^\.\//, `./${builtDir}/`).slice(0, -'.ts'.length);
    return [name, { types: `${stem}.d.ts`, default: `${stem}.js` }];
  });
  return { ...Object.fromEntries(entries), './package.json': './package.json' };
}
