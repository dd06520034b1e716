import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { ProvisionError } from './provision-error.ts';

const parameterSchema = z.looseObject({
  Type: z.string(),
  Default: z.union([z.string(), z.number()]).optional(),
});

const resourceSchema = z.looseObject({
  Type: z.string(),
  Properties: z.record(z.string(), z.unknown()).default({}),
  /** Name of the condition under which it is there; absent: it always is. */
  Condition: z.string().optional(),
  DependsOn: z.union([z.string().transform((id) => [id]), z.array(z.string())]).default([]),
});

const outputSchema = z.looseObject({
  Value: z.unknown(),
  Export: z.object({ Name: z.unknown() }).optional(),
});

const templateSchema = z.looseObject({
  Parameters: z.record(z.string(), parameterSchema).default({}),
  Resources: z.record(z.string(), resourceSchema).default({}),
  Outputs: z.record(z.string(), outputSchema).default({}),
  Conditions: z.record(z.string(), z.unknown()).default({}),
});

const manifestSchema = z.looseObject({
  artifacts: z.record(
    z.string(),
    z.looseObject({
      type: z.string(),
      dependencies: z.array(z.string()).default([]),
      properties: z
        .looseObject({ templateFile: z.string().optional(), file: z.string().optional() })
        .optional(),
    }),
  ),
});

const assetsSchema = z.looseObject({
  files: z
    .record(
      z.string(),
      z.looseObject({
        source: z.looseObject({ path: z.string().optional() }),
        destinations: z.record(z.string(), z.looseObject({ objectKey: z.string() })),
      }),
    )
    .default({}),
  dockerImages: z
    .record(
      z.string(),
      z.looseObject({
        source: z.looseObject({ directory: z.string().optional() }),
        destinations: z.record(z.string(), z.looseObject({ imageTag: z.string() })),
      }),
    )
    .default({}),
});

export type Template = z.output<typeof templateSchema>;
export type TemplateResource = z.output<typeof resourceSchema>;

/** A stack as synthesized. */
export interface AssemblyStack {
  readonly name: string;
  readonly template: Template;
}

/** A cloud assembly: stacks so ordered that each comes after those it depends on, and the files behind them. */
export interface Assembly {
  readonly stacks: readonly AssemblyStack[];
  /** Object key of an asset in the deployment bucket → path of the file or directory. */
  readonly files: ReadonlyMap<string, string>;
  /** Image tag → directory of the build. */
  readonly images: ReadonlyMap<string, string>;
}

/**
 * Reads a cloud assembly, such as `cdk.out`.
 *
 * @throws ProvisionError where it is missing, or is not what the CDK writes.
 */
export async function readAssembly(directory: string): Promise<Assembly> {
  const { artifacts } = await readJson(join(directory, 'manifest.json'), manifestSchema);
  const names = stackOrder(artifacts);
  const stacks = await Promise.all(
    names.map(async (name): Promise<AssemblyStack> => {
      const file = artifacts[name]?.properties?.templateFile ?? '';
      return { name, template: await readJson(join(directory, file), templateSchema) };
    }),
  );
  const manifests = await Promise.all(
    Object.values(artifacts)
      .filter(({ type }) => type === 'cdk:asset-manifest')
      .map(({ properties }) => readJson(join(directory, properties?.file ?? ''), assetsSchema)),
  );
  return { stacks, files: assetFiles(directory, manifests), images: assetImages(directory, manifests) };
}

function assetFiles(
  directory: string,
  manifests: readonly z.output<typeof assetsSchema>[],
): Map<string, string> {
  const files = new Map<string, string>();
  for (const { source, destinations } of manifests.flatMap((manifest) => Object.values(manifest.files))) {
    if (source.path === undefined) continue;
    for (const { objectKey } of Object.values(destinations))
      files.set(objectKey, join(directory, source.path));
  }
  return files;
}

function assetImages(
  directory: string,
  manifests: readonly z.output<typeof assetsSchema>[],
): Map<string, string> {
  const images = new Map<string, string>();
  for (const { source, destinations } of manifests.flatMap((manifest) =>
    Object.values(manifest.dockerImages),
  )) {
    if (source.directory === undefined) continue;
    for (const { imageTag } of Object.values(destinations))
      images.set(imageTag, join(directory, source.directory));
  }
  return images;
}

/** Stacks after those that they depend on; the CDK refuses cycles, and a cycle here would end by the visited set. */
function stackOrder(artifacts: z.output<typeof manifestSchema>['artifacts']): string[] {
  const ordered = new Set<string>();
  const visited = new Set<string>();
  const visit = (name: string): void => {
    if (visited.has(name)) return;
    visited.add(name);
    const artifact = artifacts[name];
    artifact?.dependencies.forEach(visit);
    if (artifact?.type === 'aws:cloudformation:stack') ordered.add(name);
  };
  Object.keys(artifacts).forEach(visit);
  return [...ordered];
}

async function readJson<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema>> {
  let document: unknown;
  try {
    document = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    throw new ProvisionError(`${path} cannot be read`, { cause });
  }
  const parsed = schema.safeParse(document);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new ProvisionError(`${path}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is wrong'}`);
}
