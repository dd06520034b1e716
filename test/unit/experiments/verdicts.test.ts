import { expect, it } from 'vitest';
import { claim, exactly, same, within } from '../../../src/experiments/checks.ts';
import {
  besideOthers,
  type Check,
  intervalOf,
  intervalText,
  runExperiment,
  verdictOf,
} from '../../../src/experiments/experiment.ts';
import { experiments } from '../../../src/experiments/registry.ts';

const shape = (ok: boolean): Check => claim('order', { paper: 'a > b', got: '2, 1', rule: 'a > b', ok });
const aside = (ok: boolean): Check =>
  claim('waste', { paper: 'more', got: 'less', rule: 'more', ok, kind: 'side' });

it.each([
  ['reproduced', [exactly('x', 5, 5), shape(true)]],
  ['reproduced', [same('x', 'B', 'B'), aside(false)]],
  ['same-shape', [exactly('x', 5, 6), shape(true)]],
  ['same-shape', [shape(true)]],
  ['differs', [exactly('x', 5, 5), shape(false)]],
  ['differs', [exactly('x', 5, 6), shape(false)]],
  // More of what counts is missed than holds: a shape alone does not make up for it.
  ['differs', [exactly('x', 5, 6), exactly('y', 5, 7), shape(true)]],
  ['differs', [exactly('x', 5, 6), aside(true), aside(true)]],
  ['same-shape', [exactly('x', 5, 6), exactly('y', 5, 7), exactly('z', 5, 5), shape(true)]],
])('says %s', (verdict, checks) => {
  expect(verdictOf(checks)).toBe(verdict);
});

it('holds exact numbers to a millionth, and nothing for no number', () => {
  expect(exactly('x', 1 / 3, 0.333333)).toMatchObject({ ok: true, paper: 0.333, got: 0.333 });
  expect(exactly('x', 1 / 3, 0.3333)).toMatchObject({ ok: false });
  expect(exactly('x', 1 / 3, undefined)).toMatchObject({ ok: false, got: 'nothing' });
});

it('lets noise count for no more than the tolerance', () => {
  const noisy = { mean: 70, low: 40, high: 100 };
  expect(within('x', 100, { mean: 91, low: 87, high: 95 }, { tolerance: 5, why: '5 %' }).ok).toBe(true);
  expect(within('x', 100, { mean: 90, low: 89, high: 91 }, { tolerance: 5, why: '5 %' }).ok).toBe(false);
  expect(within('x', 100, noisy, { tolerance: 5, why: '5 %' }).ok).toBe(false);
  expect(within('x', 100, noisy, { tolerance: 5, why: 'noise alone', mostNoise: 30 }).ok).toBe(true);
});

it('gives the interval of Student over runs', () => {
  // t(0.975, 3) = 3.182; the standard deviation is 1.291, over the root of 4.
  expect(intervalOf([1, 2, 3, 4])).toEqual({ mean: 2.5, low: 0.446, high: 4.554 });
  expect(intervalText({ mean: 2.5, low: 0.446, high: 4.554 })).toBe('2.5 ± 2.1');
});

it('names seeds after the one that is given', async () => {
  const seen: string[] = [];
  const { result } = await runExperiment(
    {
      name: 'none',
      title: '',
      source: '',
      defaultSeeds: 1,
      traces: [],
      run: async ({ seeds }) => {
        seen.push(...seeds);
        return { rows: [], checks: [] };
      },
    },
    { seed: 7, count: 3 },
  );
  expect(seen).toEqual(['7/0', '7/1', '7/2']);
  expect(result).toEqual({ name: 'none', seed: 7, seeds: 3, rows: [], checks: [], verdict: 'same-shape' });
});

it('lists each experiment once, under the name that scripts rely on', () => {
  const names = experiments.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(
    expect.arrayContaining([
      'late-sleep',
      'late-mixes',
      'late-examples',
      'mantri-example',
      'mantri-restart',
      'mantri-placement',
      'policies-on-traces',
      'fair-sharing',
      'slot-hand-over',
      'jockey-prediction',
      'jockey-indicators',
    ]),
  );
});

it('takes the worst verdict of all seeds, and says what another seed turned', () => {
  const result = (seed: number, checks: readonly Check[]) => ({
    ...{ name: 'x', seed, seeds: 10, rows: [], checks },
    verdict: verdictOf(checks),
  });
  const first = result(1, [exactly('x', 5, 5), shape(true), aside(true)]);
  const second = result(2, [exactly('x', 5, 6), shape(true), aside(false)]);
  expect(besideOthers(first, [second])).toEqual({
    ...first,
    verdict: 'same-shape',
    others: [{ seed: 2, verdict: 'same-shape', turned: ['x'] }],
  });
  expect(besideOthers(second, [first]).verdict).toBe('same-shape');
  expect(besideOthers(first, [first])).toMatchObject({ verdict: 'reproduced', others: [{ turned: [] }] });
});
