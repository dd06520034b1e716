import { describe, expect, it } from 'vitest';
import { planAhead } from '../../../src/app/plan-ahead.ts';
import type { StoredForecast } from '../../../src/contracts/forecast.ts';
import { fingerprintOf } from '../../../src/core/forecast/learn-profile.ts';
import { planResponseSchema } from '../../../src/contracts/plans.ts';
import type { JobRecord } from '../../../src/contracts/records.ts';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';

const spec = {
  ...builtinJob('wordcount', { inputs: ['s3://input/texts/'], partitions: 2 }),
  deadline: '10s',
};
const [map = '', reduce = ''] = spec.stages.map(({ name }) => name);
const sizes = { [map]: { tasks: 8, bytes: 8_000 }, [reduce]: { tasks: 2 } };

const stageOf = (
  name: string,
  tasks: number,
  ms: number,
  inputs: StoredForecast['profile']['stages'][number]['inputs'],
) => ({
  ...{ name, tasks, inputs, queueMs: [], failureShare: 0 },
  runs: [{ slots: 4, times: { cold: [], first: [], later: [ms] } }],
});
const fingerprint = fingerprintOf({
  stages: [
    {
      description: {
        ...{ name: map, operator: 'tokenize', worker: { kind: 'lambda', size: 'medium' } },
        inputs: [{ kind: 'source', format: 'text' }],
      },
    },
    {
      description: {
        ...{ name: reduce, operator: 'sum-counts', worker: { kind: 'lambda', size: 'medium' } },
        inputs: [{ kind: 'stage', stage: map, pattern: 'all-to-all' }],
      },
    },
  ],
});
const stored: StoredForecast = {
  ...{ version: 1, name: spec.name, fingerprint, inputBytes: 8_000, runs: 4, jobs: [] },
  profile: {
    stages: [stageOf(map, 4, 1_000, []), stageOf(reduce, 2, 2_000, [{ stage: 0, isBarrier: true }])],
  },
};

const deps = (
  forecasts: Record<string, StoredForecast | 'spoilt'>,
  jobs: readonly Partial<JobRecord>[] = [],
) => ({
  dataBucket: 'data',
  checkOperator: () => undefined,
  jobs: { list: () => Promise.resolve({ jobs: jobs as readonly JobRecord[], unreadable: [] }) as never },
  forecasts: {
    get: (name: string) => {
      const found = forecasts[name];
      if (found === undefined) return Promise.resolve(undefined);
      return Promise.resolve(
        found === 'spoilt'
          ? { forecast: undefined, unreadable: 'it is no JSON', tag: '1' }
          : { forecast: found, tag: '1' },
      );
    },
  },
});

describe('planAhead', () => {
  it("rests on the job's own runs, cut as the job is now", async () => {
    const plan = await planAhead(deps({ [spec.name]: stored }), { spec, stages: sizes, slots: [1, 8] });
    expect(planResponseSchema.parse(plan)).toEqual(plan);
    expect(plan.basis).toEqual({ kind: 'own', runs: 4, says: '4 finished runs, its own' });
    expect(plan.tasks).toBe(10);
    expect(plan.deadlineMs).toBe(10_000);
    // 8 s and 4 s on one slot, 1 s and 2 s on eight; runs differ by 0.14 about that.
    const [one, eight] = plan.allocations;
    expect(one?.completionMs.p50).toBeGreaterThan(11_000);
    expect(one?.completionMs.p50).toBeLessThan(13_000);
    expect(eight?.completionMs.p50).toBeGreaterThan(2_700);
    expect(eight?.completionMs.p50).toBeLessThan(3_300);
    expect(plan.cheapest).toBe(8);
    expect(eight?.isCheapest).toBe(true);
  });

  it('has as many parts of split partitions as there were, however the job is cut', async () => {
    const [first, second] = stored.profile.stages;
    if (first === undefined || second === undefined) throw new Error('two stages');
    const split = { ...stored, profile: { stages: [first, { ...second, tasks: 3, plannedTasks: 2 }] } };
    const tasksOf = async (reduces: number): Promise<number> => {
      const cut = { ...sizes, [reduce]: { tasks: reduces } };
      const { tasks } = await planAhead(deps({ [spec.name]: split }), { spec, stages: cut, slots: [8] });
      return tasks - 8;
    };
    expect(await tasksOf(2)).toBe(3);
    expect(await tasksOf(4)).toBe(6);
  });

  it('trusts its own runs less where the plan or the input is another', async () => {
    const other = await planAhead(deps({ [spec.name]: { ...stored, fingerprint: 'other' } }), {
      spec,
      slots: [8],
    });
    expect(other.basis).toMatchObject({ kind: 'like', runs: 4 });
    expect(other.basis.says).toBe(
      '4 finished runs, its own, under another plan: it may take half as long or twice',
    );
    const large = { ...sizes, [map]: { tasks: 80, bytes: 80_000 } };
    const grown = await planAhead(deps({ [spec.name]: stored }), { spec, stages: large, slots: [8] });
    expect(grown.basis.says).toMatch(/on less than half the input/);
  });

  it('foretells nothing by runs, its own or others, whose tasks read less than a tenth as much', async () => {
    const stages = stored.profile.stages.map((stage) => ({ ...stage, taskBytes: 99 }));
    const tried = { ...stored, inputBytes: 4 * 99, profile: { stages } };
    const ran = { tasks: 1, bytesIn: 99, bytesOut: 99, workerMs: 100 };
    const job = {
      state: 'succeeded' as const,
      stages: [
        { ...ran, name: map, operator: 'tokenize' },
        { ...ran, name: reduce, operator: 'sum-counts' },
      ] as never,
    };
    const { basis, allocations } = await planAhead(deps({ [spec.name]: tried }, [job]), {
      ...{ spec, stages: sizes, slots: [8] },
    });
    expect(basis.says).toBe(
      `nothing: tasks of finished runs of ${spec.name} read less than a tenth as much; finished jobs have run tokenize on less than a tenth as much in a task alone. Run it once, or name a job that it is like`,
    );
    expect(allocations).toEqual([]);
  });

  it('goes by runs on as much whose tasks read a share of their files alone, as samples and columns are', async () => {
    const [first, second] = stored.profile.stages;
    if (first === undefined || second === undefined) throw new Error('two stages');
    // Of 8,000 bytes in 4 tasks each read 20.
    const sampled = { ...stored, profile: { stages: [{ ...first, taskBytes: 20 }, second] } };
    const timesOf = async (bytes: number): Promise<number> => {
      const cut = { ...sizes, [map]: { tasks: 4, bytes } };
      const { basis, allocations } = await planAhead(deps({ [spec.name]: sampled }), {
        ...{ spec, stages: cut, slots: [1] },
      });
      expect(basis.runs).toBe(4);
      return allocations[0]?.completionMs.p50 ?? 0;
    };
    // 4 tasks of 1 s and 2 of 2 s on one slot; then the first four of twice as long.
    expect((await timesOf(8_000)) / 8_000).toBeCloseTo(1, 0);
    expect((await timesOf(16_000)) / 12_000).toBeCloseTo(1, 0);
  });

  it.each([
    ['says nothing', undefined],
    ['says the tasks alone', { [map]: { tasks: 8 }, [reduce]: { tasks: 2 } }],
  ])('does not take its own runs for the same where who asks %s of how much it reads', async (_, stages) => {
    const ask = { spec, slots: [8], ...(stages === undefined ? {} : { stages }) };
    const { basis } = await planAhead(deps({ [spec.name]: stored }), ask);
    expect(basis).toEqual({
      ...{ kind: 'like', runs: 4 },
      says: '4 finished runs, its own, taken to read as much as then, since nobody says how much: it may take half as long or twice',
    });
  });

  it('knows an input that is empty now for another', async () => {
    const empty = { [map]: { tasks: 1, bytes: 0 }, [reduce]: { tasks: 2 } };
    const { basis } = await planAhead(deps({ [spec.name]: stored }), { spec, stages: empty, slots: [1] });
    expect(basis.says).toMatch(/on more than twice the input/);
  });

  it('looks at a grid up to the widest stage where no slots are named', async () => {
    const plan = await planAhead(deps({ [spec.name]: stored }), { spec });
    expect(plan.allocations.map(({ slots }) => slots)).toEqual([1, 2, 3, 4]);
    expect(plan.tasks).toBe(6);
  });

  it('takes a job that it is said to be like where it has no runs, with a wider spread', async () => {
    const plan = await planAhead(deps({ nightly: stored }), {
      ...{ spec, stages: sizes, like: 'nightly', slots: [8] },
    });
    expect(plan.basis).toEqual({ kind: 'like', runs: 4, says: '4 finished runs, those of nightly' });
    const own = await planAhead(deps({ [spec.name]: stored }), { spec, stages: sizes, slots: [8] });
    const width = (of: typeof plan): number =>
      (of.allocations[0]?.completionMs.p95 ?? 0) / (of.allocations[0]?.completionMs.p50 ?? 1);
    expect(width(plan)).toBeGreaterThan(1.2 * width(own));
  });

  it('takes jobs with the same operators where nothing else is known', async () => {
    const stages = spec.stages.map(({ operator = '' }) => ({
      operator,
      tasks: 4,
      bytesIn: 4_000,
      bytesOut: 1_000,
      workerMs: 4_000,
    }));
    const others = [
      { state: 'succeeded', stages },
      { state: 'failed', stages: [] },
      { state: 'succeeded', stages: stages.map((each) => ({ ...each, operator: 'exec' })) },
    ] as never;
    const plan = await planAhead(deps({}, others), { spec, stages: sizes, slots: [8] });
    expect(plan.basis).toMatchObject({ kind: 'like', runs: 1 });
    expect(plan.basis.says).toBe(
      'jobs like it: 2 finished stages with the same operators; it may take half as long or twice',
    );
    expect(plan.allocations).toHaveLength(1);
  });

  it('says that nothing is known, and why, and foretells nothing', async () => {
    const plan = await planAhead(deps({}), { spec, stages: sizes });
    expect(plan).toMatchObject({ basis: { kind: 'none', runs: 0 }, allocations: [], cheapest: null });
    expect(plan.basis.says).toBe(
      `nothing: no finished run of ${spec.name} is known; no finished job has run tokenize, sum-counts. Run it once, or name a job that it is like`,
    );
    const spoilt = await planAhead(deps({ [spec.name]: 'spoilt' }), { spec, like: 'other' });
    expect(spoilt.basis.says).toMatch(
      /cannot be read \(it is no JSON\); no finished run of other is known; nobody says into how many tasks stage/,
    );
  });

  it('does not take runs of another plan for its own', async () => {
    const other = { ...stored, profile: { stages: [stageOf('elsewhere', 3, 1, [])] } };
    const plan = await planAhead(deps({ [spec.name]: other }), { spec });
    expect(plan.basis.says).toMatch(/runs of \S+ had other stages \(elsewhere\)/);
  });

  it('takes prices that are given, and says which', async () => {
    const ask = { spec, slots: [8] };
    const usual = await planAhead(deps({ [spec.name]: stored }), ask);
    const dear = await planAhead(deps({ [spec.name]: stored }), {
      ...ask,
      prices: { region: 'mars', lambdaGbSecond: 1 },
    });
    expect(usual.prices).toEqual({ asOf: '2026-11-01', region: 'us-east-1', overridden: [] });
    expect(dear.prices).toEqual({
      asOf: '2026-11-01',
      region: 'mars',
      overridden: ['region', 'lambdaGbSecond'],
    });
    expect(dear.allocations[0]?.dollars).toBeGreaterThan(10);
  });

  it.each([
    [{ spec, slots: [0] }, /slots\[0\] must be at least 1/],
    [{ spec, stages: { mapp: { tasks: 1 } } }, /stages\.mapp is no stage of the spec/],
    [{ spec, prices: { s3Puts: 1 } }, /prices\.s3Puts is not a known field; did you mean "s3Put"/],
    [{ spec, stages: { [map]: { tasks: 0 } } }, /tasks/],
    [{}, /spec is missing/],
  ])('refuses what is wrong by its field: %#', async (body, message) => {
    await expect(planAhead(deps({}), body)).rejects.toThrow(message);
  });
});
