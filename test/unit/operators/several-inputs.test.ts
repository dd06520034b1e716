import { describe, expect, it } from 'vitest';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { parseInput } from '../../../src/contracts/invalid.ts';
import { jobSpecSchema, type JobSpecInput, type OperatorName } from '../../../src/contracts/job-spec.ts';
import { groupbyMap, groupbyReduce } from '../../../src/operators/groupby.ts';
import { operators } from '../../../src/operators/registry.ts';
import { recordsInKeyOrder } from '../../../src/worker/merged-inputs.ts';
import type { KeyValue, TaskInput } from '../../../src/worker/operator.ts';
import { countWords } from '../../support/coreutils.ts';
import { recordsOf, runJob, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

type Stages = JobSpecInput['stages'];

const shuffled = (...stages: readonly string[]): Stages[number]['inputs'] =>
  stages.map((stage) => ({ stage, pattern: 'all-to-all' }));
const of = (file: string, format: 'text' | 'csv' = 'text'): Stages[number]['inputs'] => [
  { s3: [file], format },
];

const words = [
  Buffer.from('hello world\nhello a b\n'),
  Buffer.from('b hello z\n'),
  Buffer.from('world hello\n'),
] as const;
const files = { 's3://bucket/a': words[0], 's3://bucket/b': words[1], 's3://bucket/c': words[2] };
const names = ['a', 'b', 'c'] as const;

/** Runs stages over the files, one stage for each and then those that read all of these. */
async function run(each: (name: string) => Stages[number], last: Stages): Promise<Buffer[]> {
  return runJob({ name: 'job', stages: [...names.map(each), ...last] }, files);
}

describe('an operator that merges by key, of several stages', () => {
  it('counts each word once', async () => {
    const parts = await run(
      (name) => ({ name, operator: 'tokenize', inputs: of(`s3://bucket/${name}`), partitions: 3 }),
      [{ name: 'count', operator: 'sum-counts', inputs: shuffled(...names) }],
    );
    const lines = Buffer.concat(parts).toString('latin1').split('\n').filter(Boolean);
    expect(lines.toSorted().map((line) => `${line}\n`)).toEqual(countWords(words).match(/.*\n/g));
  });

  it('ranks their counts in one list', async () => {
    const parts = await run(
      (name) => ({
        name: `${name}-words`,
        operator: 'tokenize',
        inputs: of(`s3://bucket/${name}`),
        partitions: 1,
      }),
      [
        ...names.map((name) => ({
          name,
          operator: 'sum-counts' as const,
          options: { ranked: true },
          inputs: shuffled(`${name}-words`),
          partitions: 1,
        })),
        { name: 'top', operator: 'top-counts', inputs: shuffled(...names) },
      ],
    );
    expect(Buffer.concat(parts).toString()).toBe(
      'hello\t2\na\t1\nb\t1\nb\t1\nhello\t1\nhello\t1\nworld\t1\nworld\t1\nz\t1\n',
    );
  });

  it('writes their records in order of key', async () => {
    const parts = await run(
      (name) => ({ name, operator: 'tokenize', inputs: of(`s3://bucket/${name}`), partitions: 1 }),
      [{ name: 'merge', operator: 'merge-lines', inputs: shuffled(...names) }],
    );
    expect(Buffer.concat(parts).toString()).toBe(
      'a\t1\nb\t1\nb\t1\nhello\t2\nhello\t1\nhello\t1\nworld\t1\nworld\t1\nz\t1\n',
    );
  });

  it('writes one row for a group', async () => {
    const options = { key: 'k', aggregates: [{ op: 'count' }, { op: 'sum', column: 'v' }] };
    const map = (name: string) => ({
      ...{ name, operator: 'groupby-map' as const, options, partitions: 1 },
      inputs: of(`s3://bucket/${name}.csv`, 'csv'),
    });
    const stages: Stages = [
      map('left'),
      map('right'),
      {
        ...{ name: 'group', operator: 'groupby-reduce', options: { ...options, output: 'csv' } },
        inputs: shuffled('left', 'right'),
      },
    ];
    const parts = await runJob(
      { name: 'job', stages },
      {
        's3://bucket/left.csv': Buffer.from('k,v\nx,1\ny,2\nx,3\n'),
        's3://bucket/right.csv': Buffer.from('v,k\n40,x\n50,z\n'),
      },
    );
    expect(Buffer.concat(parts).toString()).toBe('k,count,sum_v\nx,3,44\ny,1,2\nz,1,50\n');
  });
});

describe('groups of several stages', { timeout: 60_000 }, () => {
  const options = { key: 'k', aggregates: [{ op: 'count' }, { op: 'sum', column: 'v' }] };
  const engine = { memoryBytes: 64 * 1024 * 1024, threads: 1 };
  const keyOf = (number: number): string =>
    `key ${String(number).padStart(6, '0')} of the groups that there are`;
  /** Enough for the engine, and of so many groups that they travel in pieces. */
  const many = Array.from({ length: 90_000 }, (_, at) => at % 30_000);
  const few = Array.from({ length: 300 }, (_, at) => 100 * at + 7);

  async function mapped(numbers: readonly number[]): Promise<TaskInput> {
    const text = Buffer.from(
      `k,v\n${numbers.map((number) => `${keyOf(number)},${String(number)}\n`).join('')}`,
    );
    const { collector } = await runTask(groupbyMap, options, [sourceOf(text, seeded(1), 'csv')], { engine });
    return recordsOf('map', collector.sorted(0, groupbyMap, options), seeded(2));
  }

  it.each([
    ['all in pieces', [many, many]],
    ['some in pieces and some one by one', [few, many, few]],
    ['all one by one', [few, few]],
  ])('are one each, %s', async (_, sides) => {
    const inputs = await Promise.all(sides.map(mapped));
    const { text } = await runTask(groupbyReduce, { ...options, output: 'csv' }, inputs, { engine });
    const counts = new Map<number, number>();
    for (const number of sides.flat()) counts.set(number, (counts.get(number) ?? 0) + 1);
    const rows = [...counts].toSorted(([left], [right]) => left - right);
    const lines = rows.map(
      ([number, count]) => `${keyOf(number)},${String(count)},${String(count * number)}\n`,
    );
    // Not by `toBe`, which would take minutes to show how they differ.
    expect(text.equals(Buffer.from(`k,count,sum_v\n${lines.join('')}`))).toBe(true);
  });
});

describe('records of several inputs in order of key', () => {
  const record = (key: string, value: string): KeyValue => ({
    key: Buffer.from(key),
    value: Buffer.from(value),
  });

  /** An input whose batches are overwritten once the next one is asked for, as their memory may be used again. */
  const reusing = (keys: readonly string[], mark: string): TaskInput => ({
    ...recordsOf('stage', [], seeded(1)),
    async *records() {
      for (let at = 0; at < keys.length; at += 2) {
        const batch = keys.slice(at, at + 2).map((key) => record(key, mark));
        yield batch;
        for (const { key, value } of batch) {
          key.fill('?');
          value.fill('?');
        }
      }
    },
  });

  it('come with those of equal keys in order of input, each good until the next batch is asked for', async () => {
    const inputs = [
      reusing(['a', 'c', 'c', 'x', 'y'], '1'),
      reusing([], '2'),
      reusing(['', 'a', 'a', 'c', 'd', 'z'], '3'),
    ];
    const found: string[] = [];
    for await (const batch of recordsInKeyOrder(inputs))
      found.push(...batch.map(({ key, value }) => `${key.toString()}${value.toString()}`));
    expect(found).toEqual(['3', 'a1', 'a3', 'a3', 'c1', 'c1', 'c3', 'd3', 'x1', 'y1', 'z3']);
  });

  it('ends its inputs where nobody wants more', async () => {
    const ended: string[] = [];
    const input = (name: string): TaskInput => ({
      ...recordsOf('stage', [], seeded(1)),
      async *records() {
        try {
          for (;;) yield [record('a', name), record('b', name)];
        } finally {
          ended.push(name);
        }
      },
    });
    for await (const batch of recordsInKeyOrder([input('1'), input('2')])) if (batch.length > 0) break;
    expect(ended.toSorted()).toEqual(['1', '2']);
  });
});

describe('an operator that merges by key', () => {
  const refused = (operator: OperatorName, inputs: Stages[number]['inputs'], options = {}): string => {
    const stage = (name: string) => ({ name, operator: 'tokenize' as const, inputs: of('s3://bucket/a') });
    try {
      parseInput(jobSpecSchema, {
        name: 'job',
        stages: [stage('a'), stage('b'), { name: 'last', operator, inputs, options }],
      });
    } catch (error) {
      if (error instanceof InvalidInputError) return error.message;
      throw error;
    }
    return 'right';
  };
  const both = (pattern: 'all-to-all' | 'many-to-one' | 'broadcast'): Stages[number]['inputs'] => [
    { stage: 'a', pattern: 'all-to-all' },
    { stage: 'b', pattern },
  ];
  const merging = ['sum-counts', 'top-counts', 'groupby-reduce', 'merge-lines'] as const;

  it.each(merging)('takes several stages all-to-all alone: %s', (operator) => {
    expect(operators[operator]).toBeDefined();
    expect(refused(operator, both('all-to-all'))).toBe('right');
    for (const pattern of ['many-to-one', 'broadcast'] as const)
      expect(refused(operator, both(pattern))).toBe(
        `stages[2].inputs[1].pattern must be "all-to-all": "${operator}" merges its inputs, which come in order of their keys so alone`,
      );
    expect(refused(operator, [...both('all-to-all'), ...of('s3://bucket/a')])).toBe(
      `stages[2].inputs[2] must be another stage, read "all-to-all": "${operator}" merges its inputs, which come in order of their keys so alone`,
    );
  });
});
