import { describe, expect, it } from 'vitest';
import { epochMs } from '../../../../src/contracts/units.ts';
import { createJobState, stageAt } from '../../../../src/core/model/job-state.ts';
import type { JobState } from '../../../../src/core/model/job-view.ts';
import { recordSlowness } from '../../../../src/core/model/zone-slowness.ts';
import type { ZoneBook } from '../../../../src/core/model/zone-book.ts';
import { knownFactors } from '../../../../src/core/policy/mantri/earlier-zones.ts';

const zones = ['a', 'b', 'c'];
const now = epochMs(3_600_000);
const minuteMs = 60_000;
/** How slow three tasks were in each zone. */
type Slowness = Readonly<Record<string, number>>;

/** A job whose stages on Fargate have ended so many minutes ago, with what their tasks have told, and one that is open. */
function jobAfter(ended: readonly { readonly minutesAgo: number; readonly slowness: Slowness }[]): JobState {
  const shape = {
    tasks: 9,
    upstream: [],
    sourceBytes: Array.from({ length: 9 }, () => 1_000_000),
    worker: { kind: 'fargate' as const, size: 'medium' as const },
  };
  const state = createJobState(
    [...ended.keys(), 'last'].map((name) => ({ ...shape, name: `stage-${name}` })),
  );
  for (const [place, { minutesAgo, slowness }] of ended.entries()) {
    const stage = stageAt(state, place);
    stage.state = 'done';
    stage.doneAt = epochMs(now - minutesAgo * minuteMs);
    for (const [zone, each] of Object.entries(slowness))
      for (let sample = 0; sample < 3; sample++)
        recordSlowness(stage.statistics.zones, zone, { slowness: each, hasWon: true });
  }
  return state;
}

const factorsOf = (state: JobState, own: Slowness = {}, zonesTold: ZoneBook = []): Record<string, number> => {
  const told = new Map(Object.entries(own).map(([zone, factor]) => [zone, { factor, samples: 2 }]));
  const known = knownFactors(told, stageAt(state, state.stages.length - 1), { state, now, zones, zonesTold });
  return Object.fromEntries([...known].map(([zone, { factor }]) => [zone, factor]));
};

const slowA = { a: 6, b: 1, c: 1 };
/**
 * Three samples each, all alike within a zone: v = 1/7, a = (2 ln²6 − 6/7) / 6, Z = 3 / (3 + v/a) = 0.95115; the slow zone is
 * 6^Z times as slow as the others.
 */
const ratio = 5.4972;

describe('what is known of zones', () => {
  it('is what the last stage has told, as long as no task of this one has run', () => {
    const { a = 0, b = 0, c = 0 } = factorsOf(jobAfter([{ minutesAgo: 1, slowness: slowA }]));
    expect(a / b).toBeCloseTo(ratio, 3);
    expect(c).toBe(b);
  });

  it("is of a zone where none has run what it was beside those where some have, and of these the stage's own", () => {
    const state = jobAfter([{ minutesAgo: 1, slowness: slowA }]);
    const { a, b, c } = factorsOf(state, { b: 0.5, c: 1.5 });
    expect([b, c]).toEqual([0.5, 1.5]);
    expect(a).toBeCloseTo(ratio, 3);
  });

  it('goes back to a stage before those that have kept out of a zone', () => {
    const state = jobAfter([
      { minutesAgo: 9, slowness: slowA },
      { minutesAgo: 5, slowness: { b: 1, c: 1 } },
    ]);
    const { a = 0, b = 0, c = 0 } = factorsOf(state);
    expect(a / b).toBeCloseTo(ratio, 3);
    expect(c).toBe(b);
  });

  it('is nothing where zones were alike', () => {
    expect(factorsOf(jobAfter([{ minutesAgo: 1, slowness: { a: 1, b: 1, c: 1 } }]), { b: 2 })).toEqual({
      b: 2,
    });
  });

  it('is forgotten after a quarter of an hour, so that a zone is tried again', () => {
    expect(factorsOf(jobAfter([{ minutesAgo: 15, slowness: slowA }]))).toHaveProperty('a');
    expect(factorsOf(jobAfter([{ minutesAgo: 16, slowness: slowA }]))).toEqual({});
  });

  it('is not taken from a stage whose tasks were placed by what they read, nor from one that still runs', () => {
    const placed = jobAfter([{ minutesAgo: 1, slowness: slowA }]);
    stageAt(placed, 0).placement = { zones, tasks: [], facts: {} };
    expect(factorsOf(placed)).toEqual({});
    const open = jobAfter([{ minutesAgo: 1, slowness: slowA }]);
    stageAt(open, 0).state = 'open';
    expect(factorsOf(open)).toEqual({});
  });
});

describe('what other jobs have told of zones', () => {
  const told = (minutesAgo: number, slow = 'a'): ZoneBook => [
    {
      of: `${slow}${String(minutesAgo)}`,
      at: epochMs(now - minutesAgo * minuteMs),
      zones: zones.map((zone) => ({ zone, factor: zone === slow ? 6 : 1, samples: 9 })),
    },
  ];

  it('counts for zones in which no task of the job has run, now or in earlier stages', () => {
    expect(factorsOf(jobAfter([]), {}, told(1))).toEqual(slowA);
    const own = { a: 1, b: 2, c: 0.5 };
    expect(factorsOf(jobAfter([]), own, told(1))).toEqual(own);
    // Beside b and c, which are 1 there and 0.75 on their mean here.
    expect(factorsOf(jobAfter([]), { b: 1, c: 0.5 }, told(1))).toEqual({ a: 4.5, b: 1, c: 0.5 });
    const {
      a = 0,
      b = 0,
      c = 0,
    } = factorsOf(jobAfter([{ minutesAgo: 1, slowness: { a: 1, b: 6, c: 1 } }]), {}, told(1));
    expect(b / a).toBeCloseTo(ratio, 3);
    expect(c).toBe(a);
  });

  it('is the newest of each zone, and is forgotten after a quarter of an hour', () => {
    expect(factorsOf(jobAfter([]), {}, [...told(1, 'b'), ...told(3)])).toEqual({ a: 1, b: 6, c: 1 });
    expect(factorsOf(jobAfter([]), {}, told(15))).toEqual(slowA);
    expect(factorsOf(jobAfter([]), {}, told(16))).toEqual({});
  });
});
