import { createRequire } from 'node:module';
import { dirname, sep } from 'node:path';

const require = createRequire(import.meta.url);

/** The module behind one of the names under which this package is imported. */
export const moduleOfPackage = (name: string): string => require.resolve(name);

/** Of a checkout, or of the package as npm has installed it. */
export const packageRoot = dirname(moduleOfPackage('outrider/package.json'));

/** All that this package runs lies below these, in a checkout and where it was installed. */
const ownDirectories = ['src', 'cdk', 'functions', 'dist'].map((name) => packageRoot + sep + name + sep);

/** Whether a file is one of this package's own: what users keep beside them in a checkout is theirs. */
export const isOwnModule = (path: string): boolean =>
  ownDirectories.some((directory) => path.startsWith(directory));

/** The same, or of a package that npm has brought along. */
export const isOwnOrBrought = (path: string): boolean =>
  isOwnModule(path) || path.startsWith(`${packageRoot}${sep}node_modules${sep}`);
