import { createRequire } from 'node:module';
import { delimiter, sep } from 'node:path';

/**
 * Where functions find native modules, as AWS's NODE_PATH leads to those of a function's layers: which are for another kind of machine than
 * this one, so that those that npm has installed here stand in for them. Empty where there are none.
 */
export function nativeModulesPath(): string {
  const require = createRequire(import.meta.url);
  const found = ['@duckdb/node-api'].flatMap((name) => {
    try {
      const path = require.resolve(name);
      return [path.slice(0, path.lastIndexOf(`${sep}node_modules${sep}`) + `${sep}node_modules`.length)];
    } catch {
      return [];
    }
  });
  return [...new Set(found)].join(delimiter);
}
