import * as z from 'zod';
import { type PolicyProblem, readPolicy, readTrust, type Statement } from '../iam/policy.ts';
import type { LocalRole } from '../iam/roles.ts';
import { provisionError } from './provision-error.ts';
import { propertiesOf } from './properties.ts';
import type { ResolvedResource } from './resolved-stacks.ts';

const roleProperties = z.looseObject({
  AssumeRolePolicyDocument: z.unknown(),
  Policies: z.array(z.looseObject({ PolicyDocument: z.unknown() })).default([]),
  ManagedPolicyArns: z.array(z.string()).default([]),
  MaxSessionDuration: z.number().default(3_600),
});

const policyProperties = z.looseObject({
  PolicyDocument: z.unknown(),
  Roles: z.array(z.string()).default([]),
});

/** The roles of a deployment, for those that run with one. */
export class RoleBook {
  readonly roles: readonly LocalRole[];
  private readonly managed: ReadonlySet<string>;

  /** @throws ProvisionError naming the resource and what of its policy is not known. */
  constructor(roles: readonly ResolvedResource[], policies: readonly ResolvedResource[]) {
    const attached = policies.map((resource) => {
      const { PolicyDocument, Roles } = propertiesOf(resource, policyProperties);
      return { roles: Roles, statements: known(readPolicy(PolicyDocument), resource, 'PolicyDocument') };
    });
    const managed = new Set<string>();
    this.roles = roles.map((resource) => {
      const found = propertiesOf(resource, roleProperties);
      const { ref: name, attributes } = resource.identity;
      const arn = attributes['Arn'] ?? '';
      if (found.ManagedPolicyArns.length > 0) managed.add(arn);
      return {
        name,
        arn,
        trust: known(readTrust(found.AssumeRolePolicyDocument), resource, 'AssumeRolePolicyDocument'),
        statements: [
          ...found.Policies.flatMap(({ PolicyDocument }, index) =>
            known(readPolicy(PolicyDocument), resource, `Policies.${String(index)}.PolicyDocument`),
          ),
          ...attached.flatMap((policy): readonly Statement[] =>
            policy.roles.includes(name) ? policy.statements : [],
          ),
        ],
        maxSessionSeconds: found.MaxSessionDuration,
      };
    });
    this.managed = managed;
  }

  /**
   * The ARN of the role that something of this service runs with.
   *
   * @throws ProvisionError where there is no such role, it does not trust the service, or what it may do is not said
   * in the templates.
   */
  arnFor(arn: string, service: string, where: string): string {
    const role = this.roles.find((each) => each.arn === arn);
    if (role === undefined) throw provisionError(where, `there is no role "${arn}"`);
    const isTrusting = role.trust.some(
      ({ effect, actions, services }) =>
        effect === 'Allow' && actions.includes('sts:AssumeRole') && services.includes(service),
    );
    if (!isTrusting) throw provisionError(where, `the role ${role.name} does not trust ${service}`);
    if (this.managed.has(arn))
      throw provisionError(where, `the role ${role.name} has managed policies, which are not known here`);
    return arn;
  }
}

function known<T extends object>(
  found: readonly T[] | PolicyProblem,
  resource: ResolvedResource,
  document: string,
): readonly T[] {
  if (!('problem' in found)) return found;
  throw provisionError(`${resource.where} Properties.${document}.${found.path}`, found.problem);
}
