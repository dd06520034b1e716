import { readFileSync } from 'node:fs';
import { App } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import * as z from 'zod';
import { addSystem } from '../../cdk/system.ts';

const cdkJson = z
  .object({ context: z.record(z.string(), z.unknown()) })
  .parse(JSON.parse(readFileSync(new URL('../../cdk.json', import.meta.url), 'utf8')));

/** The context of cdk.json, without bundling of code. */
export const cdkContext: Readonly<Record<string, unknown>> = {
  ...cdkJson.context,
  'aws:cdk:bundling-stacks': [],
};

/** A resource of a template, with the stack that it is in. */
export interface FoundResource {
  readonly stack: string;
  readonly logicalId: string;
  readonly properties: Readonly<Record<string, unknown>>;
  readonly template: Readonly<Record<string, unknown>>;
}

const resourceSchema = z.looseObject({
  Type: z.string(),
  Properties: z.record(z.string(), z.unknown()).default({}),
});

export interface SynthesizedSystem {
  readonly stacks: ReadonlyMap<string, Template>;
  /** All resources of a type, over all stacks. */
  resources(type: string): readonly FoundResource[];
}

/** The system's templates, without bundling of code. */
export function synthesized(context: Readonly<Record<string, unknown>> = {}): SynthesizedSystem {
  const app = new App({ context: { ...cdkContext, ...context } });
  const system = addSystem(app);
  const stacks = new Map(
    [system.storage, system.compute, system.coordinator, system.api].map((stack): [string, Template] => [
      stack.stackName,
      Template.fromStack(stack),
    ]),
  );
  const resources = (type: string): FoundResource[] =>
    [...stacks].flatMap(([stack, template]) =>
      Object.entries(template.findResources(type)).map(([logicalId, found]) => {
        const resource = resourceSchema.parse(found);
        return { stack, logicalId, properties: resource.Properties, template: resource };
      }),
    );
  return { stacks, resources };
}
