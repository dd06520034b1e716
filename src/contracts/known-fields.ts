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

/** What an object may be made of: one of the alternatives where it is a union. */
export interface ObjectForm {
  readonly names: readonly string[];
  /** Those of them that cannot be left out. */
  readonly required: readonly string[];
}

/** The forms that an object at a path of the schema's data may have; none where there is no object. */
export function formsAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): readonly ObjectForm[] {
  const { shape, innerType, in: input, element, valueType, options } = schema._zod.def as Definition;
  const inside = innerType ?? input;
  if (inside !== undefined) return formsAt(inside, path);
  if (options !== undefined) return options.flatMap((option) => formsAt(option, path));
  const [first, ...rest] = path;
  if (shape !== undefined) {
    if (first === undefined) {
      const names = Object.keys(shape);
      return [{ names, required: names.filter((name) => shape[name]?._zod.optin === undefined) }];
    }
    const field = Object.hasOwn(shape, String(first)) ? shape[String(first)] : undefined;
    return field === undefined ? [] : formsAt(field, rest);
  }
  const each = element ?? valueType;
  return each === undefined || first === undefined ? [] : formsAt(each, rest);
}

const quoted = (names: readonly string[]): string => names.map((name) => `"${name}"`).join(' and ');

/**
 * What is wrong with a field that an object must not have: it belongs to another form than the rest of the object, or is none at
 * all; then also which was likely meant. `given` are all fields of the object.
 */
export function strangerText(
  stranger: string,
  given: readonly string[],
  forms: readonly ObjectForm[],
): string {
  const sharesOf = ({ names }: ObjectForm): number => given.filter((name) => names.includes(name)).length;
  // A form that knows the field would not have refused it.
  const others = forms.filter(({ names }) => !names.includes(stranger));
  const most = Math.max(...others.map(sharesOf));
  const meant = others.filter((form) => sharesOf(form) === most).flatMap(({ names }) => names);
  const own = forms.find(({ names }) => names.includes(stranger));
  const beside = given.filter((name) => meant.includes(name) && own?.names.includes(name) === false);
  if (own !== undefined && beside.length > 0) {
    const missing = own.required.filter((name) => !given.includes(name));
    return `must be left out beside ${quoted(beside)}${missing.length === 0 ? '' : `: it goes with ${quoted(missing)}`}`;
  }
  const near = nearMiss(stranger, meant);
  return `is not a known field${near === undefined ? '' : `; did you mean "${near}"?`}`;
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
