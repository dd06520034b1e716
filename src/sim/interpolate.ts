/** The value at `x` on straight lines between points in ascending order; the ends hold beyond them. */
export function interpolate(points: readonly (readonly [number, number])[], x: number): number {
  let before = points[0] ?? [0, 0];
  for (const point of points) {
    if (x <= point[0]) {
      const width = point[0] - before[0];
      return width === 0 ? point[1] : before[1] + ((point[1] - before[1]) * (x - before[0])) / width;
    }
    before = point;
  }
  return before[1];
}
