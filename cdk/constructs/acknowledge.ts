import { Validations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/**
 * Accepts wildcards in policies below a construct, each by the resource as cdk-nag prints it, so that a wildcard
 * that nobody meant still fails the synthesis. References to other stacks print as the name of their export.
 */
export function acknowledgeWildcards(
  construct: IConstruct,
  resources: readonly string[],
  reason: string,
): void {
  acknowledge(
    construct,
    Object.fromEntries(resources.map((resource) => [`AwsSolutions-IAM5[Resource::${resource}]`, reason])),
  );
}

/** Accepts findings of cdk-nag on a construct and all below it; `reasons` maps the finding to why it is right here. */
export function acknowledge(construct: IConstruct, reasons: Readonly<Record<string, string>>): void {
  Validations.of(construct).acknowledge(...Object.entries(reasons).map(([id, reason]) => ({ id, reason })));
}
