/**
 * Whole parts of `total`, as equal as they can be, the larger first; they add up to `total`. Empty for no parts.
 */
export function splitEvenly(total: number, parts: number): number[] {
  const least = Math.floor(total / parts);
  const larger = total - least * parts;
  return Array.from({ length: parts }, (_, index) => (index < larger ? least + 1 : least));
}
