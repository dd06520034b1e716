/** A list of numbers that an operator has left under a name for whoever goes on with its task; empty where it left none. */
export function keptNumbers(kept: unknown, name: string): readonly number[] {
  if (typeof kept !== 'object' || kept === null) return [];
  const value: unknown = Object.entries(kept).find(([key]) => key === name)?.[1];
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  return list.filter((each) => typeof each === 'number');
}
