import { describe, expect, it } from 'vitest';
import { evenShape, type Course, levelOf, shapeOf } from '../../../../src/core/model/progress-shape.ts';

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
    // 10 % after half of the time: 50 and 90 % after 5/18 and 16/18 of the other half, 0.5 / sqrt(12) = 0.144 of the whole in doubt;
    // so is when it came to the 10 % before.
    expect(told(three(task(1_000, [500, 100])))).toEqual([
      [0.5, 0.289],
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
    // Nobody saw when in the tenth before each report.
    expect(told(three(task(1_000, [100, 500], [200, 1_000])))).toEqual([
      [0.02, 0.3],
      [0.1, 0.289],
      [0.18, 0.16],
    ]);
  });

  it('knows of levels that a first report is past when others came there who were seen on their way', () => {
    // A slow start: by 45 % of their time four have read 10 % and more; one had read next to nothing by 35 %, and comes to 10 %
    // after 0.35 + 0.65 · 99/999 of its time. A line from the beginning would have four of them come to it within a quarter.
    const past = [0, 1, 2, 3].map(() => task(2_000, [900, 200]));
    expect(told([...past, task(2_000, [700, 1])])[0]?.[0]).toBe(0.414);
    // It came to 10 % later than the others are known to have been there: no sooner than to 7.5 %, 0.4 + 0.6 · 74/999 of its time.
    expect(told([...past, task(2_000, [800, 1])])[0]?.[0]).toBe(0.444);
    // Nobody was seen on the way: by the line.
    expect(told(past)[0]?.[0]).toBe(0.225);
  });

  it('is found where tasks of unequal length have been seen between few reports, which a line between those misses', () => {
    // A slow start: 5 % after 40 % of the time, the rest evenly; reports after 1.2 and 4.7 s, as workers write fewer and fewer.
    const readAfter = (share: number): number =>
      share <= 0.4 ? share * 125 : Math.min(1_000, 50 + ((share - 0.4) / 0.6) * 950);
    const reporting = (runMs: number): Course =>
      task(
        runMs,
        ...[1_200, 4_700]
          .filter((ms) => ms < runMs)
          .map((ms) => [ms, Math.round(readAfter(ms / runMs))] as const),
      );
    const courses = [4_000, 6_500, 7_000, 7_500, 8_000, 8_500, 9_000, 15_000].map(reporting);
    // The truth is 0.32: the shortest had not come to 4 % by 0.3, the longest by 0.313 (3.9 %). Lines make it 0.19.
    const share = shapeOf(courses).reachedAt[levelOf(40, 1_000)] ?? 0;
    expect(share).toBeGreaterThan(0.31);
    expect(share).toBeLessThan(0.34);
  });

  it('is not what one task makes of it that is like no other', () => {
    // Even progress, seen once, half-way; one stood still from there on for as long again.
    const like = Array.from({ length: 31 }, (_, place) => task(2_000, [1_000, 450 + 5 * place]));
    const courses = [...like, task(4_000, [1_000, 500], [3_600, 520])];
    const { reachedAt } = shapeOf(courses);
    expect(reachedAt[levelOf(400, 1_000)]).toBeCloseTo(0.4, 1);
    expect(reachedAt[levelOf(600, 1_000)]).toBeCloseTo(0.6, 1);
  });

  it('never falls from one level to the next', () => {
    const courses = [
      ...[0, 1, 2].map(() => task(2_000, [900, 25])),
      task(2_000, [860, 5], [1_000, 900]),
      task(20_000, [900, 15]),
    ];
    const { reachedAt } = shapeOf(courses);
    expect(reachedAt).toEqual([...reachedAt].sort((a, b) => a - b));
  });
});
