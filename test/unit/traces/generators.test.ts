import { describe, expect, it } from 'vitest';
import { createRng } from '../../../src/lib/rng.ts';
import { collectJobs } from '../../../src/traces/collect-jobs.ts';
import { withPoissonArrivals } from '../../../src/traces/generators/arrivals.ts';
import { attemptDurations } from '../../../src/traces/generators/attempt-durations.ts';
import { HADOOP_SLOWDOWN, SPARK_SLOWDOWN } from '../../../src/traces/generators/measured-slowdowns.ts';
import { recordedSlowdowns, slowdownTable } from '../../../src/traces/generators/recorded-slowdowns.ts';
import { drawSlowdown, slowdownAt, slowdownSchema } from '../../../src/traces/generators/slowdown.ts';
import type { Slowdown } from '../../../src/traces/generators/slowdown.ts';
import { HADOOP_2009_RATES, withWork } from '../../../src/traces/generators/work.ts';
import type { TraceJob, TraceTask } from '../../../src/traces/trace-job.ts';

const jobOf = (id: string, ...stages: (readonly TraceTask[])[]): TraceJob => ({
  id,
  stages: stages.map((tasks, index) => ({ name: index.toString(), tasks, upstream: [] })),
});

describe('slowdowns', () => {
  const pareto: Slowdown = { kind: 'pareto', shape: 2, scale: 1, cap: 10, share: 1 };

  it('inverts the Pareto distribution up to its cap', () => {
    // P(X > x) = x^-2: three quarters lie below 2, 15/16 below 4, 99.9 % below 31.6.
    expect(slowdownAt(pareto, 0)).toBe(1);
    expect(slowdownAt(pareto, 0.75)).toBeCloseTo(2, 12);
    expect(slowdownAt(pareto, 0.9375)).toBeCloseTo(4, 12);
    expect(slowdownAt(pareto, 0.999)).toBe(10);
  });

  it('slows only the share of attempts that it is told', () => {
    const some: Slowdown = { ...pareto, scale: 3, share: 0.25 };
    expect([0, 0.5, 0.7499].map((u) => slowdownAt(some, u))).toEqual([1, 1, 1]);
    expect(slowdownAt(some, 0.75)).toBe(3);
    expect(slowdownAt(some, 0.9375)).toBeCloseTo(6, 12);
    expect(slowdownAt({ ...some, share: 0 }, 0.999)).toBe(1);
  });

  it('interpolates a table, steps included', () => {
    const table: Slowdown = {
      kind: 'empirical',
      points: [
        [0, 0.5],
        [0.5, 1],
        [0.5, 2],
        [1, 4],
      ],
    };
    expect([0, 0.25, 0.5, 0.75].map((u) => slowdownAt(table, u))).toEqual([0.5, 0.75, 1, 3]);
  });

  it('has the mean of its formula over many draws', () => {
    // Mean of min(X, 10) for shape 2: ∫₁¹⁰ x⁻² dx + 1 = 1.9.
    const rng = createRng('pareto');
    let sum = 0;
    for (let i = 0; i < 100_000; i++) sum += drawSlowdown(pareto, rng);
    expect(sum / 100_000).toBeCloseTo(1.9, 1);
  });

  it('is 1 where there is none', () => {
    expect(slowdownAt({ kind: 'none' }, 0.99)).toBe(1);
  });

  it.each([
    [{ kind: 'pareto', shape: 0, cap: 5 }, 'shape'],
    [{ kind: 'pareto', shape: 1, scale: 6, cap: 5 }, 'cap'],
    [{ kind: 'empirical', points: [[0, 1]] }, 'points'],
    [
      {
        kind: 'empirical',
        points: [
          [0, 2],
          [1, 1],
        ],
      },
      'points',
    ],
    [
      {
        kind: 'empirical',
        points: [
          [0.1, 1],
          [1, 2],
        ],
      },
      'points',
    ],
  ])('refuses %j by its field', (value: unknown, field) => {
    expect(slowdownSchema.safeParse(value).error?.issues[0]?.path[0]).toBe(field);
  });

  it('takes its own tables, and fills in defaults', () => {
    expect(slowdownSchema.parse(HADOOP_SLOWDOWN)).toEqual(HADOOP_SLOWDOWN);
    expect(slowdownSchema.parse(SPARK_SLOWDOWN)).toEqual(SPARK_SLOWDOWN);
    expect(slowdownSchema.parse({ kind: 'pareto', shape: 2, cap: 9 })).toEqual({
      kind: 'pareto',
      shape: 2,
      scale: 1,
      cap: 9,
      share: 1,
    });
  });
});

describe('recorded slowdowns', () => {
  it('are durations over the median of their stage, of winning attempts only', () => {
    const task = (durationMs: number): TraceTask => ({
      attempts: [
        { outcome: 'killed', durationMs: 99_999 },
        { outcome: 'succeeded', durationMs },
      ],
    });
    const lost: TraceTask = { attempts: [{ outcome: 'failed', durationMs: 5 }] };
    expect(
      recordedSlowdowns(jobOf('a', [task(50), task(100), task(100), task(150), task(800), lost])),
    ).toEqual([0.5, 1, 1, 1.5, 8]);
  });

  it('are none for stages of fewer than five, or that took no time', () => {
    const four = [10, 10, 10, 90].map((workMs) => ({ workMs }));
    const instant = [0, 0, 0, 0, 90].map((workMs) => ({ workMs }));
    expect(recordedSlowdowns(jobOf('a', four, instant))).toEqual([]);
  });

  it('make a table that gives them back', () => {
    const table = slowdownTable([4, 1, 2, 3, 5]);
    expect(table).toMatchObject({ kind: 'empirical' });
    expect([0, 0.25, 0.5, 0.75, 0.9].map((u) => slowdownAt(table ?? { kind: 'none' }, u))).toEqual([
      1, 2, 3, 4, 4.6,
    ]);
    expect(slowdownTable([])).toBeUndefined();
  });
});

describe('work', () => {
  const rates = { startupMs: 100, msPerInputMib: 50, msPerOutputMib: 10, unknownMs: 777 };

  it('is as recorded, else by bytes, else as its siblings take, else as told', () => {
    const job = jobOf(
      'a',
      [{ workMs: 5 }, { inputBytes: 2 * 1024 ** 2, outputBytes: 1024 ** 2 }, { outputBytes: 1024 ** 2 }, {}],
      [{}, {}],
    );
    expect(withWork(job, rates).stages.map((stage) => stage.tasks.map((task) => task.workMs))).toEqual([
      [5, 210, 110, 110],
      [777, 777],
    ]);
  });

  it('keeps alike tasks one object', () => {
    const same = {};
    const [first, second] = withWork(jobOf('a', [same, same]), rates).stages[0]?.tasks ?? [];
    expect(first).toBe(second);
  });
});

describe('attempt durations', () => {
  const job = withWork(jobOf('a', [{ workMs: 10_000 }, { workMs: 20_000 }, { workMs: 400_000 }]), {
    startupMs: 0,
    msPerInputMib: 0,
    msPerOutputMib: 0,
    unknownMs: 0,
  });
  const keys = [0, 1, 2].flatMap((task) => [0, 1, 2].map((attempt) => ({ stage: 0, task, attempt })));

  it('do not depend on the order of asking', () => {
    const forwards = attemptDurations(job, { kind: 'slowed', slowdown: HADOOP_SLOWDOWN }, createRng('s'));
    const backwards = attemptDurations(job, { kind: 'slowed', slowdown: HADOOP_SLOWDOWN }, createRng('s'));
    const inOrder = keys.map(forwards);
    expect(keys.toReversed().map(backwards).toReversed()).toEqual(inOrder);
    expect(new Set(inOrder).size).toBe(9); // Each attempt draws for itself.
  });

  it('are recorded ones at first, and those of siblings after', () => {
    const durationMs = attemptDurations(job, { kind: 'recorded' }, createRng('s'));
    expect([0, 1, 2].map((task) => durationMs({ stage: 0, task, attempt: 0 }))).toEqual([
      10_000, 20_000, 400_000,
    ]);
    const later = new Set(
      Array.from({ length: 60 }, (_, attempt) => durationMs({ stage: 0, task: 2, attempt: attempt + 1 })),
    );
    expect([...later].sort((a, b) => a - b)).toEqual([10_000, 20_000, 400_000]);
  });

  it('make no large task small, nor a small one large: where input explains all, each attempt takes the same', () => {
    const sized = jobOf(
      'sized',
      [1, 2, 3, 4, 5, 6].map((size) => ({ workMs: size * 60_000, inputBytes: size * 1e6 })),
    );
    const durationMs = attemptDurations(
      withWork(sized, HADOOP_2009_RATES),
      { kind: 'recorded' },
      createRng('s'),
    );
    for (const task of [0, 1, 2, 3, 4, 5])
      for (const attempt of [0, 1, 2, 3])
        expect(durationMs({ stage: 0, task, attempt })).toBe((task + 1) * 60_000);
  });

  it('are at least a millisecond, and none for a task that is not there', () => {
    const instant = attemptDurations(
      withWork(jobOf('b', [{ workMs: 0 }]), {
        startupMs: 0,
        msPerInputMib: 0,
        msPerOutputMib: 0,
        unknownMs: 0,
      }),
      { kind: 'recorded' },
      createRng('s'),
    );
    expect(instant({ stage: 0, task: 0, attempt: 0 })).toBe(1);
    expect(() => instant({ stage: 0, task: 1, attempt: 0 })).toThrow(RangeError);
  });
});

describe('arrivals', () => {
  it('come at the mean gap asked for, the first at once, the same for the same seed', () => {
    const jobs = Array.from({ length: 20_001 }, (_, index) => jobOf(index.toString(), [{}]));
    const arrived = withPoissonArrivals(jobs, { meanGapMs: 1000, rng: createRng('a') });
    expect(arrived[0]?.submittedAtMs).toBe(0);
    expect((arrived.at(-1)?.submittedAtMs ?? 0) / 20_000_000).toBeCloseTo(1, 1);
    expect(withPoissonArrivals(jobs, { meanGapMs: 1000, rng: createRng('a') })).toEqual(arrived);
  });
});

describe('collecting', () => {
  async function* stream(...arrivals: readonly (number | undefined)[]): AsyncGenerator<TraceJob> {
    for (const [index, submittedAtMs] of arrivals.entries()) {
      await Promise.resolve();
      yield { ...jobOf(index.toString(), [{}]), ...(submittedAtMs === undefined ? {} : { submittedAtMs }) };
    }
  }
  const arrivalsOf = (jobs: readonly TraceJob[]) => jobs.map((job) => [job.id, job.submittedAtMs]);

  it('puts jobs in order of arrival, the first at 0', async () => {
    expect(arrivalsOf(await collectJobs(stream(50, -10, 50)))).toEqual([
      ['1', 0],
      ['0', 60],
      ['2', 60],
    ]);
  });

  it('keeps as many as asked for, of those wanted', async () => {
    const jobs = await collectJobs(stream(1, 2, 3, 4), { maxJobs: 2, keep: (job) => job.id !== '1' });
    expect(arrivalsOf(jobs)).toEqual([
      ['0', 0],
      ['2', 2],
    ]);
    expect(await collectJobs(stream(1), { maxJobs: 0 })).toEqual([]);
  });

  it('leaves jobs without arrivals as they are, and refuses a mixture', async () => {
    expect(arrivalsOf(await collectJobs(stream(undefined, undefined)))).toEqual([
      ['0', undefined],
      ['1', undefined],
    ]);
    await expect(collectJobs(stream(1, undefined))).rejects.toThrow('some jobs of the trace have no arrival');
  });
});
