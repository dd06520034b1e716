import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import type { EngineSize } from '../../../src/worker/operator.ts';
import { linesOf, runJob } from '../../support/operator-bench.ts';
import { draws } from '../../support/draws.ts';

const none: EngineSize = { memoryBytes: 0, threads: 1 };

/** Cells that writers, readers and engines of CSV and JSON get wrong. */
const arbText = fc.oneof(
  fc.constantFrom(
    ...['', ' ', 'a', 'A', 'a ', '1', '01', '1.0', 'NULL', 'null', 'true', '#', '#a', "'", '--', '\\', '\\N'],
    ...[
      '"',
      '""',
      'a"b',
      ',',
      'a,b',
      '\n',
      'a\nb',
      '\r',
      '\r\n',
      '\t',
      '\u0000',
      '\u0001',
      '\u0002',
      '\u000b',
    ],
    ...[
      '\u001f',
      '\u007f',
      '\u0085',
      '\u2028',
      '\ufeff',
      'é',
      'e\u0301',
      '😀',
      '\\u000b',
      '\\u000B\u000b',
      '__proto__',
    ],
  ),
  fc.string({ maxLength: 4 }),
  fc.string({ unit: 'binary', maxLength: 3 }),
);
const arbJson = fc.oneof(
  arbText,
  fc.constant('\ud800'),
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    1,
    1.5,
    1e21,
    2 ** 53,
    [],
    {},
    [null],
    { a: 'x\ty' },
    '1',
  ),
);
const arbColumn = fc.constantFrom(
  'id',
  'a',
  'b',
  'a_right',
  'A',
  '1',
  '0',
  '__proto__',
  'quo"te',
  'com,ma',
  '',
);

interface Side {
  readonly format: 'csv' | 'ndjson';
  readonly files: readonly Buffer[];
  readonly columns: readonly string[] | undefined;
}

const cell = (text: string, isQuoted: boolean): string =>
  isQuoted || /[",\r\n]/.test(text) || text === '' ? `"${text.replaceAll('"', '""')}"` : text;

/** Files of CSV, most often of the same columns; keys repeat. */
const arbCsv: fc.Arbitrary<Side> = fc
  .uniqueArray(arbColumn, { minLength: 0, maxLength: 3 })
  .chain((others) => {
    const columns = [...new Set([...others, 'id'])];
    const arbFile = fc
      .tuple(
        fc.oneof(
          { weight: 8, arbitrary: fc.constant(columns) },
          fc.shuffledSubarray([...columns, 'z']).filter((some) => some.includes('id')),
        ),
        fc.array(fc.array(fc.tuple(arbText, fc.boolean()), { minLength: 5, maxLength: 5 }), { maxLength: 8 }),
        fc.constantFrom('\n', '\r\n'),
      )
      .map(([names, rows, end]) =>
        Buffer.from(
          [
            names.map((name) => cell(name, true)),
            ...rows.map((row) => names.map((_, at) => cell(...(row[at] ?? ['', false])))),
          ]
            .map((cells) => `${cells.join(',')}${end}`)
            .join(''),
        ),
      );
    return fc
      .tuple(fc.array(arbFile, { minLength: 1, maxLength: 3 }), keptOf(columns))
      .map(([files, kept]) => ({
        format: 'csv' as const,
        files,
        columns: kept,
      }));
  });

const keptOf = (columns: readonly string[]) =>
  fc.option(fc.shuffledSubarray([...columns], { minLength: 1 }), { nil: undefined, freq: 2 });

const arbNdjson: fc.Arbitrary<Side> = fc
  .tuple(
    fc.array(
      fc.array(
        fc.tuple(
          fc.option(arbJson, { freq: 8, nil: undefined }),
          fc.array(fc.tuple(arbColumn, arbJson), { maxLength: 3 }),
        ),
        { maxLength: 8 },
      ),
      { minLength: 1, maxLength: 3 },
    ),
    keptOf(['id', 'a', 'b', '1']),
  )
  .map(([files, columns]) => ({
    format: 'ndjson',
    columns,
    files: files.map((rows) =>
      Buffer.from(
        rows.map(([id, cells]) => `${JSON.stringify(Object.fromEntries([...cells, ['id', id]]))}\n`).join(''),
      ),
    ),
  }));

const arbSide = fc.oneof(arbCsv, arbNdjson);
const arbJob = fc.record({
  left: arbSide,
  right: arbSide,
  rows: fc.constantFrom('csv', 'ndjson'),
  broadcast: fc.boolean(),
  partitions: fc.integer({ min: 1, max: 4 }),
  /** 0: nothing is joined by a table in memory. */
  maxHeldBytes: fc.option(fc.constantFrom(0, 400), { nil: undefined }),
  seed: fc.integer(),
});
type Job = typeof arbJob extends fc.Arbitrary<infer T> ? T : never;

/** The lines that a join writes, in an order of their own after the header; or what it throws. */
async function outcome(
  { left, right, rows, broadcast, partitions, maxHeldBytes, seed }: Job,
  engineOf: (stage: string) => EngineSize | undefined,
): Promise<unknown> {
  const named = (name: string, { files }: Side): [string, Buffer][] =>
    files.map((bytes, at) => [`s3://bucket/${name}-${String(at)}`, bytes]);
  const files = { left: named('left', left), right: named('right', right) };
  try {
    const job = builtinJob('join', {
      inputs: files.left.map(([uri]) => uri),
      right: files.right.map(([uri]) => uri),
      format: left.format,
      rightFormat: right.format,
      rows,
      leftKey: 'id',
      broadcast,
      ...(left.columns === undefined ? {} : { leftColumns: left.columns }),
      ...(right.columns === undefined ? {} : { rightColumns: right.columns }),
      ...(broadcast ? {} : { partitions }),
    });
    const held = maxHeldBytes === undefined ? {} : { maxHeldBytes };
    const stages = job.stages.map((stage) =>
      stage.name === 'join' ? { ...stage, options: { ...stage.options, ...held } } : stage,
    );
    const parts = await runJob(
      { ...job, stages },
      Object.fromEntries([...files.left, ...files.right]),
      seed,
      engineOf,
    );
    return linesOf(Buffer.concat(parts)).map(String).sort();
  } catch (error) {
    // Which row is met first is left open, and rows of the bench have no place.
    return error instanceof Error
      ? error.message.replace(/: "[^"]*" is not among.*/s, '').replace(/^file:\d+: /, '')
      : error;
  }
}

describe('joins by DuckDB', { timeout: 300_000 }, () => {
  it('give the rows that are given where they are joined one by one', async () => {
    await fc.assert(
      fc.asyncProperty(arbJob, async (job) => {
        const expected = await outcome(job, () => none);
        expect(await outcome(job, () => undefined)).toEqual(expected);
        // Whoever joins has none, though those who sent the rows had.
        expect(await outcome(job, (stage) => (stage === 'join' ? none : undefined))).toEqual(expected);
      }),
      { numRuns: draws(120) },
    );
  });

  it('give the records by broadcast that the shuffle gives, whichever fields each record of NDJSON has', async () => {
    const ofJson = { left: arbNdjson, right: arbNdjson, rows: fc.constant('ndjson' as const) };
    const some = fc.record({ ...ofJson, partitions: fc.integer({ min: 1, max: 4 }), seed: fc.integer() });
    await fc.assert(
      fc.asyncProperty(some, async (given) => {
        const job = { ...given, maxHeldBytes: undefined };
        const shuffled = await outcome({ ...job, broadcast: false }, () => undefined);
        expect(shuffled).toBeInstanceOf(Array);
        expect(await outcome({ ...job, broadcast: true }, () => undefined)).toEqual(shuffled);
        expect(await outcome({ ...job, broadcast: true }, () => none)).toEqual(shuffled);
      }),
      { numRuns: draws(60) },
    );
  });

  it('are empty where all that a task has on one side has a column too many, and matches nothing', async () => {
    const side = (...texts: string[]): Side => ({
      format: 'csv',
      files: texts.map((text) => Buffer.from(text)),
      columns: undefined,
    });
    // Of the two tasks that join, one has the row of the first file on the right, and the other all others.
    const job: Job = {
      ...{ left: side('id\n""\n'), right: side('a,id\n1,\u0000\n', "z,id\n2,'\n") },
      ...{ rows: 'csv', broadcast: false, maxHeldBytes: undefined, partitions: 2, seed: 0 },
    };
    expect(await outcome(job, () => undefined)).toEqual(['id,a\n']);
    expect(await outcome(job, () => none)).toEqual(['id,a\n']);
  });

  it('keep a byte order mark that the key of a first row begins with', async () => {
    const side = (text: string): Side => ({ format: 'csv', files: [Buffer.from(text)], columns: undefined });
    const job: Job = {
      ...{ left: side('id\nx\n'), right: side('id,a\n\uFEFFx,1\nx,2\n') },
      ...{ rows: 'csv', broadcast: false, maxHeldBytes: 0, partitions: 1, seed: 0 },
    };
    expect(await outcome(job, () => undefined)).toEqual(['id,a\n', 'x,2\n']);
  });
});
