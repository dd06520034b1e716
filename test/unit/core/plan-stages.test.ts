import { describe, expect, it } from 'vitest';
import type { JobId } from '../../../src/contracts/ids.ts';
import { parseInput } from '../../../src/contracts/invalid.ts';
import { jobSpecSchema, type JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { edgeManifest } from '../../../src/core/model/edge-manifest.ts';
import { planStages } from '../../../src/core/model/plan-stages.ts';
import { sharesOf } from '../../../src/core/model/split-stage.ts';
import { type SourceObject, splitObjects } from '../../../src/core/model/splits.ts';
import { resultOf } from '../../support/job-states.ts';

const object = (key: string, sizeBytes: number): SourceObject => ({
  bucket: 'input',
  key,
  sizeBytes,
  etag: `"${key}"`,
});
const text = { format: 'text', splitBytes: 100, field: 'stages[0].inputs[0]' } as const;
const spans = (objects: SourceObject[], options: Parameters<typeof splitObjects>[1] = text) =>
  splitObjects(objects, options).map((task) => task.map(({ key, start, end }) => `${key}:${start}-${end}`));

describe('splitObjects', () => {
  it('cuts a large object into even pieces and lets small ones share a task, in order', () => {
    expect(spans([object('a', 250), object('b', 30), object('c', 60), object('d', 50)])).toEqual([
      ['a:0-83'],
      ['a:83-166'],
      ['a:166-250'],
      ['b:0-30', 'c:0-60'],
      ['d:0-50'],
    ]);
  });
  it.each(['text', 'csv', 'ndjson'] as const)('counts objects of %s as well as bytes', (format) => {
    const many = Array.from({ length: 10_000 }, (_, index) => object(`o${index}`, 1));
    const tasks = splitObjects(many, { ...text, format, splitBytes: 1e9 });
    expect(tasks).toHaveLength(40);
    expect(Math.max(...tasks.map((task) => task.length))).toBe(256);
    expect(tasks.flat().map(({ key }) => key)).toEqual(many.map(({ key }) => key));
  });
  it('keeps gzip and CSV whole', () => {
    expect(spans([object('a.gz', 250)])).toEqual([['a.gz:0-250']]);
    expect(spans([object('a.csv', 250)], { ...text, format: 'csv' })).toEqual([['a.csv:0-250']]);
    const multiline = { ...text, format: 'csv', multiline: true } as const;
    expect(spans([object('a.csv', 250)], multiline)).toEqual([['a.csv:0-250']]);
  });
  it('cuts CSV of a line a record as it cuts text', () => {
    const oneLine = { ...text, format: 'csv', multiline: false } as const;
    expect(spans([object('a.csv', 250)], oneLine)).toEqual([
      ['a.csv:0-83'],
      ['a.csv:83-166'],
      ['a.csv:166-250'],
    ]);
    expect(spans([object('a.csv.zst', 250)], oneLine)).toEqual([['a.csv.zst:0-250']]);
  });
  it('makes one idle task where there is nothing to read', () => {
    expect(spans([object('a', 0)])).toEqual([[]]);
  });
  it('refuses more tasks than the limit, naming what would help', () => {
    expect(() => spans([object('a', 10_001)], { ...text, splitBytes: 1 })).toThrow(
      /inputs\[0\]\.splitBytes must be larger than 1/,
    );
  });
});

const context = {
  jobId: 'words-0123456789ab' as JobId,
  nonce: 'first',
  dataBucket: 'data',
  output: { bucket: 'data', key: 'out/' },
};

function plan(spec: JobSpecInput, sizes: Record<string, number[]>) {
  const sources = new Map(
    Object.entries(sizes).map(([field, each]) => [
      field,
      each.map((size, index) => object(`o${index}`, size)),
    ]),
  );
  return planStages(parseInput(jobSpecSchema, spec), sources, context);
}

const source = { s3: ['s3://input/'], splitBytes: 100 };

describe('planStages', () => {
  it.each(['exec', 'grep', 'groupby-map'] as const)(
    'asks for the part that has the header of CSV where a stage reads rows, and not of bytes: %s',
    (operator) => {
      const inputs = [{ ...source, format: 'csv' as const }];
      const planned = () =>
        planStages(
          parseInput(jobSpecSchema, { name: 'x', stages: [{ name: 'x', operator, inputs }] }),
          new Map([['stages[0].inputs[0]', [object('out/part-00003', 10)]]]),
          context,
        );
      if (operator === 'groupby-map') expect(planned).toThrow(/part-00003 has the name of a later part/);
      else expect(JSON.stringify(planned().manifests)).not.toContain('headerIn');
    },
  );

  it('gives a shuffle as many tasks as its producer has partitions, and says where task lines lie', () => {
    const { plan: planned, manifests } = plan(
      {
        name: 'words',
        stages: [
          { name: 'map', operator: 'tokenize', inputs: [source], partitions: 3 },
          { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
        ],
      },
      { 'stages[0].inputs[0]': [250, 40] },
    );
    expect(planned.stages.map(({ description: d }) => [d.name, d.tasks, d.partitions, d.output])).toEqual([
      ['map', 4, 3, 'sorted'],
      ['reduce', 3, 1, 'final'],
    ]);
    expect(planned.stages[0]?.sourceBytes).toEqual([83, 83, 84, 40]);
    const offsets = planned.stages[0]?.manifestOffsets[0] ?? [];
    const text = manifests.map(({ texts }) => [...texts()].join('')).join('');
    const line = text.slice(offsets[3], offsets[4]);
    expect(JSON.parse(line)).toMatchObject({ segments: [{ key: 'o1', start: 0, end: 40 }] });
  });

  it('says of CSV with a header and NDJSON which object is the first of all tasks, since its columns are those of all', () => {
    const firstOf = (more: object, sizes: number[]): unknown => {
      const inputs = [{ s3: ['s3://input/'], splitBytes: 100, ...more }];
      const stages = [{ name: 'join', operator: 'tokenize' as const, inputs }];
      const { plan: planned } = plan({ name: 'words', stages }, { 'stages[0].inputs[0]': sizes });
      const [input] = planned.stages[0]?.description.inputs ?? [];
      return input?.kind === 'source' ? input.first : input;
    };
    expect(firstOf({ format: 'csv' }, [250, 40])).toMatchObject({ key: 'o0', start: 0, sizeBytes: 250 });
    expect(firstOf({ format: 'csv' }, [0, 40])).toMatchObject({ key: 'o1', start: 0, sizeBytes: 40 });
    expect(firstOf({ format: 'csv' }, [])).toBeUndefined();
    expect(firstOf({ format: 'csv', header: false }, [250])).toBeUndefined();
    expect(firstOf({ format: 'ndjson' }, [0, 40])).toMatchObject({ key: 'o1', start: 0, sizeBytes: 40 });
    expect(firstOf({}, [250])).toBeUndefined();
  });

  it('refuses inputs that disagree on the number of tasks', () => {
    const stages: JobSpecInput['stages'] = [
      { name: 'left', operator: 'tokenize', inputs: [source], partitions: 3 },
      { name: 'right', operator: 'tokenize', inputs: [source], partitions: 4 },
      {
        name: 'both',
        operator: 'join-reduce',
        inputs: ['left', 'right'].map((stage) => ({ stage, pattern: 'all-to-all' as const })),
      },
    ];
    const sizes = { 'stages[0].inputs[0]': [10], 'stages[1].inputs[0]': [10] };
    expect(() => plan({ name: 'join', stages }, sizes)).toThrow(
      /stages\[2\]\.inputs must agree on the number of tasks, but make 3 and 4/,
    );
  });

  it('refuses a shuffle of too many segments', () => {
    const stages: JobSpecInput['stages'] = [
      { name: 'map', operator: 'tokenize', inputs: [{ ...source, splitBytes: 1 }], partitions: 1000 },
      { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
    ];
    expect(() => plan({ name: 'big', stages }, { 'stages[0].inputs[0]': [2_000] })).toThrow(
      /partitions must be at most 500 with 2000 tasks/,
    );
  });
});

describe('edgeManifest', () => {
  const consumer = (tasks: number) => {
    const { plan: planned } = plan(
      { name: 'j', stages: [{ name: 'c', operator: 'sum-counts', inputs: [source] }] },
      { 'stages[0].inputs[0]': [1] },
    );
    const description = planned.stages[0]?.description;
    if (description === undefined) throw new Error('no stage');
    return { ...description, tasks };
  };
  const edge = (
    pattern: 'all-to-all' | 'one-to-one' | 'many-to-one' | 'broadcast',
    producerTasks: number,
    producerPartitions: number,
  ) => ({ kind: 'stage', stage: 'p', pattern, producerTasks, producerPartitions }) as const;
  const short = (lines: ReturnType<typeof edgeManifest>) =>
    lines.map(({ segments }) =>
      [...segments].map(
        ({ task, attempt, offset, length, crc }) => `${task}/${attempt}@${offset}+${length}#${crc}`,
      ),
    );
  const results = [
    resultOf('p/0/0', 1, [5, 0, 7]),
    resultOf('p/1/2', 1, [1, 2, 3]),
    resultOf('p/2/0', 1, [0, 0, 4]),
  ];

  it('gives each task of a shuffle its partition of every output, without the empty ones', () => {
    expect(short(edgeManifest(consumer(3), edge('all-to-all', 3, 3), results))).toEqual([
      ['0/0@0+5#0', '1/2@0+1#100'],
      ['1/2@1+2#101'],
      ['0/0@5+7#2', '1/2@3+3#102', '2/0@0+4#202'],
    ]);
  });
  it('gives parts of a partition its outputs by task, each with all that come before as heads', () => {
    const heavy = [
      resultOf('p/0/0', 1, [5, 0, 7]),
      resultOf('p/1/2', 1, [0, 2, 3]),
      resultOf('p/2/0', 1, [0, 6, 4]),
      resultOf('p/3/0', 1, [0, 8, 0]),
    ];
    const splits = [{ task: 1, input: 0, cuts: [2, 3], facts: {} }];
    const shares = sharesOf(3, splits);
    const read = (number: number) =>
      edgeManifest(consumer(3), edge('all-to-all', 4, 3), heavy, { number, shares });
    expect(short(read(0)).filter((_, task) => task === 1 || task > 2)).toEqual([
      ['1/2@0+2#101'],
      ['1/2@0+2#101', '2/0@0+6#201'],
      ['1/2@0+2#101', '2/0@0+6#201', '3/0@0+8#301'],
    ]);
    expect(read(0).map(({ segments }) => [...segments].map(({ head }) => head === true))).toEqual([
      [false],
      [false],
      [false, false, false],
      [true, false],
      [true, true, false],
    ]);
    const whole = ['1/2@0+2#101', '2/0@0+6#201', '3/0@0+8#301'];
    expect(short(read(1)).filter((_, task) => task === 1 || task > 2)).toEqual([whole, whole, whole]);
    expect([...(read(1)[3]?.segments ?? [])].some(({ head }) => head)).toBe(false);
  });
  it('takes no head behind one that is longer than columns can be', () => {
    const MIB = 1024 * 1024;
    const heavy = [20, MIB, 9, 8].map((length, task) => resultOf(`p/${String(task)}/0`, 1, [length]));
    const shares = sharesOf(1, [{ task: 0, input: 0, cuts: [3], facts: {} }]);
    const [, part] = edgeManifest(consumer(1), edge('all-to-all', 4, 1), heavy, { number: 0, shares });
    expect([...(part?.segments ?? [])].map(({ task, head }) => [task, head === true])).toEqual([
      [0, true],
      [1, true],
      [3, false],
    ]);
  });
  it('gives nothing of outputs that are empty, or of which nothing is said', () => {
    const silent = { ...resultOf('p/1/0', 1, []) };
    Reflect.deleteProperty(silent, 'partitions');
    const empty = [resultOf('p/0/0', 1, [0, 0]), silent, resultOf('p/2/0', 1, [0, 3])];
    expect(short(edgeManifest(consumer(2), edge('all-to-all', 3, 2), empty))).toEqual([[], ['2/0@0+3#201']]);
    expect(short(edgeManifest(consumer(3), edge('one-to-one', 3, 1), empty))).toEqual([[], [], []]);
  });
  it('gives each task of a one-to-one edge its own output', () => {
    expect(
      short(edgeManifest(consumer(3), edge('one-to-one', 3, 1), results)).map((line) => line.length),
    ).toEqual([1, 1, 0]);
  });
  it('gives contiguous groups to a many-to-one edge and everything to all of a broadcast', () => {
    const whole = [
      ['0/0@0+5#0', '0/0@5+7#2'],
      ['1/2@0+1#100', '1/2@1+2#101', '1/2@3+3#102', '2/0@0+4#202'],
    ];
    expect(short(edgeManifest(consumer(2), edge('many-to-one', 3, 3), results))).toEqual(whole);
    expect(short(edgeManifest(consumer(9), edge('broadcast', 3, 3), results))).toEqual([whole.flat()]);
  });
});
