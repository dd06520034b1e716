/** An event as EventBridge delivers it. */
export type BusEvent = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isLiteral = (value: unknown): boolean =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value);

/**
 * What is wrong with a pattern, with the path of it, or undefined where the embedded EventBridge reads it as AWS does:
 * fields of objects, each with the values that it may have. Not among them: prefixes, ranges and the like.
 */
export function patternProblem(pattern: unknown, path = ''): { path: string; problem: string } | undefined {
  if (!isObject(pattern)) return { path, problem: 'must be an object' };
  if (Object.keys(pattern).length === 0) return { path, problem: 'must name a field' };
  for (const [name, wanted] of Object.entries(pattern)) {
    const here = path === '' ? name : `${path}.${name}`;
    if (name.startsWith('$')) return { path: here, problem: 'is not supported by the embedded EventBridge' };
    if (!Array.isArray(wanted)) {
      const inner = patternProblem(wanted, here);
      if (inner !== undefined) return inner;
      continue;
    }
    if (wanted.length === 0) return { path: here, problem: 'must list a value' };
    if (!wanted.every(isLiteral))
      return { path: here, problem: 'only values are supported by the embedded EventBridge, no comparisons' };
  }
  return undefined;
}

/** Whether an event has all the fields that a checked pattern names, each with one of the values listed. */
export function matchesPattern(pattern: unknown, event: unknown): boolean {
  if (!isObject(pattern) || !isObject(event)) return false;
  return Object.entries(pattern).every(([name, wanted]) => {
    if (!Object.hasOwn(event, name)) return false;
    const value = event[name];
    if (!Array.isArray(wanted)) return matchesPattern(wanted, value);
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    return values.some((each) => wanted.includes(each));
  });
}
