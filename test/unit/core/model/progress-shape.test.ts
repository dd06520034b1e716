import { describe, expect, it } from 'vitest';
import {
  evenShape,
  type Course,
  levelOf,
  shapeOf,
  stretchOf,
  unseenShape,
} from '../../../../src/core/model/progress-shape.ts';

/** A task of 1,000 bytes that reported so, as [time, bytes]. */
const task = (runMs: number, ...reports: readonly (readonly [number, number])[]): Course => ({
  reports: reports.map(([workedMs, bytesRead]) => ({ workedMs, bytesRead })),
  bytesTotal: 1_000,
  runMs,
});
const three = (course: Course): readonly Course[] => [course, course, course];

/** After what share of the time 10, 50 and 90 % are read, and by how much each may be wrong. */
function told(courses: readonly Course[]): readonly (readonly [number, number])[] {
  const { reachedAt, errors } = shapeOf(courses);
  return [100, 500, 900].map((bytes) => {
    const level = levelOf(bytes, 1_000);
    return [Number(reachedAt[level]?.toFixed(3)), Number(errors[level]?.toFixed(3))];
  });
}

describe('the shape of progress, from tasks that have finished', () => {
  it('is supposed to be even where they ended before they reported anything, and where fewer than three did report', () => {
    expect(shapeOf(three(task(1_300)))).toEqual(evenShape);
    expect(shapeOf([task(1_300, [650, 100]), task(1_300, [650, 100]), task(1_300)])).toEqual(evenShape);
    expect(shapeOf([...three(task(1_300, [650, 100])), task(1_300)]).tasks).toBe(3);
  });

  it('goes on evenly from the last report to the end, with the doubt that nobody has seen it', () => {
    // 10 % after half of the time: 50 and 90 % after 5/18 and 16/18 of the other half, 0.5 / sqrt(12) = 0.144 of the whole in doubt.
    expect(told(three(task(1_000, [500, 100])))).toEqual([
      [0.5, 0.05],
      [0.722, 0.2],
      [0.944, 0.153],
    ]);
    // Nothing was read when it was seen: 0.1, 0.5 and 0.9 of what was left then, which is a tenth.
    expect(told(three(task(1_000, [900, 0])))).toEqual([
      [0.91, 0.05],
      [0.95, 0.05],
      [0.99, 0.05],
    ]);
    // Seen at the very begin alone: not better than what is supposed of tasks that nobody has seen.
    expect(told(three(task(1_000, [1, 1])))).toEqual([
      [0.1, 0.3],
      [0.5, 0.3],
      [0.9, 0.3],
    ]);
  });

  it('is as they reported it where they did, also where all was read long before the end', () => {
    expect(told(three(task(1_000, [100, 500], [200, 1_000])))).toEqual([
      [0.02, 0.05],
      [0.1, 0.05],
      [0.18, 0.05],
    ]);
  });
});

describe('the shape of progress, where another scheduler saw part of it', () => {
  /** Taken over when it had run for 500 of 1,000 ms and read a tenth. */
  const takenOver: Course = { ...task(1_000, [500, 100], [750, 550], [1_000, 1_000]), unseenMs: 500 };
  const level = (bytes: number): number => levelOf(bytes, 1_000);

  it('is not known where nobody of this one saw it, and is as reported from there', () => {
    const shape = shapeOf(three(takenOver));
    expect(shape.isPartial).toBe(true);
    expect([10, 50, 100].map((bytes) => shape.reachedAt[level(bytes)])).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(shape.reachedAt[level(550)]).toBe(0.75);
    // A task before that is somewhere in the time until then; one behind it where its like were.
    expect(stretchOf(shape, level(50))[0]).toBe(0);
    expect(stretchOf(shape, level(50))[1]).toBeCloseTo(0.5 + (0.25 * 50) / 450);
    expect(stretchOf(shape, level(550))[0]).toBe(0.75);
  });

  it('is learnt whole from as many as it takes that were seen from their beginning', () => {
    const seen = task(1_000, [400, 100], [1_000, 1_000]);
    const shape = shapeOf([...three(takenOver), ...three(seen)]);
    expect(shape.isPartial).toBeUndefined();
    expect(shape.reachedAt[level(100)]).toBe(0.4);
    expect(shapeOf([...three(takenOver), seen, seen]).isPartial).toBe(true);
  });

  it('is nothing but its ends where none was seen on its way', () => {
    expect(stretchOf(unseenShape, 0)).toEqual([0, 1]);
    expect(stretchOf(unseenShape, level(500))).toEqual([0, 1]);
    expect(stretchOf(unseenShape, level(1_000))).toEqual([0, 1]);
  });
});
