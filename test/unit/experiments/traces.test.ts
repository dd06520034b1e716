import { expect, it } from 'vitest';
import { missingTraces } from '../../../src/experiments/trace-library.ts';
import { tracePhases } from '../../../src/experiments/trace-phases.ts';
import { traceScenario } from '../../../src/experiments/trace-scenario.ts';
import { createRng } from '../../../src/lib/rng.ts';
import { parseScenario } from '../../../src/sim/scenario.ts';
import type { TraceJob } from '../../../src/traces/trace-job.ts';

const job = (id: string, worksMs: readonly number[], submittedAtMs?: number): TraceJob => ({
  id,
  ...(submittedAtMs === undefined ? {} : { submittedAtMs }),
  stages: [
    { name: 'map', upstream: [], tasks: worksMs.map((workMs) => ({ workMs })) },
    { name: 'reduce', upstream: [0], tasks: [{ workMs: 5_000 }] },
  ],
});
const limits = { phases: 5, leastTasks: 3, mostTasks: 10 };

it('takes stages of the right size, with first attempts as recorded and later ones of the same stage', () => {
  const works = [30_000, 60_000, 90_000, 120_000];
  const { phases, stretch } = tracePhases('tpch', [job('a', works), job('b', [1_000])], {
    limits,
    rng: createRng('x'),
  });
  expect(stretch).toBe(1);
  expect(phases).toHaveLength(1);
  const [phase] = phases;
  expect(phase?.slots).toBe(2);
  expect(phase?.attemptsMs.map(([first]) => first)).toEqual(works);
  for (const [, ...later] of phase?.attemptsMs ?? []) for (const ms of later) expect(works).toContain(ms);
});

it('draws how each phase gets through its input, the same for the same seed', () => {
  const jobs = Array.from({ length: 20 }, (_, index) => job(String(index), [60_000, 60_000, 60_000]));
  const shapes = (seed: string): readonly string[] =>
    tracePhases('tpch', jobs, { limits: { ...limits, phases: 20 }, rng: createRng(seed) }).phases.map(
      ({ progress }) => JSON.stringify(progress),
    );
  expect(new Set(shapes('x'))).toEqual(
    new Set(['[[0,0],[1,1]]', '[[0,0],[0.3,1],[1,1]]', '[[0,0],[0.4,0.05],[1,1]]']),
  );
  expect(shapes('x')).toEqual(shapes('x'));
});

it('stretches short tasks to a minute', () => {
  const { phases, stretch } = tracePhases('tpch', [job('a', [10_000, 20_000, 30_000])], {
    limits,
    rng: createRng('x'),
  });
  expect(stretch).toBe(3);
  expect(phases[0]?.attemptsMs.map(([first]) => first)).toEqual([30_000, 60_000, 90_000]);
});

it('makes no large task small by copying it', () => {
  const tasks = [1, 2, 3, 4, 5, 6, 7, 8].map((size) => ({ workMs: size * 60_000, inputBytes: size * 1e6 }));
  const sized: TraceJob = { id: 'a', stages: [{ name: 'map', upstream: [], tasks }] };
  const { phases } = tracePhases('rumen', [sized], { limits, rng: createRng('x') });
  // Input explains all of it, so that every attempt of a task takes the same.
  for (const [index, attempts] of (phases[0]?.attemptsMs ?? []).entries())
    for (const ms of attempts) expect(ms).toBeCloseTo((index + 1) * 60_000, -1);
});

it('leaves sizes as they are where a task of a phase reads nothing, and takes what is not told for one like its siblings', () => {
  const sizes = [{ inputBytes: 134e6 }, { inputBytes: 0 }, {}, { inputBytes: 10e6 }];
  const tasks = sizes.map((size) => ({ workMs: 60_000, ...size }));
  const unlike: TraceJob = { id: 'a', stages: [{ name: 'map', upstream: [], tasks }] };
  const phasesOf = (jobs: TraceJob[]): unknown =>
    tracePhases('rumen', jobs, { limits, rng: createRng('x') }).phases.map(({ inputBytes }) => inputBytes);
  expect(phasesOf([unlike])).toEqual([[134e6, 0, 10e6, 10e6]]);
  expect(phasesOf([job('b', [60_000, 60_000, 60_000])])).toEqual([[64e6, 64e6, 64e6]]);
});

it('takes a task of unknown input for one like its siblings', () => {
  const tasks = [{ inputBytes: 134e6 }, {}, { inputBytes: 134e6 }, { inputBytes: 10e6 }];
  const killed: TraceJob = {
    id: 'a',
    stages: [
      { name: 'map', upstream: [], tasks: tasks.map((task) => ({ workMs: 60_000, ...task })) },
      { name: 'reduce', upstream: [0], tasks: [{ workMs: 5_000 }] },
    ],
  };
  const [replayed] = traceScenario([killed], { format: 'rumen', policy: 'none', rng: createRng('x') }).jobs;
  expect(replayed?.stages.map(({ inputBytes }) => inputBytes)).toEqual([[134e6, 134e6, 134e6, 10e6], [64e6]]);
});

it('replays arrivals as recorded, or at a load', () => {
  const jobs = [job('a', [100_000], 0), job('b', [100_000], 60_000)];
  const arrivals = (slots: number, load?: number): unknown[] =>
    traceScenario(jobs, { format: 'hawk', policy: 'none', slots, load, rng: createRng('x') }).jobs.map(
      (each) => each.arrivals,
    );
  expect(arrivals(2)).toEqual([
    { kind: 'list', atMs: [0] },
    { kind: 'list', atMs: [60_000] },
  ]);
  // 210 s of work on 3 slots at a load of 0.7 take 100 s.
  expect(arrivals(3, 0.7)).toEqual([
    { kind: 'list', atMs: [0] },
    { kind: 'list', atMs: [100_000] },
  ]);
});

it('is a scenario that the simulator takes, the same for the same seed', () => {
  const make = () =>
    traceScenario([job('a', [1_000, 2_000]), job('b', [3_000])], {
      format: 'tpch',
      policy: 'late',
      rng: createRng('x'),
    });
  expect(make()).toEqual(make());
  const scenario = parseScenario(make());
  expect(
    scenario.jobs.map(({ stages }) => stages.map(({ name, tasks, upstream }) => ({ name, tasks, upstream }))),
  ).toEqual([
    [
      { name: 's0', tasks: 2, upstream: [] },
      { name: 's1', tasks: 1, upstream: ['s0'] },
    ],
    [
      { name: 's0', tasks: 1, upstream: [] },
      { name: 's1', tasks: 1, upstream: ['s0'] },
    ],
  ]);
});

it('says which traces are not there', async () => {
  expect(await missingTraces('/nonexistent', ['swim', 'tpch'])).toEqual(['swim', 'tpch']);
  expect(await missingTraces('/nonexistent', [])).toEqual([]);
});
