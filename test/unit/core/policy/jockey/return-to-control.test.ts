import { expect, it } from 'vitest';
import { mayReturn } from '../../../../../src/core/policy/jockey/return-to-control.ts';

it.each([
  ['after a while', 600, 1.9, true],
  ['not before', 599, 1, false],
  ['not while its work is more than twice what was foretold', 6_000, 2.1, false],
  ['nor less than half', 6_000, 0.49, false],
])('goes by its forecast again when that holds again: %s', (_name, sinceMs, factor, may) => {
  const work = { factor, spread: 0.1, weight: 1, queueFactor: 1, tasks: 30 };
  const fallen = { reason: 'wrong-forecast', periodMs: 60, isChanged: true } as const;
  expect(mayReturn({ ...fallen, sinceMs, work })).toBe(may);
});
