import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  forecastLinks,
  linksForPlacement,
  placementCost,
  placeTasks,
  type PlacementProblem,
} from '../../../../src/core/policy/mantri/placement.ts';
import { spreadTasks } from '../../../../src/core/policy/mantri/spread-tasks.ts';
import { createRng } from '../../../../src/lib/rng.ts';

const alike = (inputs: PlacementProblem['inputs'], ...links: readonly number[]): PlacementProblem => ({
  inputs,
  up: links.map(() => 1),
  down: links,
});

const ones = alike(
  [1, 1, 1].map(() => [1, 1, 1]),
  1,
  1,
  1,
);
const rows = [
  [6, 2, 1],
  [1, 5, 3],
  [2, 2, 8],
  [4, 4, 4],
];
const even = alike(rows, 1, 1, 1);

describe('the cost of a placement', () => {
  it.each([
    [ones, [0, 1, 2], 2],
    [ones, [0, 0, 1], 4],
    [ones, [0, 0, 0], 6],
    [even, [0, 2, 2, 1], 10],
    [even, [0, 1, 2, 0], 11],
    [even, [0, 1, 2, 1], 12],
    [even, [0, 1, 2, 2], 12],
    [even, [0, 0, 0, 0], 29],
    [alike(rows, 1, 1, 0.5), [0, 0, 2, 1], 11],
  ])('is that of the slowest link, %#', (problem, locations, cost) => {
    expect(placementCost(problem, locations)).toBe(cost);
  });
});

describe('placing tasks', () => {
  it('finds the best placement, of equals the first', () => {
    expect(placeTasks(ones)).toEqual({ locations: [0, 1, 2], cost: 2, atLeast: 2 });
    expect(placeTasks(even)).toEqual({ locations: [0, 2, 2, 1], cost: 10, atLeast: 10 });
  });

  it('spares a slow link', () => {
    expect(placeTasks(alike(rows, 1, 1, 0.5))).toEqual({ locations: [0, 0, 2, 1], cost: 11, atLeast: 11 });
  });

  it('puts all where all input is, as far as there is room', () => {
    const inputs = [3, 2, 2].map((bytes) => [0, bytes]);
    const problem = { inputs, up: [1, 1], down: [1, 1] };
    expect(placeTasks(problem)).toEqual({ locations: [1, 1, 1], cost: 0, atLeast: 0 });
    expect(placeTasks({ ...problem, room: [9, 2] })).toEqual({ locations: [1, 0, 1], cost: 2, atLeast: 2 });
  });

  it('places nothing, or all in the one location', () => {
    expect(placeTasks({ inputs: [], up: [1, 1], down: [1, 1] })).toEqual({
      locations: [],
      cost: 0,
      atLeast: 0,
    });
    const many = Array.from({ length: 5_000 }, () => [7]);
    expect(placeTasks({ inputs: many, up: [1], down: [1] })).toMatchObject({ cost: 0, atLeast: 0 });
  });

  it('refuses less room than tasks, and links that carry nothing', () => {
    expect(() => placeTasks({ ...ones, room: [1, 1, 0] })).toThrow('too little room');
    expect(() => placeTasks(alike(rows, 1, 0, 1))).toThrow('carries nothing');
  });

  it('spreads a thousand tasks over 150 racks to within a tenth of what no placement can be below', () => {
    const rng = createRng('placement');
    const inputs = Array.from({ length: 1_000 }, () => {
      const size = 1 + 9 * rng.next() ** 3;
      return Array.from({ length: 150 }, () => size * rng.next());
    });
    const links = (): number[] => Array.from({ length: 150 }, () => 0.3 + rng.next());
    const problem = { inputs, up: links(), down: links(), room: inputs.slice(0, 150).map(() => 20) };
    const { locations, cost, atLeast } = placeTasks(problem);
    expect(cost).toBe(placementCost(problem, locations));
    expect(cost / atLeast).toBeGreaterThanOrEqual(1);
    expect(cost / atLeast).toBeLessThan(1.1);
    const taken = problem.room.map((_, k) => locations.filter((place) => place === k).length);
    expect(Math.max(...taken)).toBeLessThanOrEqual(20);
  });
});

/** Every placement, one after the other: cost by the definition, sums over pairs of locations. */
function bruteForce({ inputs, up, down, room }: PlacementProblem): number {
  const r = up.length;
  let least = Infinity;
  for (let code = 0; code < r ** inputs.length; code++) {
    const at = inputs.map((_, task) => Math.floor(code / r ** task) % r);
    if (up.some((_, k) => at.filter((place) => place === k).length > (room?.[k] ?? Infinity))) continue;
    const times = up.flatMap((_, k) => {
      let [out, into] = [0, 0];
      inputs.forEach((row, task) => {
        if (at[task] !== k) out += row[k] ?? 0;
        else into += row.reduce((sum, bytes, j) => (j === k ? sum : sum + bytes), 0);
      });
      return [out / (up[k] ?? 0), into / (down[k] ?? 0)];
    });
    least = Math.min(least, Math.max(...times));
  }
  return least;
}

const problems: fc.Arbitrary<PlacementProblem> = fc
  .tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 0, max: 5 }))
  .chain(([r, n]) => {
    const links = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: r, maxLength: r });
    const bytes = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 1_000 }));
    const row = fc.array(bytes, { minLength: r, maxLength: r });
    return fc.record({
      inputs: fc.array(row, { minLength: n, maxLength: n }),
      up: links,
      down: links,
      room: fc
        .array(fc.integer({ min: 0, max: 5 }), { minLength: r, maxLength: r })
        .map((room) => [...room.slice(1), n]),
    });
  });

const rounding = 1e-9;

describe('against all placements, one by one', () => {
  it('an exact answer is the least', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const { cost, atLeast, locations } = placeTasks(problem);
        expect(cost).toBeCloseTo(bruteForce(problem), 6);
        expect(atLeast).toBe(cost);
        expect(placementCost(problem, locations)).toBe(cost);
      }),
      { numRuns: 300 },
    );
  });

  it('the search is between the least and what it proves, and keeps to the room', () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const { locations, atLeast } = spreadTasks(problem, 60);
        const least = bruteForce(problem);
        expect(atLeast).toBeLessThanOrEqual(least * (1 + rounding) + rounding);
        expect(placementCost(problem, locations)).toBeGreaterThanOrEqual(least * (1 - rounding));
        problem.up.forEach((_, k) => {
          expect(locations.filter((place) => place === k).length).toBeLessThanOrEqual(problem.room?.[k] ?? 0);
        });
      }),
      { numRuns: 300 },
    );
  });
});

it('goes by the links of the start for a small phase, by equal ones for a large', () => {
  const atStart = { up: [1, 2], down: [3, 6] };
  expect(linksForPlacement(atStart, 100, 100)).toBe(atStart);
  expect(linksForPlacement(atStart, 101, 100)).toEqual({ up: [3, 3], down: [3, 3] });
});

describe('a forecast of links', () => {
  const now = { up: [10, 2], down: [4, 0] };
  const usual = { up: [4, 8], down: [4, 6] };

  it('weighs now by (1 - 1/e) where the phase lasts as long as loads do', () => {
    const { up, down } = forecastLinks({ now, usual, duration: 30, persistence: 30 });
    expect(up[0]).toBeCloseTo(7.792723, 6);
    expect(up[1]).toBeCloseTo(4.207277, 6);
    expect(down[0]).toBeCloseTo(4, 12);
    expect(down[1]).toBeCloseTo(2.207277, 6);
  });

  it('weighs now by (1 - 1/e²)/2 where it lasts twice as long', () => {
    const { up } = forecastLinks({ now, usual, duration: 2, persistence: 1 });
    expect(up[0]).toBeCloseTo(6.593994, 6);
  });

  it('is what is now for phases of no time, and what is usual where loads do not last', () => {
    expect(forecastLinks({ now, usual, duration: 0, persistence: 5 })).toEqual(now);
    expect(forecastLinks({ now, usual, duration: 7, persistence: 0 })).toEqual(usual);
    expect(forecastLinks({ now, usual, duration: 7, persistence: Infinity })).toEqual(now);
  });
});

it('places the same where less is proven', () => {
  const rng = createRng('proof');
  const inputs = Array.from({ length: 60 }, () => Array.from({ length: 12 }, () => rng.next()));
  const problem = { inputs, up: inputs.slice(0, 12).map(() => 1), down: inputs.slice(0, 12).map(() => 1) };
  const [much, nothing] = [placeTasks(problem), placeTasks(problem, 0)];
  expect(nothing.locations).toEqual(much.locations);
  expect(nothing.atLeast).toBeLessThanOrEqual(much.atLeast);
});
