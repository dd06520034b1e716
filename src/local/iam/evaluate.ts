import { meets } from './conditions.ts';
import { type Context, isLike } from './pattern.ts';
import type { Statement, TrustStatement } from './policy.ts';

/** One thing that a request wants: an action on a resource. */
export interface Wish {
  /** Such as `s3:PutObject`. */
  readonly action: string;
  /** An ARN, or `*` where the action has none. */
  readonly resource: string;
  /** Values of condition keys that it has besides those of the request, or in their place. */
  readonly context?: Context;
}

/** A deny that is said wins over every allow; what nobody allows is denied too. */
export type Verdict = 'allowed' | 'denied' | 'not-allowed';

const isAction = (patterns: readonly string[], action: string): boolean =>
  patterns.some((pattern) => isLike(action.toLowerCase(), pattern.toLowerCase(), new Map()) === true);

function isResource({ resources }: Statement, resource: string, context: Context): boolean {
  const found = resources.patterns.map((pattern) => isLike(resource, pattern, context));
  // With a variable that has no value nothing can be said of what is not meant: the statement counts for nothing.
  if (resources.kind === 'not-in') return found.every((isMeant) => isMeant === false);
  return found.includes(true);
}

const verdictOf = (effects: readonly Statement['effect'][]): Verdict =>
  effects.includes('Deny') ? 'denied' : effects.length > 0 ? 'allowed' : 'not-allowed';

/** What the statements of one policy, or of all policies of a role together, say to a wish. */
export const evaluate = (statements: readonly Statement[], wish: Wish, context: Context): Verdict =>
  verdictOf(
    statements
      .filter(
        (statement) =>
          isAction(statement.actions, wish.action) &&
          isResource(statement, wish.resource, context) &&
          statement.conditions.every((condition) => meets(condition, context)),
      )
      .map(({ effect }) => effect),
  );

/** What a role's trust policy says to an action of someone. */
export const evaluateTrust = (
  statements: readonly TrustStatement[],
  wish: { readonly action: string; readonly callerArn: string },
  context: Context,
): Verdict =>
  verdictOf(
    statements
      .filter(
        (statement) =>
          isAction(statement.actions, wish.action) &&
          statement.arns.includes(wish.callerArn) &&
          statement.conditions.every((condition) => meets(condition, context)),
      )
      .map(({ effect }) => effect),
  );
