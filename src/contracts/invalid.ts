import type { z } from 'zod';
import { InvalidInputError } from './errors.ts';

type Issue = z.core.$ZodIssue;

/** `stages[0].inputs[1].s3` of a path. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}

/** Of the alternatives of a union, the one that the writer most likely meant: whose discriminating key is there. */
function meantBranch(branches: readonly (readonly Issue[])[]): readonly Issue[] | undefined {
  const isOther = (issues: readonly Issue[]): boolean =>
    issues.some(
      (issue) =>
        issue.path.length === 0 ||
        (issue.path.length === 1 && issue.code === 'invalid_type' && /undefined/.test(issue.message)),
    );
  const meant = branches.filter((issues) => !isOther(issues));
  return meant.length === 1 ? meant[0] : undefined;
}

function firstIssue(
  issue: Issue,
  path: readonly PropertyKey[],
): { path: readonly PropertyKey[]; message: string } {
  const here = [...path, ...issue.path];
  if (issue.code === 'invalid_union') {
    const inner = meantBranch(issue.errors)?.[0];
    if (inner !== undefined) return firstIssue(inner, here);
  }
  if (issue.code === 'unrecognized_keys') {
    return { path: [...here, issue.keys[0] ?? ''], message: 'is not a known field' };
  }
  if (issue.code === 'invalid_type' && /undefined/.test(issue.message)) {
    return { path: here, message: `is missing; it must be ${issue.expected}` };
  }
  const message = issue.message.replace(/^Invalid (input|option|string)?:? ?/, '');
  return { path: here, message: /^must /.test(message) ? message : `is wrong: ${message}` };
}

const longestProblem = 300;
/** Steps of a path that is told: what lies deeper is refused for its depth. */
const deepestPath = 32;

/** The first thing wrong with stored data, in a few words that name the field; cut where the data makes it long. */
export function firstProblem(error: z.ZodError, root = ''): string {
  return invalidInput(error, root).message.slice(0, longestProblem).toWellFormed();
}

/** The first thing wrong with an input, as one line that names the field and says what would be right. */
export function invalidInput(error: z.ZodError, root = ''): InvalidInputError {
  const issue = error.issues[0];
  if (issue === undefined) return new InvalidInputError('input is wrong');
  const { path, message } = firstIssue(issue, []);
  const field = fieldPath(root === '' ? path : [root, ...path]);
  return new InvalidInputError(field === '' ? `input ${message}` : `${field} ${message}`, { field });
}

/**
 * Throws `InvalidInputError` with its path where an object of the data has a key "__proto__": schemas leave it out
 * without a word, so that what was asked for would not be what is done. Data from JSON.
 */
export function refuseProtoKeys(data: unknown): void {
  const open: { readonly value: unknown; readonly path: readonly PropertyKey[] }[] = [
    { value: data, path: [] },
  ];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, path } = next;
    if (typeof value !== 'object' || value === null) continue;
    if (Object.hasOwn(value, '__proto__')) {
      const field = fieldPath([...path, '__proto__']);
      throw new InvalidInputError(`${field} must have another name`, { field });
    }
    for (const [key, inner] of Object.entries(value) as [string, unknown][]) {
      if (typeof inner === 'object')
        open.push({
          value: inner,
          path: path.length < deepestPath ? [...path, Array.isArray(value) ? Number(key) : key] : path,
        });
    }
  }
}

/** Parses data from outside; throws `InvalidInputError` with the path of the first wrong field. */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  data: unknown,
  root = '',
): z.output<Schema> {
  const result = schema.safeParse(data);
  if (!result.success) throw invalidInput(result.error, root);
  return result.data;
}
