/*
 * Records that are lent: what a generator yields it may change, and yield again as its next record. Whoever keeps such a
 * record keeps a copy. That is made without going through bytes, since the functions that come next see it: a match of
 * `matchAll` has its groups still, and shares its text with all others of its line.
 */

/** Records that reach deeper are not copied. */
const deepest = 256;

/** What was copied of a record, by what it was copied from: what is in it twice, or in itself, is so in the copy. */
type Copies = Map<object, unknown>;

class TooDeepError extends Error {}

/**
 * A copy of a record down to its plain objects, lists, dates, maps and sets. All else in it, such as objects of the job's own
 * classes, both have in common. The record itself where it reaches too deep.
 */
export function copyOfLent(record: unknown): unknown {
  if (!isObject(record)) return record;
  try {
    return copied(record, new Map(), 0);
  } catch (error) {
    if (error instanceof TooDeepError) return record;
    throw error;
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function copied(value: unknown, copies: Copies, depth: number): unknown {
  if (!isObject(value)) return value;
  const known = copies.get(value);
  if (known !== undefined) return known;
  if (depth > deepest) throw new TooDeepError();
  const each = (item: unknown): unknown => copied(item, copies, depth + 1);
  const begun = <T extends object>(copy: T): T => {
    copies.set(value, copy);
    return copy;
  };
  if (Array.isArray(value)) return fillList(begun(new Array<unknown>(value.length)), value, each);
  if (isPlain(value))
    return fillPlain(begun(emptyLike(value)), value as Readonly<Record<string, unknown>>, each);
  switch (Object.getPrototypeOf(value)) {
    case Date.prototype:
      return begun(new Date(value as Date));
    case Map.prototype: {
      const copy = begun(new Map<unknown, unknown>());
      for (const [key, item] of value as Map<unknown, unknown>) copy.set(each(key), each(item));
      return copy;
    }
    case Set.prototype: {
      const copy = begun(new Set<unknown>());
      for (const item of value as Set<unknown>) copy.add(each(item));
      return copy;
    }
    default:
      return value;
  }
}

type Each = (item: unknown) => unknown;

/** With what a list has besides its items, as that which `matchAll` gives; places that it leaves out stay so. */
function fillList(copy: unknown[], list: readonly unknown[], each: Each): unknown {
  const names = Object.keys(list);
  const isDense =
    names.length === list.length && (names.length === 0 || names.at(-1) === String(list.length - 1));
  if (isDense) for (let at = 0; at < list.length; at++) copy[at] = each(list[at]);
  else
    for (const name of names)
      (copy as unknown as Record<string, unknown>)[name] = each(
        (list as unknown as Readonly<Record<string, unknown>>)[name],
      );
  return copy;
}

const emptyLike = (value: object): Record<string, unknown> =>
  Object.create(Object.getPrototypeOf(value) as object | null) as Record<string, unknown>;

function fillPlain(
  copy: Record<string, unknown>,
  value: Readonly<Record<string, unknown>>,
  each: Each,
): unknown {
  // As its own, `__proto__` too.
  for (const key of Object.keys(value)) {
    const item = each(value[key]);
    if (key === '__proto__')
      Object.defineProperty(copy, key, { value: item, enumerable: true, writable: true, configurable: true });
    else copy[key] = item;
  }
  return copy;
}
