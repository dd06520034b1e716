import { expect, it } from 'vitest';
import { simulate } from '../../src/sim/simulate.ts';
import { everythingFails, scenarioOf } from './scenarios.ts';

const scenario = scenarioOf(everythingFails);

it('gives the same trace, byte for byte, for the same scenario and seed', async () => {
  const first = await simulate(scenario, { seed: '7', trace: true });
  const second = await simulate(scenario, { seed: '7', trace: true });
  expect(second.trace.join('\n')).toBe(first.trace.join('\n'));
  expect(second).toEqual(first);
  expect(first.trace.length).toBeGreaterThan(1_000);
});

it('gives the same result whether or not a trace is kept', async () => {
  const { trace, ...traced } = await simulate(scenario, { seed: '8', trace: true });
  const { trace: none, ...untraced } = await simulate(scenario, { seed: '8' });
  expect(untraced).toEqual(traced);
  expect(none).toEqual([]);
  expect(trace).not.toEqual([]);
});

it('gives other traces for other seeds', async () => {
  const [one, other] = [
    await simulate(scenario, { seed: '1', trace: true }),
    await simulate(scenario, { seed: '2', trace: true }),
  ];
  expect(one.trace.join('\n')).not.toBe(other.trace.join('\n'));
});
