import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import { uriOf } from '../../contracts/keys.ts';
import { carriedKey } from '../../contracts/task-files.ts';
import { type Carried, carriedOf } from '../carried.ts';
import { badInput, systemReason } from '../failures.ts';
import { bundleModule } from './bundle-job.ts';

/** Operators of the user's own that a spec names by their files, by number of the stage. */
export type SpecCode = ReadonlyMap<number, Carried>;

/**
 * Bundles the files that stages of a spec name as `"code": "./operator.ts"`, relative to its directory.
 *
 * @throws InvalidInputError where one cannot be read or does not parse.
 */
export async function bundleSpecCode(document: unknown, directory: string): Promise<SpecCode> {
  const bundles = new Map<number, Carried>();
  for (const [index, stage] of stagesOf(document).entries()) {
    const { code } = stage;
    if (typeof code !== 'string' || code.startsWith('s3://')) continue;
    const file = resolve(directory, code);
    await access(file).catch((error: unknown) => {
      throw badInput(`stages[${String(index)}].code: ${code} cannot be read: ${systemReason(error)}`, error);
    });
    bundles.set(index, carriedOf(await bundleModule(file, 'operator')));
  }
  return bundles;
}

/** The document with where the bundles lie in place of the files; it is changed. */
export function withSpecCode(document: unknown, bundles: SpecCode, bucket: string): unknown {
  for (const [index, stage] of stagesOf(document).entries()) {
    const bundle = bundles.get(index);
    if (bundle === undefined) continue;
    const { sha256 } = bundle;
    Reflect.set(stage, 'code', { s3: uriOf({ bucket, key: carriedKey(sha256) }), sha256 });
  }
  return document;
}

/** Stages that are shaped as such; what is not is left to the schema. */
function stagesOf(document: unknown): readonly Readonly<Record<string, unknown>>[] {
  const stages = (document as { stages?: unknown } | null)?.stages;
  if (!Array.isArray(stages)) return [];
  return (stages as unknown[]).map((stage) =>
    typeof stage === 'object' && stage !== null ? (stage as Readonly<Record<string, unknown>>) : {},
  );
}
