import { closest, distance } from 'fastest-levenshtein';
import type { z } from 'zod';

/** The definition behind a schema, as far as it tells which fields it has. */
interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.core.$ZodType>>;
  readonly innerType?: z.core.$ZodType;
  readonly in?: z.core.$ZodType;
  readonly element?: z.core.$ZodType;
  readonly valueType?: z.core.$ZodType;
  readonly options?: readonly z.core.$ZodType[];
}

/** The names of the fields that an object at a path of the schema's data may have; of all alternatives of a union. */
export function knownFields(schema: z.core.$ZodType, path: readonly PropertyKey[]): readonly string[] {
  const { shape, innerType, in: input, element, valueType, options } = schema._zod.def as Definition;
  const inside = innerType ?? input;
  if (inside !== undefined) return knownFields(inside, path);
  if (options !== undefined) return options.flatMap((option) => knownFields(option, path));
  const [first, ...rest] = path;
  if (shape !== undefined) {
    if (first === undefined) return Object.keys(shape);
    const field = Object.hasOwn(shape, String(first)) ? shape[String(first)] : undefined;
    return field === undefined ? [] : knownFields(field, rest);
  }
  const each = element ?? valueType;
  return each === undefined || first === undefined ? [] : knownFields(each, rest);
}

/** Of some names the one that was most likely meant by a wrong one; undefined where none is like it. */
export function nearMiss(wrong: string, names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  const lower = wrong.toLowerCase();
  const near = closest(
    lower,
    names.map((name) => name.toLowerCase()),
  );
  const most = Math.max(1, Math.floor(wrong.length / 3));
  return distance(lower, near) <= most ? names.find((name) => name.toLowerCase() === near) : undefined;
}
