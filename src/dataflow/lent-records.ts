/*
 * Records that are lent: what a generator yields it may change, and yield again as its next record. Whoever keeps such a
 * record keeps a copy. That is made without going through bytes, since the functions that come next see it: a match of
 * `matchAll` has its groups still, and shares its text with all others of its line.
 */

/** Records that reach deeper, or round in circles, are not copied. */
const deepest = 256;

/**
 * A copy of a record down to its plain objects, lists, dates, maps and sets. All else in it, such as objects of the job's own
 * classes, both have in common. The record itself where it reaches too deep.
 */
export const copyOfLent = (record: unknown): unknown => (isShallow(record, 0) ? copied(record) : record);

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

function isShallow(value: unknown, depth: number): boolean {
  if (!isObject(value)) return true;
  if (depth > deepest) return false;
  for (const item of itemsOf(value)) if (!isShallow(item, depth + 1)) return false;
  return true;
}

/** What lies in a value that is copied. */
function itemsOf(value: object): Iterable<unknown> {
  if (value instanceof Map) return [...value.keys(), ...value.values()] as unknown[];
  if (value instanceof Set) return value as Set<unknown>;
  if (Array.isArray(value)) return value as unknown[];
  return isPlain(value) ? (Object.values(value) as unknown[]) : [];
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function copied(value: unknown): unknown {
  if (!isObject(value)) return value;
  if (Array.isArray(value)) return copiedList(value);
  if (isPlain(value)) return copiedPlain(value as Readonly<Record<string, unknown>>);
  switch (Object.getPrototypeOf(value)) {
    case Date.prototype:
      return new Date(value as Date);
    case Map.prototype:
      return new Map([...(value as Map<unknown, unknown>)].map(([key, item]) => [copied(key), copied(item)]));
    case Set.prototype:
      return new Set([...(value as Set<unknown>)].map(copied));
    default:
      return value;
  }
}

/** With what a list has besides its items, as that which `matchAll` gives. */
function copiedList(list: readonly unknown[]): unknown {
  const copy = list.map(copied);
  const names = Object.keys(list);
  return names.length === list.length ? copy : Object.assign(copy, Object.fromEntries(named(list, names)));
}

const named = (list: readonly unknown[], names: readonly string[]): (readonly [string, unknown])[] =>
  names
    .filter((name) => !/^\d+$/.test(name))
    .map((name) => [name, copied((list as unknown as Readonly<Record<string, unknown>>)[name])]);

function copiedPlain(value: Readonly<Record<string, unknown>>): unknown {
  // All its keys are its own from here on, `__proto__` too, so that setting one sets nothing else.
  const copy: Record<string, unknown> = { ...value };
  for (const key of Object.keys(copy)) {
    const each = copy[key];
    if (isObject(each)) copy[key] = copied(each);
  }
  return Object.getPrototypeOf(value) === null ? Object.assign(Object.create(null) as object, copy) : copy;
}
