import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));

it('of the process of user code holds no package: each attempt starts one, and schemas alone would take most of its start', async () => {
  const { metafile } = await build({
    ...{ absWorkingDir: root, entryPoints: ['functions/worker/user-code-host.ts'], outfile: 'host.mjs' },
    ...{ bundle: true, write: false, metafile: true, platform: 'node', format: 'esm', target: 'node24' },
  });
  const [output] = Object.values(metafile.outputs);
  const kept = Object.entries(output?.inputs ?? {}).flatMap(([path, { bytesInOutput }]) =>
    bytesInOutput > 0 ? [path] : [],
  );
  expect(kept).toContain('src/worker/user-code/host.ts');
  expect(kept.filter((path) => !path.startsWith('src/') && !path.startsWith('functions/'))).toEqual([]);
});
