import { describe, expect, it } from 'vitest';
import { type ExperimentResult, runExperiment } from '../../src/experiments/experiment.ts';
import { experiments } from '../../src/experiments/registry.ts';
import { isWhole } from '../support/draws.ts';

/** Long on a busy machine; nothing is timed. */
const timeoutMs = 600_000;

async function resultOf(name: string, count: number): Promise<ExperimentResult> {
  const experiment = experiments.find((each) => each.name === name);
  if (experiment === undefined) throw new Error(`no experiment ${name}`);
  return (await runExperiment(experiment, { seed: 1, count })).result;
}

const failedOf = ({ checks }: ExperimentResult): string[] =>
  checks.filter(({ ok }) => !ok).map(({ what }) => what);

describe('the worked examples', () => {
  it.each(['late-examples', 'mantri-example'])('of %s come out exactly', async (name) => {
    const result = await resultOf(name, 3);
    expect(failedOf(result)).toEqual([]);
    expect(result.verdict).toBe('reproduced');
  });
});

describe('the sleep experiment', () => {
  it(
    'has the times of the paper; what it wastes is not explained',
    async () => {
      const result = await resultOf('late-sleep', 8);
      expect(failedOf(result)).toEqual([
        'wasted by native, s a node',
        'SlowNodeThreshold 0, 5, 10, 25, 50 %',
        'native wastes more than LATE with a cap of 20 %',
        'more waste with a cap of 10 % than of 20 %',
      ]);
      expect(result.verdict).toBe('same-shape');
    },
    timeoutMs,
  );

  it(
    'is the same, byte for byte, for the same seed',
    async () => {
      expect(JSON.stringify(await resultOf('late-sleep', 1))).toBe(
        JSON.stringify(await resultOf('late-sleep', 1)),
      );
    },
    timeoutMs,
  );
});

describe('LATE on mixed machines', () => {
  it(
    'is fastest but on the small local cluster',
    async () => {
      // Of three runs it hangs on where tasks come to be whether native is behind by a twentieth.
      const result = await resultOf('late-mixes', 10);
      expect(failedOf(result)).toEqual([
        // Native is behind, by less than in the paper and by much more in some runs than in others.
        'EC2 Sort, mixed hosts: LATE faster than hadoop, %',
        'EC2 Sort, stragglers: LATE faster than hadoop, %',
        'local Sort, mixed hosts: hadoop against late',
        'local Sort, mixed hosts: hadoop against none',
        // The same cause: a copy elsewhere reads from the slow disk as the original does, and gains little.
        'local Sort, mixed hosts: LATE faster than none, %',
        'local Sort, mixed hosts: LATE faster than hadoop, %',
      ]);
    },
    timeoutMs,
  );
});

describe('Mantri against other schemes', () => {
  it(
    'beats them with fewer resources, at every percentile',
    async () => {
      const result = await resultOf('mantri-restart', 2);
      const beaten = result.checks.filter(({ what }) => what.startsWith('Mantri'));
      expect(beaten.length).toBeGreaterThan(0);
      expect(beaten.filter(({ kind, ok }) => kind === 'shape' && !ok)).toEqual([]);
    },
    timeoutMs,
  );
});

// With fewer draws it is left out: minutes, of what comes out alike until a rule or the simulator is changed.
describe.skipIf(!isWhole)('the experiment on lost outputs', () => {
  it(
    'has jobs end nearly as soon as where nothing is lost, by little traffic; of few losses shares say little',
    async () => {
      const { checks, rows } = await resultOf('mantri-recompute', 1);
      const aboveIdeal = (losses: string, protection: string): number =>
        Number.parseFloat(
          String(
            rows.find((row) => row['losses'] === losses && row['protection'] === protection)?.[
              'aboveIdealPct'
            ],
          ),
        );
      expect(aboveIdeal('as in the paper', 'both')).toBeLessThanOrEqual(5);
      expect(aboveIdeal('far more often', 'both')).toBeLessThanOrEqual(
        aboveIdeal('far more often', 'none') / 2,
      );
      const judged = checks.filter(({ kind }) => kind !== 'side');
      expect(judged.length).toBe(7);
      expect(judged.flatMap(({ ok, what }) => (ok ? [] : [what]))).toEqual([
        // Of eight losses it hangs on each whether protection gains.
        'reduction of the completion of jobs that recompute, at the median, %',
        'completion beside IdealRecompute, over all jobs',
        'recomputations avoided by replication and by pre-computation, of all seeds',
        'pre-computations that become useful, after one loss and after two in quick succession, of all seeds',
      ]);
    },
    timeoutMs,
  );
});
