import { type Context, isLike } from './pattern.ts';

/** Operators of conditions that the embedded stack knows. */
export const conditionOperators = [
  'StringEquals',
  'StringLike',
  'ArnEquals',
  'ArnLike',
  'Null',
  'ForAllValues:StringEquals',
  'ForAllValues:StringLike',
] as const;
export type ConditionOperator = (typeof conditionOperators)[number];

type Check = (given: readonly string[] | undefined, wanted: readonly string[], context: Context) => boolean;

const equals = (text: string, pattern: string, context: Context): boolean =>
  isLike(
    text,
    pattern.replaceAll(/(?<!\$\{)[*?]/g, (char) => `\${${char}}`),
    context,
  ) === true;
const like = (text: string, pattern: string, context: Context): boolean =>
  isLike(text, pattern, context) === true;

/** A key without a value fits nothing. */
const one =
  (fits: typeof like): Check =>
  (given, wanted, context) =>
    given?.some((value) => wanted.some((pattern) => fits(value, pattern, context))) ?? false;

/** A key without a value fits everything, as in IAM: whoever minds says so by `Null`. */
const all =
  (fits: typeof like): Check =>
  (given, wanted, context) =>
    given?.every((value) => wanted.some((pattern) => fits(value, pattern, context))) ?? true;

const checks: Readonly<Record<ConditionOperator, Check>> = {
  StringEquals: one(equals),
  StringLike: one(like),
  // ARNs in conditions are patterns under both names.
  ArnEquals: one(like),
  ArnLike: one(like),
  Null: (given, wanted) => wanted.includes(String(given === undefined || given.length === 0)),
  'ForAllValues:StringEquals': all(equals),
  'ForAllValues:StringLike': all(like),
};

/** Whether a request's values of a key meet a condition. */
export const meets = (
  { operator, key, values }: { operator: ConditionOperator; key: string; values: readonly string[] },
  context: Context,
): boolean => checks[operator](context.get(key), values, context);
