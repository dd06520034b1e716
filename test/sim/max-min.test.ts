import { expect, it } from 'vitest';
import { maxMinRates } from '../../src/sim/max-min.ts';

it('shares one link equally among its flows', () => {
  expect(
    maxMinRates(
      [12],
      [
        { links: [0], flows: 3 },
        { links: [0], flows: 1 },
      ],
    ),
  ).toEqual([3, 3]);
});

it('gives what a narrow link leaves over to those that do not pass it', () => {
  // Bertsekas and Gallager: one flow over both links, one on each; links of 1 and 2.
  const classes = [
    { links: [0, 1], flows: 1 },
    { links: [0], flows: 1 },
    { links: [1], flows: 1 },
  ];
  expect(maxMinRates([1, 2], classes)).toEqual([0.5, 0.5, 1.5]);
});

it('fills several bottlenecks one after the other', () => {
  const classes = [
    { links: [0], flows: 4 },
    { links: [0, 1], flows: 1 },
    { links: [1, 2], flows: 1 },
    { links: [2], flows: 1 },
  ];
  // Link 0 gives 10 / 5; then link 1 has 8 - 2 for one flow, link 2 has 10 / 2.
  expect(maxMinRates([10, 8, 10], classes)).toEqual([2, 2, 5, 5]);
});

it('never gives a flow more than the cap', () => {
  expect(
    maxMinRates(
      [12, 100],
      [
        { links: [0], flows: 6 },
        { links: [1], flows: 2 },
      ],
      5,
    ),
  ).toEqual([2, 5]);
  expect(
    maxMinRates(
      [12],
      [
        { links: [0], flows: 2 },
        { links: [], flows: 7 },
      ],
      5,
    ),
  ).toEqual([5, 5]);
});

it('gives nothing to classes without flows, and everything where nothing limits', () => {
  expect(
    maxMinRates(
      [12],
      [
        { links: [0], flows: 0 },
        { links: [], flows: 1 },
      ],
    ),
  ).toEqual([0, Infinity]);
  expect(maxMinRates([], [])).toEqual([]);
});
