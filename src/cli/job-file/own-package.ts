import { createRequire } from 'node:module';
import { dirname, sep } from 'node:path';

const require = createRequire(import.meta.url);

/** The module behind one of the names under which this package is imported. */
export const moduleOfPackage = (name: string): string => require.resolve(name);

/** Of a checkout, or of the package as npm has installed it. */
export const packageRoot = dirname(moduleOfPackage('outrider/package.json'));

const isBelowRoot = (path: string): boolean => path.startsWith(packageRoot + sep);

/** Whether a file is one of this package's own, but for what its tests and users keep beside it. */
export const isOwnModule = (path: string): boolean =>
  isBelowRoot(path) && !/[\\/](test|node_modules)[\\/]/.test(path.slice(packageRoot.length));

/** The same, or of a package that npm has brought along. */
export const isOwnOrBrought = (path: string): boolean =>
  isBelowRoot(path) && !path.slice(packageRoot.length).startsWith(`${sep}test${sep}`);
