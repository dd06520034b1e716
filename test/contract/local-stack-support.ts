import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import { synthesize } from '../../src/local/provision/synthesize.ts';

export const assemblyDir = fileURLToPath(new URL('../../cdk.out', import.meta.url));

/** A directory of its own, and what removes it. */
export async function scratchDirectory(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'outrider-stack-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

const templateSchema = z.looseObject({
  Resources: z.record(
    z.string(),
    z.looseObject({ Type: z.string(), Properties: z.record(z.string(), z.unknown()) }),
  ),
  Outputs: z.record(z.string(), z.unknown()),
});
export type EditableTemplate = z.output<typeof templateSchema>;

/** Logical id and properties of the one resource of a type whose id begins with `prefix`. */
export function resourceIn(
  template: EditableTemplate,
  type: string,
  prefix = '',
): [string, Record<string, unknown>] {
  const found = Object.entries(template.Resources).find(
    ([id, { Type }]) => Type === type && id.startsWith(prefix),
  );
  if (found === undefined) throw new Error(`no ${type} begins with "${prefix}"`);
  return [found[0], found[1].Properties];
}

/** A copy of the assembly in `into`, with one stack's template edited; assets are links. */
export async function editedAssembly(
  into: string,
  stack: string,
  edit: (template: EditableTemplate) => void,
): Promise<void> {
  await synthesize({ outDir: assemblyDir });
  for (const name of await readdir(assemblyDir)) {
    const from = join(assemblyDir, name);
    if (name.startsWith('asset.')) await symlink(from, join(into, name));
    else if (name.endsWith('.json')) await cp(from, join(into, name));
  }
  const path = join(into, `${stack}.template.json`);
  const template = templateSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  edit(template);
  await writeFile(path, JSON.stringify(template));
}
