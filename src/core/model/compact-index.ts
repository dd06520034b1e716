import type { Numbers, TaskResult } from '../../contracts/records.ts';

const largestU32 = 0xffff_ffff;

/** The same numbers in 4 bytes each where they fit, else in 8. */
function packed(numbers: Numbers): Numbers {
  for (let at = 0; at < numbers.length; at++) {
    const number = numbers[at] ?? 0;
    if (!Number.isInteger(number) || number < 0 || number > largestU32) return Float64Array.from(numbers);
  }
  return Uint32Array.from(numbers);
}

/** A result as the scheduler keeps it: of ten thousand with a hundred partitions each the lists are what takes memory. */
export function compactResult(result: TaskResult): TaskResult {
  const { partitions, final } = result;
  // Finish alone makes parts of the output, and reads them for itself.
  if (final?.kind === 'inline') return { ...result, final: { kind: 'empty' } };
  if (partitions === undefined) return result;
  return { ...result, partitions: { lengths: packed(partitions.lengths), crcs: packed(partitions.crcs) } };
}

/** Whether two lists hold the same numbers, however they are kept. */
export function sameNumbers(left: Numbers = [], right: Numbers = []): boolean {
  if (left.length !== right.length) return false;
  for (let at = 0; at < left.length; at++) if (left[at] !== right[at]) return false;
  return true;
}
