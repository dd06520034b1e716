import { limits } from '../contracts/limits.ts';
import { takesName } from '../contracts/own-counters.ts';
import { UserCodeError } from './operator.ts';

/** A value in a message, short enough whatever it is. */
function shown(value: unknown): string {
  if (typeof value === 'string') {
    const text = value.length > 40 ? `${value.slice(0, 40)}…` : value;
    return JSON.stringify(text.toWellFormed());
  }
  if (typeof value === 'bigint') return 'a bigint';
  if (typeof value === 'number' || typeof value === 'boolean')
    return Object.is(value, -0) ? '-0' : String(value);
  if (value === undefined || value === null) return String(value);
  return `a value of type ${typeof value}`;
}

function checkName(name: unknown): asserts name is string {
  const isGood =
    typeof name === 'string' &&
    name !== '' &&
    name.length <= limits.counterNameChars &&
    name.isWellFormed() &&
    !/\p{Cc}/u.test(name);
  if (isGood) return;
  throw new UserCodeError(
    `count: the name of a counter must be 1 to ${String(limits.counterNameChars)} characters of Unicode without control characters, not ${shown(name)}`,
  );
}

/** Whether as many names are taken as a task may count under. */
const hasAllNames = (counters: ReadonlyMap<string, number>): boolean =>
  counters.size >= limits.countersPerTask &&
  [...counters.keys()].filter(takesName).length >= limits.countersPerTask;

/**
 * Adds to a counter of a task. Throws `UserCodeError`, and adds nothing, where name or number could not be kept in a
 * record and read again, or where the task would count under too many names.
 */
export function addToCounter(counters: Map<string, number>, name: unknown, by: unknown): void {
  checkName(name);
  if (typeof by !== 'number' || !Number.isFinite(by)) {
    throw new UserCodeError(
      `count(${shown(name)}, …): what is added must be a finite number, such as 1, not ${shown(by)}`,
    );
  }
  const before = counters.get(name);
  if (before === undefined && takesName(name) && hasAllNames(counters)) {
    throw new UserCodeError(
      `count(${shown(name)}, …): a task may count under at most ${String(limits.countersPerTask)} names`,
    );
  }
  const sum = (before ?? 0) + by;
  if (Math.abs(sum) > limits.counterSum) {
    throw new UserCodeError(
      `count(${shown(name)}, …): the sum must be from -${String(limits.counterSum)} to ${String(limits.counterSum)}, not ${String(sum)}`,
    );
  }
  counters.set(name, sum + 0); // Makes 0 of -0, which JSON would not keep.
}
