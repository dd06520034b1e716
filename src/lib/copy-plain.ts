/**
 * A deep copy, as `structuredClone` makes it, of data that is mostly plain objects and arrays. Those are copied here:
 * it is done at each tick of a simulated day, and `structuredClone` takes several times as long for them.
 */
export function copyPlain<T>(value: T): T {
  return copied(value) as T;
}

const ownValue = { configurable: true, enumerable: true, writable: true };

function copied(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(copied);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return structuredClone(value);
  const copy: Record<string, unknown> = {};
  for (const [key, each] of Object.entries(value)) {
    // Set as any other it would be the copy's prototype.
    if (key === '__proto__') Object.defineProperty(copy, key, { ...ownValue, value: copied(each) });
    else copy[key] = copied(each);
  }
  return copy;
}
