import type { z } from 'zod';
import { provisionError } from './provision-error.ts';
import type { ResolvedResource } from './resolved-stacks.ts';

/**
 * A resource's properties in the shape that the embedded stack needs.
 *
 * @throws ProvisionError naming the resource and the first property of another shape.
 */
export function propertiesOf<Schema extends z.ZodType>(
  resource: ResolvedResource,
  schema: Schema,
): z.output<Schema> {
  const parsed = schema.safeParse(resource.properties);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw provisionError(
    `${resource.where} Properties.${issue?.path.join('.') ?? ''}`,
    issue?.message ?? 'is wrong',
  );
}
