import type { z } from 'zod';

/** Wrong context values: told in one line, since a stack trace would say nothing more. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Context that is not ours: of the CDK (its keys hold a colon or a slash, and name libraries, lookups and flags) and of
 * what its command adds.
 */
const isForeign = (key: string): boolean => /[:/@]/.test(key);

/** The known key that a wrong one was most likely meant to be: the same but for case, "-" and "_", or one that it begins. */
function meant(key: string, known: readonly string[]): string | undefined {
  const plain = (text: string): string => text.toLowerCase().replace(/[-_]/g, '');
  return (
    known.find((each) => plain(each) === plain(key)) ??
    known.find((each) => plain(each).startsWith(plain(key)) || plain(key).startsWith(plain(each)))
  );
}

/** Throws `ConfigError` where the context holds a key that nobody reads. */
export function refuseUnknown(given: readonly string[], known: readonly string[]): void {
  for (const key of given) {
    if (known.includes(key) || isForeign(key)) continue;
    const near = meant(key, known);
    const hint = near === undefined ? `one of ${known.join(', ')}` : `"${near}" perhaps`;
    throw new ConfigError(`context "${key}": there is no such setting; ${hint}`);
  }
}

/** What is wrong with a context, by its first problem: the key, the value as it was given, and what would be right. */
export function contextProblem(error: z.ZodError, given: Readonly<Record<string, unknown>>): ConfigError {
  const [issue] = error.issues;
  const key = String(issue?.path[0]);
  const value = given[key];
  const shown = typeof value === 'string' ? `"${value.slice(0, 80)}"` : JSON.stringify(value);
  return new ConfigError(`context "${key}": ${issue?.message ?? 'is wrong'}, not ${shown}`);
}
