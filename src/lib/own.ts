/**
 * The value that an object used as a map has of its own under a key, undefined where it has none. A plain lookup also
 * finds what every object inherits: a stage or a counter may well be named `constructor`.
 */
export function ownValue<T>(map: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return map !== undefined && Object.hasOwn(map, key) ? map[key] : undefined;
}
