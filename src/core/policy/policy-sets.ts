import type { PolicyName } from '../../contracts/job-spec.ts';

/** Policy sets that a job may choose. */
export const policySets: ReadonlySet<PolicyName> = new Set<PolicyName>(['none']);
