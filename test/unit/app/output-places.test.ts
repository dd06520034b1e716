import { describe, expect, it } from 'vitest';
import { OutputPlaces } from '../../../src/app/output-places.ts';
import type { Plan } from '../../../src/contracts/plan.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { applyDecisions } from '../../../src/core/decide-tick.ts';
import {
  applyAttempt,
  applyReplica,
  applyResult,
  createJobState,
} from '../../../src/core/model/job-state.ts';
import { loseOutput } from '../../../src/core/model/lost-outputs.ts';
import { attempt, attemptRecord, resultOf } from '../../support/job-states.ts';

const [first, second] = ['data--use1-az1--x-s3', 'data--use1-az2--x-s3'] as const;
const planWith = (zonalBuckets?: readonly string[]): Pick<Plan, 'stages'> =>
  ({ stages: [{ description: { dataBucket: 'data', zonalBuckets } }] }) as unknown as Pick<Plan, 'stages'>;
const shapes = [
  { name: 'map', tasks: 3, upstream: [], sourceBytes: [1, 1, 1] },
  { name: 'reduce', tasks: 1, upstream: [0], sourceBytes: [0] },
];

/** Three maps: written in the first zone, to the data bucket for want of a zone, and in the second zone, with a copy. */
function placesOf(plan: Pick<Plan, 'stages'>) {
  const state = createJobState(shapes);
  applyDecisions(
    state,
    [0, 1, 2].map((task) => ({
      ...{ kind: 'launch' as const, attemptId: attempt(`map/${task}/0`), reason: 'first' as const },
    })),
    { now: epochMs(0), openStage: () => undefined },
  );
  for (const [index, zone] of ['use1-az1', 'use1-az1', 'use1-az2'].entries())
    applyAttempt(state, attemptRecord(`map/${index}/0`, 'done', 5, { zone }), epochMs(5));
  applyResult(state, { ...resultOf('map/0/0', 5), zone: 'use1-az1' }, epochMs(5));
  applyResult(state, resultOf('map/1/0', 5), epochMs(5));
  applyResult(state, { ...resultOf('map/2/0', 5), zone: 'use1-az2' }, epochMs(5));
  applyReplica(state, resultOf('map/2/1000000', 6));
  return { state, places: new OutputPlaces({ dataBucket: 'data', config: {} }, { plan, state }) };
}

describe('where outputs of a job lie whose workers keep them', () => {
  const plan = { stages: [{ description: { dataBucket: 'data', keptTasks: 2 } }] } as unknown as Pick<
    Plan,
    'stages'
  >;

  it('is with all workers as one place, or in the data bucket, each with r of its own', () => {
    const { state, places } = placesOf(plan);
    const result = state.stages[0]?.tasks[0]?.result;
    const task = state.stages[0]?.tasks[0];
    if (task === undefined || result === undefined) throw new Error('a map has ended');
    task.result = { ...result, worker: '10.0.0.7:7843' };
    expect(places.tier).toBe('worker-local');
    expect(places.copies).toBe('data');
    expect(places.of(attempt('map/0/0'))).toBe('workers');
    expect(places.of(attempt('map/1/0'))).toBe('data');
    loseOutput(state, attempt('map/0/0'));
    expect(places.of(attempt('map/0/0'))).toBe('workers');
    const rates = places.rates(new Map([['workers', { outputs: 20, lost: 20 }]]), undefined);
    expect(rates('data')).toBe(1e-11);
    expect(rates('workers')).toBeGreaterThan(0.5);
  });
});

describe('where outputs of a zonal job lie', () => {
  it('is where their results say, and of what is lost the zone of its worker', () => {
    const { state, places } = placesOf(planWith([first, second]));
    const ids = ['map/0/0', 'map/1/0', 'map/2/0', 'map/2/1000000'].map((id) => attempt(id));
    expect(places.tier).toBe('zonal');
    expect(ids.map((id) => places.of(id))).toEqual([first, 'data', second, 'data']);
    loseOutput(state, attempt('map/2/0'), 1_000_000);
    loseOutput(state, attempt('map/0/0'));
    expect(ids.map((id) => places.of(id))).toEqual([first, 'data', second, 'data']);
  });

  it('has r of each zone by what was lost there, and of the data bucket that of its own tier', () => {
    const { places } = placesOf(planWith([first, second]));
    const seen = new Map([
      [first, { outputs: 20, lost: 10 }],
      ['data', { outputs: 1_000, lost: 1_000 }],
      ['other--use1-az3--x-s3', { outputs: 1_000, lost: 1_000 }],
    ]);
    const rates = places.rates(seen, { probability: 0.1, outputs: 20 });
    // All together: (0.1 · 20 + 10) / (20 + 20) = 0.3; of the first zone itself (0.3 · 20 + 10) / (20 + 20).
    expect(rates(second)).toBeCloseTo(0.3, 12);
    expect(rates(first)).toBeCloseTo(0.4, 12);
    expect(rates(places.copies)).toBe(1e-11);
  });
});

describe('where outputs of other jobs lie', () => {
  it('is the data bucket, whose r zones do not move', () => {
    const { places } = placesOf(planWith());
    expect([places.tier, places.of(attempt('map/0/0'))]).toEqual(['standard', 'data']);
    const seen = new Map([[first, { outputs: 20, lost: 20 }]]);
    expect(places.rates(seen, { probability: 0.1, outputs: 20 })('data')).toBe(0.1);
  });
});
