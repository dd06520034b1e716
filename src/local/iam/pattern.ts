/** Values of condition keys of a request, by `conditionKey`; what is not there has no value. */
export type Context = ReadonlyMap<string, readonly string[]>;

const ANY = Symbol('any characters');
const ONE = Symbol('one character');
type Token = string | typeof ANY | typeof ONE;

/**
 * Whether a text is like a pattern of a policy: `*` and `?` stand for characters, `${*}`, `${?}` and `${$}` for
 * themselves, and `${key}` for the request's one value of that key, character by character. A variable without a
 * value makes the answer undefined: IAM then passes over the statement.
 */
export function isLike(text: string, pattern: string, context: Context): boolean | undefined {
  const tokens = tokensOf(pattern, context);
  return tokens === undefined ? undefined : matches(Array.from(text), tokens);
}

function tokensOf(pattern: string, context: Context): readonly Token[] | undefined {
  const tokens: Token[] = [];
  for (const [part, variable] of pattern.matchAll(/\$\{([^}]*)\}|./gsu)) {
    if (variable === undefined) {
      tokens.push(part === '*' ? ANY : part === '?' ? ONE : part);
      continue;
    }
    const value = ['*', '?', '$'].includes(variable) ? variable : valueOf(variable, context);
    if (value === undefined) return undefined;
    tokens.push(...Array.from(value));
  }
  return tokens;
}

function valueOf(variable: string, context: Context): string | undefined {
  const slash = variable.indexOf('/');
  const key =
    slash < 0 ? variable.toLowerCase() : variable.slice(0, slash).toLowerCase() + variable.slice(slash);
  const values = context.get(key);
  return values?.length === 1 ? values[0] : undefined;
}

/** Goes back to the last `*` only, so that the work is at most the product of both lengths. */
function matches(text: readonly string[], tokens: readonly Token[]): boolean {
  let at = 0;
  let next = 0;
  let star = -1;
  let starAt = 0;
  while (at < text.length) {
    const token = tokens[next];
    if (token === ANY) {
      star = next++;
      starAt = at;
    } else if (token !== undefined && (token === ONE || token === text[at])) {
      at++;
      next++;
    } else if (star >= 0) {
      next = star + 1;
      at = ++starAt;
    } else {
      return false;
    }
  }
  return tokens.slice(next).every((token) => token === ANY);
}
