import { describe, expect, it } from 'vitest';
import { mantri } from '../../../../src/core/policy/mantri/mantri.ts';
import { outrider } from '../../../../src/core/policy/outrider/outrider.ts';
import type { PolicySet, PolicyView, Proposal } from '../../../../src/core/policy/policy-set.ts';
import { failure } from '../../../support/job-states.ts';
import { type TaskSpec, times, viewOf } from '../../../support/policy-views.ts';

const zones = ['a', 'b', 'c'];
const size = 1_000_000;

/** Tasks of 10 s that have finished in a zone. */
const done = (zone: string, doneMs = 10_000): TaskSpec[] => times(3, { doneMs, zone });
/** A task that takes a minute in all, and has so much left. */
const running = (zone: string, leftMs: number): TaskSpec => ({
  running: [{ ranMs: 60_000 - leftMs, bytesRead: (size * (60_000 - leftMs)) / 60_000, zone }],
});
/** Three tasks in b and in c have taken 10 s, three in a take a minute, of which 25 s are left. */
const slowA = [...done('b'), ...done('c'), ...times(3, running('a', 25_000))];

/** Proposals by task: what, where, and by which factor and time. */
const proposals = (policy: PolicySet, view: PolicyView) =>
  policy
    .propose(view)
    .toSorted((one, other) => one.task.index - other.task.index)
    .map((each: Proposal) => [each.kind, each.task.index, 'zone' in each ? each.zone : undefined]);

const firstFacts = (policy: PolicySet, view: PolicyView) => policy.propose(view)[0]?.facts ?? {};

describe.each([
  ['mantri', mantri],
  ['outrider', outrider],
] as const)('a copy under %s of what is slow since its zone is', (_, policy) => {
  it('goes to the other zones in turn, where it wins', () => {
    expect(proposals(policy, viewOf(slowA, { zones }))).toEqual([
      ['backup', 6, 'b'],
      ['backup', 7, 'c'],
      ['backup', 8, 'b'],
    ]);
  });

  it('says by which factor, and how many samples tell it', () => {
    const facts = firstFacts(policy, viewOf(slowA, { zones }));
    expect(facts['locationFactor']).toBeCloseTo(0.400149, 6);
    expect(facts['zoneSamples']).toBe(3);
  });

  it('has no zone on Lambda, whatever the zones of tasks', () => {
    const view = { ...viewOf(slowA), zones };
    expect(proposals(policy, view).every(([, , zone]) => zone === undefined)).toBe(true);
    expect(policy.propose(view)).toEqual(policy.propose({ ...view, zones: undefined }));
  });

  it('has no zone where there is but one', () => {
    expect(policy.propose(viewOf(slowA, { zones: ['b'] }))).toEqual(
      policy.propose({ ...viewOf(slowA, { zones }), zones: undefined }),
    );
  });
});

describe('E(t_new) of a copy in its zone', () => {
  it('is less than what slow tasks have left, of which the mean of all would say that none is worth a copy', () => {
    expect(proposals(mantri, viewOf(slowA, { zones }))).toHaveLength(3);
    expect(mantri.propose({ ...viewOf(slowA, { zones }), zones: undefined })).toEqual([]);
  });

  // Nine samples, 240 s in all, times 0.400149.
  it("is the mean of all samples times its zone's factor", () => {
    expect(firstFacts(mantri, viewOf(slowA, { zones }))['newMs']).toBe(10_671);
  });

  it('is the mean of all without', () => {
    const view = { ...viewOf([...slowA, running('a', 60_000 - 1_000)], { zones }), zones: undefined };
    expect(firstFacts(mantri, view)['newMs']).toBe(30_000);
  });
});

describe('a copy in a stage whose tasks were placed by what they read', () => {
  it('goes to the zone where tasks are faster, and is not taken to end sooner for it: they may have less to read from afar', () => {
    const view = viewOf([...done('b'), ...done('c'), ...times(3, running('a', 50_000))], { zones });
    const [stage] = view.state.stages;
    if (stage !== undefined) stage.placement = { zones, tasks: stage.tasks.map(() => 0), facts: {} };
    expect(proposals(mantri, view).map(([, , zone]) => zone)).toEqual(['b', 'c', 'b']);
    expect(firstFacts(mantri, view)).toMatchObject({ newMs: 26_667, locationFactor: 1, zoneSamples: 3 });
  });
});

describe('where one zone is slower, an attempt that is owed', () => {
  /** The zone of the next attempt of a task of which so many have found no place. */
  const zoneAfter = (unplaced: number): string | undefined => {
    const view = viewOf([...done('b'), ...done('c'), ...times(3, { doneMs: 60_000, zone: 'a' }), {}], {
      zones,
    });
    const task = view.state.stages[0]?.tasks[9];
    const spent = view.state.stages[0]?.tasks[0]?.attempts[0];
    if (task === undefined || spent === undefined) throw new Error('no such task');
    for (let number = 0; number < unplaced; number++)
      task.attempts.push({ ...spent, number, state: 'lost', zone: undefined, failure: failure('expired') });
    return mantri.placesOwed?.(view)(task)?.zone;
  };

  it('goes to the next of the others where there was no place for it, and anywhere where none of them had one', () => {
    expect(zoneAfter(0)).toBe('c');
    expect(zoneAfter(1)).toBe('b');
    expect(zoneAfter(2)).toBeUndefined();
  });
});

describe('where zones are about as good', () => {
  const even = [...done('a'), ...done('b'), ...done('c')];
  const late = (zone: string): TaskSpec => running(zone, 50_000);
  const zoneOf = (view: PolicyView, policy: PolicySet = mantri) =>
    proposals(policy, view).filter(([kind]) => kind === 'backup');

  it('a copy runs apart from the attempts of its task', () => {
    expect(zoneOf(viewOf([...even, late('a')], { zones }))).toEqual([['backup', 9, 'c']]);
    expect(zoneOf(viewOf([...even, late('c')], { zones }))).toEqual([['backup', 9, 'b']]);
  });

  it('it runs where its task was placed, if no attempt runs there', () => {
    const placedIn = (at: number): PolicyView => {
      const view = viewOf([...even, late('a')], { zones });
      const [stage] = view.state.stages;
      if (stage !== undefined)
        stage.placement = { zones, tasks: stage.tasks.map(({ index }) => (index === 9 ? at : 0)), facts: {} };
      return view;
    };
    expect(zoneOf(placedIn(1))).toEqual([['backup', 9, 'b']]);
    expect(zoneOf(placedIn(0))).toEqual([['backup', 9, 'c']]);
  });

  it.each([
    [1, 'b', 'c'],
    [2, 'c', 'b'],
  ])(
    'it goes to the next zone where there was no place for it where its task was placed: %s',
    (at, placed, next) => {
      const view = viewOf([...even, late('a')], { zones });
      const [stage] = view.state.stages;
      if (stage === undefined) throw new Error('no stage');
      stage.placement = { zones, tasks: stage.tasks.map(() => at), facts: {} };
      expect(zoneOf(view)).toEqual([['backup', 9, placed]]);
      const [original] = stage.tasks[9]?.attempts ?? [];
      if (original === undefined) throw new Error('no attempt');
      stage.tasks[9]?.attempts.push({ ...original, number: 1, state: 'lost', failure: failure('expired') });
      expect(zoneOf(view)).toEqual([['backup', 9, next]]);
    },
  );

  it('it goes to a zone that nobody has tried rather than to one that is slow', () => {
    const untried = viewOf([...done('a', 60_000), ...done('b'), late('a')], { zones: ['a', 'c'] });
    expect(zoneOf({ ...untried, config: { ...untried.config, mantri: eager(untried) } })).toEqual([
      ['backup', 6, 'c'],
    ]);
  });
});

/** Every gain is worth a duplicate. */
const eager = ({ config }: PolicyView): PolicyView['config']['mantri'] => ({
  ...config.mantri,
  gainFactor: 0,
});

describe('a copy that no zone it may go to would let win', () => {
  // Samples 10 s, thrice, in a, which no launch can choose now, a minute thrice in b and in c, and in x: 45 s on the mean, and
  // 50 s left. By logarithms v = 1/7; zones lie 2.1 (ln 6)² = 6.741844 apart, of which chance has (3 + 2 √6) / 7; a = 0.779641,
  // Z = 0.942438 of three samples and 0.845141 of one, so that a goes to 1.074867, b and c to 5.817195 and x to 5.520776 of what a task of 10 s takes.
  const tasks = [...done('a'), ...done('b', 60_000), ...done('c', 60_000), running('x', 50_000)];
  const view = (() => {
    const plain = viewOf(tasks, { zones: ['b', 'c'] });
    return { ...plain, config: { ...plain.config, mantri: eager(plain) } };
  })();

  it('would be made if zones were alike', () => {
    expect(proposals(mantri, { ...view, zones: undefined })).toEqual([['backup', 9, undefined]]);
  });

  it('is declined, with its zone and by how much that is slower', () => {
    expect(mantri.propose(view)).toMatchObject([
      { kind: 'decline', reason: 'slow-zone', zone: 'c', facts: { remMs: 50_000, zoneSamples: 3 } },
    ]);
    expect(firstFacts(mantri, view)['locationFactor']).toBeCloseTo(1.332735, 6);
    expect(firstFacts(mantri, view)['newMs']).toBe(59_973);
  });
});
