import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { preparePackage, restoreManifest } from './prepare-package.ts';

/**
 * What npm calls around `npm pack` and `npm publish`: `prepare` builds what the package holds, `restore` undoes what of it
 * would be in the way of a checkout.
 */
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const [step] = process.argv.slice(2);
if (step === 'prepare') await preparePackage(root);
else if (step === 'restore') await restoreManifest(root);
else {
  process.stderr.write('usage: node src/packaging/main.ts prepare|restore\n');
  process.exitCode = 2;
}
