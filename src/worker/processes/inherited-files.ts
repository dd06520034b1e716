import { openSync, readdirSync, readFileSync } from 'node:fs';
import type { StdioOptions } from 'node:child_process';

const closeOnExec = 0o2000000;
/** Beyond what a runtime opens before this process begins. */
const highestNumber = 1_023;

let covers: ReadonlyMap<number, number> | undefined;

/**
 * The stdio of a child, with /dev/null in the place of each file that this process has itself inherited open (such as
 * the log of Lambda's runtime) and would else pass on: Node marks only the first few as its own.
 */
export function withoutInherited(stdio: readonly ('ignore' | 'pipe' | number)[]): StdioOptions {
  covers ??= coverInherited();
  const last = Math.max(stdio.length - 1, ...covers.keys());
  return Array.from({ length: last + 1 }, (_, number) => stdio[number] ?? covers?.get(number) ?? 'ignore');
}

/** Number of each inherited file → number of /dev/null. Linux only: elsewhere the numbers cannot be told. */
function coverInherited(): ReadonlyMap<number, number> {
  const found = inheritedNumbers();
  if (found.length === 0) return new Map();
  const nothing = openSync('/dev/null', 'r+');
  return new Map(found.map((number) => [number, nothing]));
}

function inheritedNumbers(): number[] {
  if (process.platform !== 'linux') return [];
  return namesIn('/proc/self/fdinfo')
    .map(Number)
    .filter((number) => number > 2 && number <= highestNumber && isPassedOn(number));
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function isPassedOn(number: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)/m.exec(
      readFileSync(`/proc/self/fdinfo/${String(number)}`, 'utf8'),
    )?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch {
    return false; // It was that of the listing itself.
  }
}
