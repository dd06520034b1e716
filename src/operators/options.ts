import { InvalidInputError } from '../contracts/errors.ts';

/** Options of a stage as the spec gives them: JSON of unknown shape. */
export type Options = Readonly<Record<string, unknown>>;

/** The error for a wrong option: `details.field` is its path under `options`; `right` says what would do. */
export const wrongOption = (name: string, right: string): InvalidInputError =>
  new InvalidInputError(`options.${name} must be ${right}`, { field: `options.${name}` });

/** Refuses an option that the operator does not read: a slip of the pen must not pass silently. */
export function onlyOptions(options: Options, known: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const right = known.length === 0 ? 'there are none' : `known are ${known.join(', ')}`;
    throw new InvalidInputError(`options.${name} is not an option of this operator: ${right}`, {
      field: `options.${name}`,
    });
  }
}

/** A text option; throws where it is absent or no text. */
export function textOption(options: Options, name: string, right = 'a text'): string {
  const value = options[name];
  if (typeof value !== 'string') throw wrongOption(name, right);
  return value;
}

/** A true-or-false option, `fallback` where it is absent. */
export function flagOption(options: Options, name: string, fallback = false): boolean {
  const value = options[name] ?? fallback;
  if (typeof value !== 'boolean') throw wrongOption(name, 'true or false');
  return value;
}

/** A whole number within [min, max], `fallback` where it is absent. */
export function wholeOption(
  options: Options,
  name: string,
  { min, max, fallback }: { min: number; max: number; fallback?: number },
): number {
  const value = options[name] ?? fallback;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw wrongOption(name, `a whole number from ${String(min)} to ${String(max)}`);
  }
  return value;
}

/** A list of distinct texts, undefined where it is absent; throws where it is empty. */
export function textsOption(options: Options, name: string): readonly string[] | undefined {
  const value = options[name];
  if (value === undefined) return undefined;
  const right = 'a list of distinct texts, at least one';
  if (!Array.isArray(value) || value.length === 0) throw wrongOption(name, right);
  const texts = value.filter((item): item is string => typeof item === 'string');
  if (texts.length !== value.length || new Set(texts).size !== texts.length) throw wrongOption(name, right);
  return texts;
}
