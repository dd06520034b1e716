/** A scale from values to places, with round ticks. */
export interface Axis {
  readonly ticks: readonly number[];
  place(value: number): number;
}

const steps = [1, 2, 5, 10] as const;

/** The least round step that makes at most `count` of a length above 0. */
function roundStep(length: number, count: number): number {
  const power = 10 ** Math.floor(Math.log10(length / count));
  return power * (steps.find((step) => step * power * count >= length) ?? 10);
}

/**
 * An axis over `values` (and 0, where `fromZero`), from place `from` to place `to`. Ends are round numbers. A single
 * value has an axis of length 1, no values one from 0 to 1.
 */
export function axisOver(
  values: readonly number[],
  range: { readonly from: number; readonly to: number; readonly fromZero: boolean },
): Axis {
  const finite = values.filter(Number.isFinite);
  const known = range.fromZero || finite.length === 0 ? [...finite, 0] : finite;
  const low = known.reduce((least, value) => Math.min(least, value), Infinity);
  const most = known.reduce((greatest, value) => Math.max(greatest, value), -Infinity);
  const high = most > low ? most : low + 1;
  const step = roundStep(high - low, 6);
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  const ticks = Array.from(
    { length: last - first + 1 },
    (_, index) => Math.round((first + index) * step * 1e6) / 1e6,
  );
  return {
    ticks,
    place: (value) =>
      range.from + ((value - first * step) / ((last - first) * step)) * (range.to - range.from),
  };
}
