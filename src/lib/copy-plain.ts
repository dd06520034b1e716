/**
 * A deep copy, as `structuredClone` makes it, of data that is mostly plain objects and arrays. Those are copied here:
 * it is done at each tick of a simulated day, and `structuredClone` takes several times as long for them.
 */
export function copyPlain<T>(value: T): T {
  return copied(value) as T;
}

function copied(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copied);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return structuredClone(value);
  // All its keys are its own from here on, `__proto__` too, so that setting one sets nothing else.
  const copy: Record<string, unknown> = { ...value };
  for (const key of Object.keys(copy)) {
    const each = copy[key];
    if (typeof each === 'object' && each !== null) copy[key] = copied(each);
  }
  return copy;
}
