import type { z } from 'zod';
import { InvalidInputError } from './errors.ts';
import { formsAt, strangerText } from './known-fields.ts';

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

/** What a schema expects, or was given, for people. */
const nouns: ReadonlyMap<string, string> = new Map([
  ['string', 'a text'],
  ['number', 'a number'],
  ['int', 'a whole number'],
  ['boolean', 'true or false'],
  ['array', 'a list'],
  ['object', 'an object'],
  ['record', 'an object'],
  ['null', 'null'],
  ['undefined', 'nothing'],
  ['nan', 'no number'],
]);

const nounOf = (name: string): string => nouns.get(name) ?? name;

/** What a length is counted in: one of them, and several. */
const units: ReadonlyMap<string, readonly [string, string]> = new Map([
  ['string', ['character', 'characters']],
  ['array', ['entry', 'entries']],
]);

/** How much a text, a list or a number may be: `must be at most 7`, `must have at least 1 entry`. */
function boundText({
  origin,
  bound,
  isLeast,
  isOpen,
}: Readonly<Record<'isLeast' | 'isOpen', boolean>> & {
  readonly origin: string;
  readonly bound: number | bigint;
}): string {
  const unit = units.get(origin);
  if (unit === undefined)
    return `must be ${isOpen ? (isLeast ? 'more than' : 'less than') : isLeast ? 'at least' : 'at most'} ${String(bound)}`;
  return `must have ${isLeast ? 'at least' : 'at most'} ${String(bound)} ${unit[Number(bound) === 1 ? 0 : 1]}`;
}

/** What would be right, of an issue whose schema does not say so itself. */
function rightText(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type': {
      const received = /received (\w+)$/.exec(issue.message)?.[1];
      // A fraction is a number, too.
      const isFraction = received === 'number' && String(issue.expected) === 'int';
      const not = received === undefined || isFraction ? '' : `, not ${nounOf(received.toLowerCase())}`;
      return `must be ${nounOf(issue.expected)}${not}`;
    }
    case 'invalid_value': {
      const values = issue.values.map((value) => JSON.stringify(value)).join(', ');
      return issue.values.length === 1 ? `must be ${values}` : `must be one of ${values}`;
    }
    case 'too_small':
      return boundText({
        ...{ origin: issue.origin, bound: issue.minimum },
        ...{ isLeast: true, isOpen: issue.inclusive === false },
      });
    case 'too_big':
      return boundText({
        ...{ origin: issue.origin, bound: issue.maximum },
        ...{ isLeast: false, isOpen: issue.inclusive === false },
      });
    case 'invalid_union': // Of those that do not say it themselves: `z.json()`.
      return 'must be a text, a finite number, true, false, null, or a list or object of these';
    default:
      return `is wrong: ${issue.message}`;
  }
}

/** One thing that is wrong, and where. */
interface Problem {
  readonly path: readonly PropertyKey[];
  readonly message: string;
  /** That a number is too big to be exact: no news beside the limit of its field. */
  readonly isVague?: true;
}

/** What is wrong with a field that the object at a path must not have. */
type Strangers = (path: readonly PropertyKey[], stranger: string) => string;

function problemsOf(issue: Issue, path: readonly PropertyKey[], strangers: Strangers): readonly Problem[] {
  const here = [...path, ...issue.path];
  if (issue.code === 'invalid_union') {
    const inner = meantBranch(issue.errors);
    if (inner !== undefined) return inner.flatMap((each) => problemsOf(each, here, strangers));
  }
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...here, key], message: strangers(here, key) }));
  }
  if (issue.code === 'invalid_type' && /undefined/.test(issue.message))
    return [{ path: here, message: `is missing; it must be ${nounOf(issue.expected)}` }];
  const isVague = issue.code === 'too_big' && issue.maximum === Number.MAX_SAFE_INTEGER;
  const message = /^(must|is) /.test(issue.message) ? issue.message : rightText(issue);
  return [{ path: here, message, ...(isVague ? { isVague } : {}) }];
}

/** Of each field what is wrong with it first: what is no address need not end in "/", too. */
function firstOfFields(problems: readonly Problem[]): readonly Problem[] {
  const sharpFirst = problems.toSorted((a, b) => Number(a.isVague ?? false) - Number(b.isVague ?? false));
  const byField = Map.groupBy(sharpFirst, ({ path }) => fieldPath(path));
  return [...byField.values()].flatMap(([first]) => first ?? []);
}

const longestProblem = 300;
/** Steps of a path that is told: what lies deeper is refused for its depth. */
const deepestPath = 32;

/** What is wrong with stored data, in a few words that name the field; cut where the data makes it long. */
export function firstProblem(error: z.ZodError, root = ''): string {
  return invalidInput(error, root).message.slice(0, longestProblem).toWellFormed();
}

/** So many problems are told; whoever has more has most likely given something else than was asked for. */
const mostProblems = 8;

/** The fields of what lies at a path of data. */
function fieldsAt(data: unknown, path: readonly PropertyKey[]): readonly string[] {
  let found = data;
  for (const part of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, part)) return [];
    found = (found as Readonly<Record<PropertyKey, unknown>>)[part];
  }
  return typeof found === 'object' && found !== null ? Object.keys(found) : [];
}

/**
 * What is wrong with an input, as one line that names each field and says what would be right. Its `field` is the first.
 * With the schema and the data it also says which field was likely meant by one that there is not, or what it goes with.
 */
function invalidInput(
  error: z.ZodError,
  root = '',
  { schema, data }: { readonly schema?: z.ZodType; readonly data?: unknown } = {},
): InvalidInputError {
  const strangers: Strangers = (path, stranger) =>
    strangerText(stranger, fieldsAt(data, path), schema === undefined ? [] : formsAt(schema, path));
  const problems = firstOfFields(error.issues.flatMap((issue) => problemsOf(issue, [], strangers)));
  const [first] = problems;
  if (first === undefined) return new InvalidInputError('input is wrong');
  const fieldOf = ({ path }: Problem): string => fieldPath(root === '' ? path : [root, ...path]);
  const told = problems.slice(0, mostProblems).map((problem) => {
    const field = fieldOf(problem);
    return field === '' ? `input ${problem.message}` : `${field} ${problem.message}`;
  });
  const more = problems.length - told.length;
  const rest = more === 0 ? '' : `; and ${more} more`;
  return new InvalidInputError(`${told.join('; ')}${rest}`, { field: fieldOf(first) });
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

/** Parses data from outside; throws `InvalidInputError` that names all wrong fields, and has the path of the first. */
export function parseInput<Schema extends z.ZodType>(
  schema: Schema,
  data: unknown,
  root = '',
): z.output<Schema> {
  const result = schema.safeParse(data);
  if (!result.success) throw invalidInput(result.error, root, { schema, data });
  return result.data;
}
