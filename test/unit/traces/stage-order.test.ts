import fc from 'fast-check';
import { expect, it } from 'vitest';
import { orderStages } from '../../../src/traces/stage-order.ts';
import { splitEvenly } from '../../../src/traces/split-evenly.ts';

const stage = (name: string, parents: number[], tasks = 1) => ({
  name,
  parents,
  tasks: Array.from({ length: tasks }, () => ({})),
});

it('keeps the order of the list where edges allow it', () => {
  expect(
    orderStages([stage('a', []), stage('b', [0]), stage('c', []), stage('d', [1, 2])])?.map((s) => [
      s.name,
      s.upstream,
    ]),
  ).toEqual([
    ['a', []],
    ['b', [0]],
    ['c', []],
    ['d', [1, 2]],
  ]);
});

it('lets children of a stage without tasks wait for its parents, across several', () => {
  const listed = [stage('a', []), stage('b', [0], 0), stage('c', [1], 0), stage('d', [2, 0]), stage('e', [])];
  expect(orderStages(listed)?.map((s) => [s.name, s.upstream])).toEqual([
    ['a', []],
    ['d', [0]],
    ['e', []],
  ]);
});

it('knows no order for a cycle, a loop, or an edge out of the list', () => {
  expect(orderStages([stage('a', [1]), stage('b', [0])])).toBeUndefined();
  expect(orderStages([stage('a', [0])])).toBeUndefined();
  expect(orderStages([stage('a', [3])])).toBeUndefined();
});

/** A graph without cycles, its stages listed in any order. */
const arbShuffledDag = fc.integer({ min: 1, max: 12 }).chain((count) =>
  fc.record({
    places: fc.shuffledSubarray([...Array(count).keys()], { minLength: count, maxLength: count }),
    edges: fc.array(fc.tuple(fc.nat(count - 1), fc.nat(count - 1)), { maxLength: 30 }),
  }),
);

it('puts every stage behind all its parents, and loses none', () => {
  fc.assert(
    fc.property(arbShuffledDag, ({ places, edges }) => {
      const parents = places.map((): number[] => []);
      for (const [a, b] of edges) {
        const [from, to] = [places[Math.min(a, b)], places[Math.max(a, b)]];
        if (a !== b && from !== undefined && to !== undefined) parents[to]?.push(from);
      }
      const ordered = orderStages(parents.map((list, index) => stage(index.toString(), list))) ?? [];
      expect(ordered.map((s) => Number(s.name)).sort((a, b) => a - b)).toEqual([...places.keys()]);
      for (const [index, placed] of ordered.entries()) {
        const names = placed.upstream.map((at) => Number(ordered[at]?.name)).sort((a, b) => a - b);
        expect(names).toEqual([...new Set(parents[Number(placed.name)])].sort((a, b) => a - b));
        expect(placed.upstream.every((at) => at < index)).toBe(true);
      }
    }),
  );
});

it('splits bytes evenly and wholly', () => {
  expect(splitEvenly(10, 3)).toEqual([4, 3, 3]);
  expect(splitEvenly(0, 2)).toEqual([0, 0]);
  expect(splitEvenly(2, 3)).toEqual([1, 1, 0]);
  expect(splitEvenly(5, 0)).toEqual([]);
});
