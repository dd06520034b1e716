import * as z from 'zod';
import { type ConditionOperator, conditionOperators } from './conditions.ts';

/** The part of IAM's policy language that the embedded stack reads; what lies beyond it is refused, never passed over. */
export interface Statement {
  readonly effect: 'Allow' | 'Deny';
  /** Patterns of actions. */
  readonly actions: readonly string[];
  /** Patterns of ARNs that are meant, or of those that are not. */
  readonly resources: { readonly kind: 'in' | 'not-in'; readonly patterns: readonly string[] };
  readonly conditions: readonly Condition[];
}

/** A statement of who may assume a role. */
export interface TrustStatement extends Omit<Statement, 'resources'> {
  /** ARNs of roles and users. */
  readonly arns: readonly string[];
  /** Names of services. */
  readonly services: readonly string[];
}

export interface Condition {
  readonly operator: ConditionOperator;
  /** In lower case, as keys are compared; the name of a tag keeps its case. */
  readonly key: string;
  readonly values: readonly string[];
}

/** What is wrong with a policy: where, and what is not known. */
export interface PolicyProblem {
  readonly path: string;
  readonly problem: string;
}

const texts = z.union([z.array(z.string()).min(1), z.string().transform((text) => [text])]);
const conditionValues = z.union([texts, z.boolean().transform((value) => [String(value)])]);
const conditionBlock = z
  .partialRecord(
    z.enum(conditionOperators, { error: 'is a condition that the embedded stack does not know' }),
    z.record(z.string(), conditionValues),
  )
  .default({})
  .transform((block) =>
    Object.entries(block).flatMap(([operator, keys]) =>
      Object.entries(keys).map(([key, values]): Condition => ({
        operator: operator as ConditionOperator,
        key: conditionKey(key),
        values,
      })),
    ),
  );

/** Keys are compared without regard to case; what follows a slash names a tag and is not. */
export function conditionKey(key: string): string {
  const slash = key.indexOf('/');
  return slash < 0 ? key.toLowerCase() : key.slice(0, slash).toLowerCase() + key.slice(slash);
}

const head = { Sid: z.string().optional(), Effect: z.enum(['Allow', 'Deny']), Action: texts };
const listed = <T extends z.ZodType>(statement: T) =>
  z.strictObject({
    Version: z.literal('2012-10-17', 'must be 2012-10-17: older policies know no variables'),
    Statement: z.union([z.array(statement), statement.transform((one) => [one])]),
  });

const policySchema = listed(
  z
    .strictObject({
      ...head,
      Resource: texts.optional(),
      NotResource: texts.optional(),
      Condition: conditionBlock,
    })
    .refine((found) => (found.Resource === undefined) !== (found.NotResource === undefined), {
      message: 'must have either Resource or NotResource',
    })
    .transform(({ Effect, Action, Resource, NotResource, Condition: conditions }): Statement => ({
      effect: Effect,
      actions: Action,
      resources:
        Resource === undefined
          ? { kind: 'not-in', patterns: NotResource ?? [] }
          : { kind: 'in', patterns: Resource },
      conditions,
    })),
);

const trustSchema = listed(
  z
    .strictObject({
      ...head,
      Principal: z.strictObject({ AWS: texts.optional(), Service: texts.optional() }),
      Condition: conditionBlock,
    })
    .transform(({ Effect, Action, Principal, Condition: conditions }): TrustStatement => ({
      effect: Effect,
      actions: Action,
      arns: Principal.AWS ?? [],
      services: Principal.Service ?? [],
      conditions,
    })),
);

function parse<T>(schema: z.ZodType<T>, document: unknown): T | PolicyProblem {
  const parsed = schema.safeParse(document);
  if (parsed.success) return parsed.data;
  const issue = deepest(parsed.error.issues[0]);
  return { path: issue?.path ?? '', problem: issue?.message ?? 'is wrong' };
}

/** The first thing that is really wrong: alternatives hide it behind "invalid input". */
function deepest(
  issue: z.core.$ZodIssue | undefined,
  before = '',
): { path: string; message: string } | undefined {
  if (issue === undefined) return undefined;
  const path = [before, ...issue.path.map(String)].filter((part) => part !== '').join('.');
  if (issue.code === 'invalid_union')
    return deepest(issue.errors[0]?.[0], path) ?? { path, message: issue.message };
  if (issue.code === 'unrecognized_keys')
    return { path: `${path}.${issue.keys[0] ?? ''}`, message: 'is not known here' };
  return { path, message: issue.message };
}

const isProblem = (found: object): found is PolicyProblem => 'problem' in found;

/** The statements of a policy of an identity or a session, or what of it is not known. */
export function readPolicy(document: unknown): readonly Statement[] | PolicyProblem {
  const found = parse(policySchema, document);
  return isProblem(found) ? found : found.Statement;
}

/** The statements of a role's trust policy, or what of it is not known. */
export function readTrust(document: unknown): readonly TrustStatement[] | PolicyProblem {
  const found = parse(trustSchema, document);
  return isProblem(found) ? found : found.Statement;
}
