import { describe, expect, it } from 'vitest';
import { checkSpec } from '../../../src/app/check-spec.ts';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import { parseInput } from '../../../src/contracts/invalid.ts';
import { jobSpecSchema, type JobSpecInput, type OperatorName } from '../../../src/contracts/job-spec.ts';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import type { BuiltinJobName, BuiltinJobOptions } from '../../../src/operators/builtin-jobs.ts';
import { operators } from '../../../src/operators/registry.ts';
import { runJob } from '../../support/operator-bench.ts';

type Stage = JobSpecInput['stages'][number];
type Input = Stage['inputs'][number];
type Pattern = Extract<Input, { stage: string }>['pattern'];

const source = (format: 'text' | 'csv' | 'ndjson' | 'parquet', name: string = format): Input => ({
  s3: [`s3://bucket/${name}`],
  format,
});
const from = (stage: string, pattern: Pattern = 'all-to-all'): Input => ({ stage, pattern });
const others = ['one-to-one', 'many-to-one', 'broadcast'] as const;
const grouping = { key: 'k', aggregates: [{ op: 'count' }, { op: 'sum', column: 'v' }] };

/** A stage of an operator, with options that are right. */
const stageOf = (name: string, operator: OperatorName, inputs: readonly Input[], more = {}): Stage => {
  const optionsOf: Partial<Record<OperatorName, Stage['options']>> = {
    ...{ grep: { pattern: '.' }, 'grep-count': { pattern: '[a-z]+' }, exec: { command: ['cat'] } },
    ...{ bounds: { partitions: 2 }, 'groupby-map': grouping, 'groupby-reduce': grouping },
    ...{ 'join-map': { key: 'k' }, 'join-reduce': { leftKey: 'k', rightKey: 'k' } },
    'join-probe': { key: 'k', leftKey: 'k', rightKey: 'k' },
    sql: { query: 'SELECT * FROM input' },
  };
  return { name, operator, options: { ...optionsOf[operator], ...more }, inputs: [...inputs] };
};

const jobOf = (...stages: readonly Stage[]): JobSpecInput => ({ name: 'job', stages: [...stages] });

function refusal(job: JobSpecInput): string | undefined {
  try {
    checkSpec(parseInput(jobSpecSchema, job), {
      checkOperator: (operator, options) => {
        operators[operator].check(options);
      },
    });
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const field = error.details['field'];
    expect(error.message.startsWith(`${String(field)} `)).toBe(true);
    return error.message;
  }
  return undefined;
}

const merges = 'merges its inputs, which come in order of their keys so alone';

describe('an operator that merges by key', () => {
  const makers = [
    ['sum-counts', stageOf('map', 'tokenize', [source('text')])],
    ['top-counts', stageOf('map', 'sum-counts', [from('words')], { ranked: true })],
    ['groupby-reduce', stageOf('map', 'groupby-map', [source('csv')])],
  ] as const;
  const words = stageOf('words', 'tokenize', [source('text')]);
  const job = (maker: Stage, operator: OperatorName, input: Input) =>
    jobOf(maker, stageOf('last', operator, [input]), ...(maker.operator === 'sum-counts' ? [words] : []));

  it.each(makers)('takes its only input all-to-all alone: %s', (operator, maker) => {
    expect(refusal(job(maker, operator, from('map')))).toBeUndefined();
    for (const pattern of ['one-to-one', 'many-to-one'] as const)
      expect(refusal(job(maker, operator, from('map', pattern)))).toBe(
        `stages[1].inputs[0].pattern must be "all-to-all": "${operator}" ${merges}`,
      );
    expect(refusal(jobOf(stageOf('last', operator, [source('text')])))).toBe(
      `stages[0].inputs[0] must be another stage, read "all-to-all": "${operator}" ${merges}`,
    );
  });

  it('is refused many-to-one with several tasks, too', () => {
    const last = { ...stageOf('last', 'sum-counts', [from('words', 'many-to-one')]), tasks: 3 };
    expect(refusal(jobOf(words, last))).toContain('stages[1].inputs[0].pattern must be "all-to-all"');
  });

  it('may copy the lines of one input as they come: merge-lines', () => {
    for (const pattern of ['one-to-one', 'many-to-one', 'all-to-all'] as const)
      expect(
        refusal(
          jobOf(
            stageOf('find', 'grep', [source('text')]),
            stageOf('l', 'merge-lines', [from('find', pattern)]),
          ),
        ),
      ).toBeUndefined();
  });
});

describe('a join', () => {
  const [left, right] = ['left', 'right'].map((name) => stageOf(name, 'join-map', [source('csv', name)]));
  if (left === undefined || right === undefined) throw new Error('two sides');
  const why = '"join-reduce" joins rows of equal keys, which meet in one task so alone';
  const reduce = (...inputs: Input[]) => stageOf('join', 'join-reduce', inputs);

  it('reads two stages all-to-all', () => {
    expect(refusal(jobOf(left, right, reduce(from('left'), from('right'))))).toBeUndefined();
    for (const pattern of ['one-to-one', 'many-to-one'] as const)
      expect(refusal(jobOf(left, right, reduce(from('left', pattern), from('right', pattern))))).toBe(
        `stages[2].inputs[0].pattern must be "all-to-all": ${why}`,
      );
    expect(refusal(jobOf(left, right, reduce(from('left'), from('right', 'broadcast'))))).toBe(
      `stages[2].inputs[1].pattern must be "all-to-all": ${why}`,
    );
    expect(refusal(jobOf(left, reduce(from('left'))))).toBe(
      'stages[1].inputs must be two for "join-reduce": the left-hand side, then the right-hand side',
    );
  });

  it('finds equal keys in partitions of equal numbers', () => {
    const more = { ...right, partitions: 3 };
    expect(refusal(jobOf(left, more, reduce(from('left'), from('right'))))).toBe(
      'stages[2].inputs must agree on the number of tasks, but make 8 and 3',
    );
    expect(
      refusal(jobOf({ ...left, partitions: 8 }, right, reduce(from('left'), from('right')))),
    ).toBeUndefined();
  });

  it('by broadcast reads rows, and then a stage whole', () => {
    const probe = (...inputs: Input[]) => jobOf(right, stageOf('join', 'join-probe', inputs));
    const whole = '"join-probe" looks each row of its first input up in all of its second';
    expect(refusal(probe(source('ndjson'), from('right', 'broadcast')))).toBeUndefined();
    expect(refusal(probe(source('text'), from('right', 'broadcast')))).toBe(
      `stages[1].inputs[0].format must be "csv" or "ndjson": ${whole}`,
    );
    expect(refusal(probe(from('right', 'broadcast'), source('csv')))).toBe(
      `stages[1].inputs[0] must be { "s3": […] } of the format "csv" or "ndjson": ${whole}`,
    );
    expect(refusal(probe(from('right')))).toBe(
      'stages[1].inputs must be two for "join-probe": the left-hand side, then the right-hand side',
    );
  });
});

describe('an operator that reads rows', () => {
  it.each(['groupby-map', 'join-map'] as const)('takes objects of CSV and NDJSON alone: %s', (operator) => {
    const after = (input: Input) => refusal(jobOf(stageOf('map', operator, [input])));
    expect([after(source('csv')), after(source('ndjson'))]).toEqual([undefined, undefined]);
    expect(after(source('text'))).toBe(
      `stages[0].inputs[0].format must be "csv" or "ndjson": "${operator}" reads rows`,
    );
    // As most people write it, who forget the format.
    expect(after({ s3: ['s3://bucket/sales.csv'] })).toBe(
      `stages[0].inputs[0].format must be "csv" or "ndjson": "${operator}" reads rows`,
    );
    const find = stageOf('find', 'grep', [source('csv')]);
    expect(refusal(jobOf(find, stageOf('map', operator, [from('find')])))).toBe(
      `stages[1].inputs[0] must be { "s3": […] } of the format "csv" or "ndjson": "${operator}" reads rows`,
    );
  });

  it('is sql, of files and of its own stages, under the names that there are', () => {
    const sql = (name: string, inputs: Input[], more = {}) => stageOf(name, 'sql', inputs, more);
    const one = (format: 'text' | 'csv' | 'ndjson' | 'parquet', more = {}) =>
      refusal(jobOf(sql('ask', [source(format)], more)));
    expect((['csv', 'ndjson', 'parquet'] as const).map((format) => one(format))).toEqual(
      Array(3).fill(undefined),
    );
    expect(one('text')).toBe(
      'stages[0].inputs[0].format must be "csv", "ndjson" or "parquet": "sql" reads rows',
    );
    expect(one('csv', { tables: ['a', 'b'] })).toBe(
      'stages[0].options.tables must be a list of 1 names, one for each input',
    );
    expect(one('ndjson', { tables: ['a'], columns: { input: { id: 'BIGINT' } } })).toBe(
      'stages[0].options.columns.input must be the name of a table: a',
    );
    expect(one('csv', { columns: { input: { id: 'BIGINT' } } })).toBe(
      'stages[0].options.columns.input is for NDJSON alone: cast the columns in the query',
    );
    expect(one('ndjson', { columns: { input: { id: 'BIGINT' } } })).toBeUndefined();
    const both = (more = {}) =>
      refusal(
        jobOf(sql('input', [source('csv')]), sql('ask', [source('csv'), from('input', 'broadcast')], more)),
      );
    expect(both()).toBe('stages[1].options.tables must name each input differently: two are called "input"');
    expect(both({ tables: ['left', 'right'] })).toBeUndefined();
  });

  it('is sql, which says by what rows go to several tasks', () => {
    const job = (more: object, partitions?: number) =>
      refusal(
        jobOf(
          {
            ...stageOf('first', 'sql', [source('csv')], more),
            ...(partitions === undefined ? {} : { partitions }),
          },
          stageOf('ask', 'sql', [from('first')], { tables: ['input'] }),
        ),
      );
    const wanted =
      'stages[0].options.partitionBy must name the columns by which rows go to the next stage, unless "partitions" is 1';
    expect([job({}), job({}, 3), job({}, 1), job({ partitionBy: ['k'] }, 3)]).toEqual([
      wanted,
      wanted,
      undefined,
      undefined,
    ]);
    expect(job({ output: 'csv' }, 3)).toBe(
      'stages[1].inputs[0].stage must be a stage of "sql" whose "output" is "parquet", as it is where it is left out: "sql" reads what that sends',
    );
  });
});

describe('a stage that is read', () => {
  it('sends what its reader can use', () => {
    const words = stageOf('words', 'tokenize', [source('text')]);
    const sums = stageOf('sums', 'sum-counts', [from('words')]);
    const after = (operator: OperatorName, ...stages: Stage[]) =>
      refusal(jobOf(...stages, stageOf('last', operator, [from(stages.at(-1)?.name ?? '')])));
    expect(after('top-counts', words, sums)).toBe(
      'stages[2].inputs[0].stage must be a stage of "sum-counts" with "ranked": true: "top-counts" reads what that sends',
    );
    expect(after('top-counts', words, { ...sums, options: { ranked: true } })).toBeUndefined();
    expect(after('groupby-reduce', words)).toContain('must be a stage of "groupby-map"');
    expect(after('sum-counts', words, sums)).toBeUndefined();
    expect(after('sum-counts', words, { ...sums, options: { ranked: true } })).toContain('without "ranked"');
    // Lines that a program or grep passes on may be anything.
    const rank = { ...sums, options: { ranked: true } };
    const find = stageOf('find', 'grep', [from('sums', 'one-to-one')]);
    const program = stageOf('program', 'exec', [from('sums')]);
    expect(after('top-counts', words, rank, find)).toBeUndefined();
    expect(after('top-counts', words, rank, program)).toBeUndefined();
  });

  it('has grouped as its reader takes it', () => {
    const map = stageOf('map', 'groupby-map', [source('csv')]);
    const job = (more: object) => refusal(jobOf(map, stageOf('last', 'groupby-reduce', [from('map')], more)));
    const [count, sum] = grouping.aggregates;
    expect(job({ aggregates: [sum, count] })).toBe(
      'stages[1].options.aggregates must have the same "op"s as those of stage map, in order: count, sum',
    );
    expect(job({ aggregates: [count] })).toContain('options.aggregates must have the same');
    expect(job({ key: ['k', 'l'] })).toBe(
      'stages[1].options.key must have as many columns as that of stage map: 1',
    );
    // Other names are those of the result.
    expect(
      job({
        key: ['kind'],
        aggregates: [
          { op: 'count', as: 'n' },
          { op: 'sum', column: 'v', as: 's' },
        ],
      }),
    ).toBe(undefined);
  });
});

it('bounds that several tasks wrote are refused, as their order is none', async () => {
  const cuts = { ...stageOf('cuts', 'bounds', [source('text')]), options: { partitions: 3 } };
  const job = jobOf(
    { ...cuts, inputs: [{ s3: ['s3://bucket/one', 's3://bucket/two'] }] },
    stageOf('parts', 'range-partition', [source('text'), from('cuts', 'broadcast')]),
  );
  const files = {
    's3://bucket/one': Buffer.from('a\nm\nz\n'),
    's3://bucket/two': Buffer.from('b\nn\ny\n'),
    's3://bucket/text': Buffer.from('c\n'),
  };
  await expect(runJob(job, files)).rejects.toThrow(
    'range-partition needs bounds in order, but several tasks wrote them',
  );
});

describe('what a user wrote', () => {
  const code = { s3: 's3://bucket/code.mjs', sha256: '0'.repeat(64) };
  const anywhere = [source('text'), source('csv')];

  it.each([
    ['code', { code }],
    ['a program', { operator: 'exec' as const, options: { command: ['cat'] } }],
  ])('reads and sends what it likes: %s', (_, own) => {
    const map = stageOf('map', 'tokenize', [source('text')]);
    for (const pattern of [...others.slice(0, 2), 'all-to-all'] as const)
      expect(refusal(jobOf(map, { name: 'own', ...own, inputs: [from('map', pattern)] }))).toBeUndefined();
    expect(
      refusal(jobOf(map, { name: 'own', ...own, inputs: [source('text'), from('map', 'broadcast')] })),
    ).toBeUndefined();
    const mine = { name: 'mine', ...own, inputs: anywhere.slice(0, 1) };
    const grep = stageOf('last', 'grep', [from('mine', 'one-to-one')]);
    expect(refusal(jobOf(mine, grep))).toBeUndefined();
    for (const operator of ['sum-counts', 'top-counts', 'groupby-reduce'] as const)
      expect(refusal(jobOf(mine, stageOf('last', operator, [from('mine')])))).toBeUndefined();
    expect(
      refusal(jobOf(mine, stageOf('last', 'join-reduce', [from('mine'), from('mine')]))),
    ).toBeUndefined();
    expect(
      refusal(jobOf(mine, stageOf('last', 'range-partition', [source('text'), from('mine', 'broadcast')]))),
    ).toBeUndefined();
  });
});

it.each<[BuiltinJobName, Partial<BuiltinJobOptions>]>([
  ['wordcount', {}],
  ['wordcount', { partitions: 1 }],
  ['grep', { pattern: 'x' }],
  ['grep', { pattern: 'x', count: true }],
  ['sort', {}],
  ['sort', { partitions: 1 }],
  ...(['csv', 'ndjson'] as const).flatMap((format): [BuiltinJobName, Partial<BuiltinJobOptions>][] => [
    ['groupby', { format, ...grouping, aggregates: [{ op: 'count' }, { op: 'avg', column: 'v' }] }],
    ['groupby', { format, key: ['k', 'l'], aggregates: [{ op: 'min', column: 'v', as: 'least' }] }],
    ['join', { format, right: ['s3://bucket/r'], leftKey: 'k' }],
    ['join', { format, right: ['s3://bucket/r'], leftKey: 'k', rightFormat: 'ndjson', rows: 'ndjson' }],
    ['join', { format, right: ['s3://bucket/r'], leftKey: 'k', broadcast: true }],
  ]),
])('a built-in job is right: %s %j', (name, more) => {
  expect(refusal(builtinJob(name, { inputs: ['s3://bucket/in/'], ...more }))).toBeUndefined();
});

describe('what is accepted', () => {
  const files = {
    's3://bucket/text': Buffer.from('a b a\nb c\n'),
    's3://bucket/csv': Buffer.from('k,v\na,1\nb,2\n'),
    's3://bucket/ndjson': Buffer.from('{"k":"a","v":1}\n{"k":"c","v":2}\n'),
  };
  const makers = [
    stageOf('words', 'tokenize', [source('text')]),
    stageOf('groups', 'groupby-map', [source('csv')]),
    stageOf('side', 'join-map', [source('ndjson')]),
    stageOf('cuts', 'bounds', [source('text')]),
    stageOf('rank', 'sum-counts', [from('words')], { ranked: true }),
    stageOf('found', 'grep', [source('text')]),
  ];
  const patterns = ['all-to-all', ...others] as const;
  const inputs: readonly Input[] = [
    ...(['text', 'csv', 'ndjson'] as const).map((format) => source(format)),
    ...makers.flatMap(({ name }) => patterns.map((pattern) => from(name, pattern))),
  ];
  /** With the stages that it reads, and those that these read. */
  const jobWith = (last: Stage): JobSpecInput => {
    const named = (stage: Stage): string[] =>
      stage.inputs.flatMap((each) => ('stage' in each ? [each.stage] : []));
    const read = new Set(named(last));
    if (read.has('rank')) read.add('words');
    return jobOf(...makers.filter(({ name }) => read.has(name)), last);
  };
  /** What operators say of inputs that they cannot use, and not of what is in these. */
  const unfit = /reads rows|needs two inputs|sql stages|names, one for each|no count|reads the output of/;

  const picky = [
    ...(['sum-counts', 'top-counts', 'groupby-map', 'groupby-reduce', 'join-map'] as const),
    ...(['join-reduce', 'join-probe', 'range-partition'] as const),
  ];

  it.each(picky)(
    'is never found unfit by a worker: %s',
    async (operator) => {
      const isPair = ['join-reduce', 'join-probe', 'range-partition'].includes(operator);
      const lists = isPair
        ? inputs.flatMap((left) => inputs.map((right) => [left, right]))
        : [...inputs.map((each) => [each]), ...inputs.slice(0, 7).map((each) => [each, each])];
      let accepted = 0;
      for (const list of [
        ...lists,
        ...inputs.map((each) => [each]),
        ...inputs.map((each) => [each, each, each]),
      ]) {
        const job = jobWith(stageOf('last', operator, list));
        if (refusal(job) !== undefined) continue;
        accepted++;
        const failure = await runJob(job, files).then(
          () => '',
          (error: unknown) => String(error),
        );
        // What grep passes on is the words of a text, which only its data tells.
        if (!JSON.stringify(list).includes('found'))
          expect(`${JSON.stringify(list)}: ${failure}`).not.toMatch(unfit);
      }
      expect(accepted).toBeGreaterThan(0);
    },
    60_000,
  );
});
