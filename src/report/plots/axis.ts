/** A scale from values to places, with round ticks. */
export interface Axis {
  readonly ticks: readonly number[];
  place(value: number): number;
}

const steps = [1, 2, 5, 10] as const;

/** The least round step that makes at most `count` of a length; 1 for none. */
function roundStep(length: number, count: number): number {
  if (!(length > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(length / count));
  return power * (steps.find((step) => step * power * count >= length) ?? 10);
}

/**
 * An axis over `values` (and 0, where `fromZero`), from place `from` to place `to`. Ends are round numbers; without
 * values it goes from 0 to 1.
 */
export function axisOver(values: readonly number[], range: { readonly from: number; readonly to: number; readonly fromZero: boolean }): Axis {
  const finite = values.filter(Number.isFinite);
  const known = range.fromZero || finite.length === 0 ? [...finite, 0] : finite;
  const low = known.reduce((least, value) => Math.min(least, value), Infinity);
  const high = Math.max(low + 1e-9, known.reduce((most, value) => Math.max(most, value), -Infinity));
  const step = roundStep(high - low > 1e-6 ? high - low : 1, 6);
  const [first, last] = [Math.floor(low / step + 1e-9), Math.max(Math.ceil(high / step - 1e-9), Math.floor(low / step + 1e-9) + 1)];
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => Math.round((first + index) * step * 1e6) / 1e6);
  return { ticks, place: (value) => range.from + ((value - first * step) / ((last - first) * step)) * (range.to - range.from) };
}
