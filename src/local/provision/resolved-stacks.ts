import type { Assembly, AssemblyStack, TemplateResource } from './assembly.ts';
import { type Identity, identifierOf, LOCAL_ACCOUNT } from './identities.ts';
import { type ReferenceScope, resolveValue } from './intrinsics.ts';
import { ProvisionError, provisionError } from './provision-error.ts';

/** A resource with all references in its properties replaced. */
export interface ResolvedResource {
  readonly type: string;
  /** For messages: `Stack/LogicalId (Type)`. */
  readonly where: string;
  readonly identity: Identity;
  readonly properties: Readonly<Record<string, unknown>>;
}

/** Everything that the stacks of an assembly describe. */
export interface ResolvedStacks {
  readonly resources: readonly ResolvedResource[];
  /** Outputs of all stacks, exports apart. */
  readonly outputs: Readonly<Record<string, string>>;
}

export interface ResolveOptions {
  readonly region: string;
  readonly availabilityZones: readonly string[];
  /** Values for parameters of whatever stack has them. */
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Resolves all references within and between the stacks.
 *
 * @throws ProvisionError for a type of resource that is not known, a reference to nothing, a parameter without a
 * value, and a value for a parameter that no stack has; with the resource and the property where there is one.
 */
export function resolveStacks({ stacks }: Assembly, options: ResolveOptions): ResolvedStacks {
  refuseUnknownParameters(stacks, options.parameters);
  const resources: ResolvedResource[] = [];
  const outputs: Record<string, string> = {};
  const exported = new Map<string, unknown>();
  for (const stack of stacks) {
    const scope = new StackScope(stack, options, exported);
    resources.push(...scope.resources());
    for (const [name, output] of Object.entries(stack.template.Outputs)) {
      const where = `${stack.name} Outputs.${name}`;
      const value = resolveValue(output.Value, scope, where);
      if (output.Export === undefined) outputs[name] = String(value);
      else exported.set(String(resolveValue(output.Export.Name, scope, where)), value);
    }
  }
  return { resources, outputs };
}

function refuseUnknownParameters(
  stacks: readonly AssemblyStack[],
  given: Readonly<Record<string, string>>,
): void {
  const known = new Set(stacks.flatMap(({ template }) => Object.keys(template.Parameters)));
  const unknown = Object.keys(given).find((name) => !known.has(name));
  if (unknown === undefined) return;
  throw new ProvisionError(
    `no stack has a parameter "${unknown}"; there are ${[...known].toSorted().join(', ')}`,
  );
}

class StackScope implements ReferenceScope {
  readonly availabilityZones: readonly string[];
  private readonly stack: AssemblyStack;
  private readonly options: ResolveOptions;
  private readonly exports: ReadonlyMap<string, unknown>;
  private readonly identities = new Map<string, Identity | 'in-progress'>();

  constructor(stack: AssemblyStack, options: ResolveOptions, exports: ReadonlyMap<string, unknown>) {
    this.stack = stack;
    this.options = options;
    this.exports = exports;
    this.availabilityZones = options.availabilityZones;
  }

  resources(): ResolvedResource[] {
    const all = this.stack.template.Resources;
    return Object.entries(all).flatMap(([logicalId, resource]) => {
      const where = this.where(logicalId, resource);
      if (resource.Condition !== undefined && !this.isThere(resource.Condition, where)) return [];
      const missing = resource.DependsOn.find((id) => !Object.hasOwn(all, id));
      if (missing !== undefined) throw provisionError(where, `DependsOn: there is no resource "${missing}"`);
      const properties = Object.fromEntries(
        Object.entries(resource.Properties).map(([name, value]) => [
          name,
          resolveValue(value, this, `${where} Properties.${name}`),
        ]),
      );
      return [{ type: resource.Type, where, identity: this.identity(logicalId, resource), properties }];
    });
  }

  private isThere(name: string, where: string): boolean {
    const condition = this.condition(name);
    if (typeof condition === 'boolean') return condition;
    throw provisionError(where, `Condition: there is no condition "${name}"`);
  }

  ref(name: string): unknown {
    const pseudo = this.pseudoParameter(name);
    if (pseudo !== undefined) return pseudo;
    const parameter = this.stack.template.Parameters[name];
    if (parameter !== undefined) {
      const value = this.options.parameters[name] ?? parameter.Default;
      return value === undefined ? undefined : String(value);
    }
    const resource = this.stack.template.Resources[name];
    return resource === undefined ? undefined : this.identity(name, resource).ref;
  }

  attribute(logicalId: string, name: string): unknown {
    const resource = this.stack.template.Resources[logicalId];
    return resource === undefined ? undefined : this.identity(logicalId, resource).attributes[name];
  }

  exported(name: string): unknown {
    return this.exports.get(name);
  }

  condition(name: string): unknown {
    const condition = this.stack.template.Conditions[name];
    return condition === undefined
      ? undefined
      : resolveValue(condition, this, `${this.stack.name} Conditions.${name}`);
  }

  private where(logicalId: string, { Type }: TemplateResource): string {
    return `${this.stack.name}/${logicalId} (${Type})`;
  }

  private identity(logicalId: string, resource: TemplateResource): Identity {
    const where = this.where(logicalId, resource);
    const known = this.identities.get(logicalId);
    if (known === 'in-progress') throw provisionError(where, 'its name depends on itself');
    if (known !== undefined) return known;
    const identify = identifierOf(resource.Type);
    if (identify === undefined)
      throw provisionError(where, 'the embedded stack does not know this type of resource');
    this.identities.set(logicalId, 'in-progress');
    const identity = identify({
      region: this.options.region,
      stack: this.stack.name,
      logicalId,
      property: (name) => {
        const value = resolveValue(resource.Properties[name], this, `${where} Properties.${name}`);
        return typeof value === 'string' ? value : undefined;
      },
    });
    this.identities.set(logicalId, identity);
    return identity;
  }

  private pseudoParameter(name: string): string | undefined {
    const { region } = this.options;
    switch (name) {
      case 'AWS::AccountId':
        return LOCAL_ACCOUNT;
      case 'AWS::Region':
        return region;
      case 'AWS::Partition':
        return 'aws';
      case 'AWS::URLSuffix':
        return 'amazonaws.com';
      case 'AWS::StackName':
        return this.stack.name;
      case 'AWS::StackId':
        return `arn:aws:cloudformation:${region}:${LOCAL_ACCOUNT}:stack/${this.stack.name}/local`;
      default:
        return undefined;
    }
  }
}
