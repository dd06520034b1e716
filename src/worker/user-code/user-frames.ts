import { writeSync } from 'node:fs';

/** Scheme of the names that bundles give to a user's files in their source maps: `job:///lib/parse.ts`. */
export const userFileScheme = 'job:///';

const mostFrames = 4;
const longestStack = 16 * 1024;
const standardError = 2;

function stackOf(error: unknown): string {
  try {
    const stack = error instanceof Error ? error.stack : undefined;
    return typeof stack === 'string' ? stack.slice(0, longestStack) : '';
  } catch {
    return '';
  }
}

/**
 * Where in the user's files something was thrown, innermost first: `parse (lib/parse.ts:3:10)`, `job.ts:12:5`. Empty where
 * the code has no source map, and for what is no error.
 */
export const framesOf = (error: unknown): readonly string[] => framesIn(stackOf(error));

/** The same of a stack as text. */
export function framesIn(stack: string): readonly string[] {
  const frames = stack
    .split('\n')
    .filter((line) => /^\s*at /.test(line) && line.includes(userFileScheme))
    .map((line) => withUserFiles(line.replace(/^\s*at (?:async )?/, '').trim()))
    // A function without a name is told by its place alone.
    .map((frame) => frame.replace(/^<anonymous> \((.*)\)$/, '$1'));
  return frames.slice(0, mostFrames);
}

/** Users' files by the names that they know. */
const withUserFiles = (text: string): string =>
  text.replaceAll(/job:\/\/\/([^\s:)]*)/g, (_, name: string) => decoded(name));

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** Writes the stack of an error to standard error, which goes into the job's log. Never throws. */
export function tellStack(error: unknown): void {
  const stack = withUserFiles(stackOf(error));
  if (stack === '') return;
  try {
    writeSync(standardError, `${stack}\n`);
  } catch {
    // Nobody reads it any more.
  }
}

/** Writes an error and where in the user's files it came from as one line of standard error. Never throws. */
export function tellExit(called: Error): void {
  const frames = framesOf(called);
  try {
    writeSync(standardError, `${called.message}${frames.length === 0 ? '' : ` (at ${frames.join(', ')})`}\n`);
  } catch {
    // Nobody reads it any more.
  }
}
