import { describe, expect, it } from 'vitest';
import { outrider } from '../../../../../src/core/policy/outrider/outrider.ts';
import { times, viewOf } from '../../../../support/policy-views.ts';

const size = 1_000_000;
/** Empty tasks of a first wave that took long to begin, and later ones of a usual size that did not: 1 s each, and 0.3 s for `size`. */
const coldAndEmpty = [...times(3, { bytes: 0, doneMs: 1_000 }), ...times(4, { doneMs: 1_300 })];

/** What is proposed for a task that reads so many times `size`, has run for 5 s, and takes so long in all. */
const proposed = (sizes: number, wholeMs: number): readonly unknown[] => {
  const bytes = sizes * size;
  const running = [{ ranMs: 5_000, bytesRead: (5_000 / wholeMs) * bytes }];
  return outrider
    .propose(viewOf([...coldAndEmpty, { bytes, running }]))
    .map(({ kind, facts }) => [kind, Math.round((facts['slownessForInput'] ?? NaN) * 100) / 100]);
};

describe('outrider, of a task that reads far more than any that has finished', () => {
  it('takes what is in proportion to the largest of these for explained', () => {
    // The line through them would have 2.8 s for six times the size: 8.9 s are 1.14 times what is in proportion, 7.8 s.
    expect(proposed(6, 8_900)).toEqual([['decline', 1.14]]);
  });

  it('copies what is slower than that', () => {
    expect(proposed(6, 12_000)).toEqual([['backup', 1.54]]);
  });

  it('goes by the line through those that have finished for one that reads what they do', () => {
    expect(proposed(1, 8_900)).toEqual([['backup', 6.85]]);
  });
});
