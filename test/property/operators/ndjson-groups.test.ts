import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { groupbyMap, groupbyReduce } from '../../../src/operators/groupby.ts';
import { JsonScanner } from '../../../src/worker/json-scan.ts';
import type { EngineSize } from '../../../src/worker/operator.ts';
import { recordsOf, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';
import { draws } from '../../support/draws.ts';

const none: EngineSize = { memoryBytes: 0, threads: 1 };

/** JSON as others write it: with blanks, escapes, doubled names, digits that mean nothing. */
const arbBlank = fc.constantFrom('', '', '', ' ', '\t', '\r', '  ');
const arbString = fc.oneof(
  fc.constantFrom(
    ...[
      '""',
      '"a"',
      '"\\u0061"',
      '"\\u00e9"',
      '"é"',
      '"\\ud800"',
      '"\\\\"',
      '"\\""',
      '"\\/"',
      '" 8 "',
      '"\\t2"',
    ],
    ...[
      '"12.50"',
      '"1e3"',
      '"x\\u0000"',
      '"12345678901234567890"',
      '"\u2028"',
      '"\u007f"',
      '"😀"',
      '" "',
      '"\u00a07"',
    ],
  ),
  fc.string({ unit: 'grapheme', maxLength: 3 }).map((text) => JSON.stringify(text)),
);
const arbNumber = fc.oneof(
  fc.constantFrom(
    ...[
      '0',
      '-0',
      '1',
      '-1',
      '1.0',
      '1.50',
      '12.5',
      '0.1',
      '0.000001',
      '0.0000001',
      '-0.0',
      '1e3',
      '1E-7',
      '2.5e+2',
    ],
    ...[
      '999999999999999',
      '1234567890123456',
      '12345678901234567890',
      '0.12345678901234567',
      '9007199254740993',
    ],
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.integer().map(String),
);
const arbOther = fc.constantFrom('null', 'true', 'false', '{}', '[]', '{"b":1,"a":"x\\ty"}', '[1, 2.0 ]');
const arbKeyValue = fc.oneof(arbString, arbNumber, arbOther);
const arbSummed = fc.oneof(
  arbNumber,
  fc.constantFrom(
    'null',
    '""',
    '" 8 "',
    '"\\t2"',
    '"12.50"',
    '"\\u0031"',
    '"12345678901234567890"',
    '"1e-400"',
  ),
);
const arbName = (name: string): fc.Arbitrary<string> =>
  fc.constantFrom(name, name, name, `\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}`);

const arbRow = (value: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof(
        fc.tuple(arbName('k'), arbKeyValue),
        fc.tuple(arbName('v'), value),
        fc.tuple(fc.constantFrom('o', '', '\\"', 'kk', '__proto__'), arbKeyValue),
      ),
      { maxLength: 4 },
    )
    .chain((fields) =>
      fc.array(arbBlank, { minLength: 6, maxLength: 6 }).map(([a, b, c, d, e, f]) => {
        const all = fields.map(([name, json]) => `"${name}"${String(a)}:${String(b)}${json}${String(c)}`);
        return `${String(d)}{${String(e)}${all.join(`,${String(e)}`)}}${String(f)}`;
      }),
    );
const arbText = (value: fc.Arbitrary<string>): fc.Arbitrary<Buffer> =>
  fc
    .tuple(
      fc.boolean(),
      fc.array(fc.oneof({ weight: 8, arbitrary: arbRow(value) }, fc.constantFrom('', ' ', '\r')), {
        maxLength: 25,
      }),
      fc.boolean(),
    )
    .map(([hasMark, lines, hasEnd]) =>
      Buffer.from(`${hasMark ? '\ufeff' : ''}${lines.join('\n')}${hasEnd ? '\n' : ''}`),
    );

const options: {
  key: string[];
  aggregates: { op: string; column?: string }[];
} = {
  key: ['k', 'absent'],
  aggregates: [
    { op: 'count' },
    { op: 'count', column: 'o' },
    ...['sum', 'avg', 'min', 'max', 'count'].map((op) => ({ op, column: 'v' })),
  ],
};

/** What both halves of a group-by make of NDJSON, or what they throw; by DuckDB, or row by row. */
async function grouped(text: Buffer, byRow: boolean, asked: typeof options = options): Promise<string> {
  const rows = text
    .toString()
    .replace(/^\ufeff/, '')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const source = {
    ...sourceOf(text, seeded(1), 'ndjson'),
    rows: async function* () {
      yield await Promise.resolve(rows.map((line) => JSON.parse(line) as Record<string, unknown>));
    },
  };
  try {
    const { collector } = await runTask(groupbyMap, asked, [source], byRow ? { engine: none } : {});
    const records = collector.sorted(0, groupbyMap, asked);
    const { text: result } = await runTask(groupbyReduce, asked, [recordsOf('map', records, seeded(2))]);
    return result.toString();
  } catch (error) {
    return String(error);
  }
}

describe('a group-by of NDJSON by DuckDB', { timeout: 120_000 }, () => {
  it('gives what is given row by row, to the last digit', async () => {
    await fc.assert(
      fc.asyncProperty(arbText(arbSummed), async (text) => {
        expect(await grouped(text, false)).toBe(await grouped(text, true));
      }),
      { numRuns: draws(200) },
    );
  });

  it('refuses what is no number by the same words', async () => {
    await fc.assert(
      fc.asyncProperty(arbText(fc.oneof(arbSummed, arbKeyValue)), async (text) => {
        expect(await grouped(text, false)).toBe(await grouped(text, true));
      }),
      { numRuns: draws(100) },
    );
  });
});

describe('an empty text of NDJSON', () => {
  const rows = ['{"k":1,"o":"","v":""}', '{"k":1,"o":"x","v":3}', '{"k":1,"o":null,"v":null}', '{"k":1}'];
  const text = Buffer.from(`${rows.join('\n')}\n`);
  const counts = { key: ['k'], aggregates: [{ op: 'count', column: 'o' }] };
  const all = {
    key: ['k'],
    aggregates: [...counts.aggregates, ...['count', 'sum', 'avg', 'max'].map((op) => ({ op, column: 'v' }))],
  };

  it.each([false, true])(
    'is counted as SQL counts it, and is nothing to a sum (row by row: %s)',
    async (byRow) => {
      expect(await grouped(text, byRow, counts)).toBe('{"k":1,"count_o":2}\n');
      expect(await grouped(text, byRow, all)).toBe(
        '{"k":1,"count_o":2,"count_v":2,"sum_v":3,"avg_v":3,"max_v":3}\n',
      );
    },
  );
});

describe('JsonScanner', () => {
  const arbLine = fc.oneof(
    arbRow(arbKeyValue),
    // Damaged: what is no JSON must be called odd.
    fc
      .tuple(
        arbRow(arbKeyValue),
        fc.nat(),
        fc.constantFrom('', ',', '}', '{', '"', '\\', ':', '0', '.', '-', 'e', '\u0001', 'tru'),
      )
      .map(([line, place, what]) => {
        const at = place % (line.length + 1);
        return `${line.slice(0, at)}${what}${line.slice(at + (what === '' ? 1 : 0))}`;
      }),
  );

  it('finds the values that JSON.parse gives, and takes nothing that JSON.parse refuses', () => {
    let taken = 0;
    fc.assert(
      fc.property(arbLine, (line) => {
        if (line.includes('\n')) return;
        const scanner = new JsonScanner(['k', 'v']);
        const bytes = Buffer.from(line);
        if (scanner.scan(bytes, 0) < bytes.length) return;
        if (scanner.count === 0) {
          expect(line.trim()).toBe('');
          return;
        }
        taken++;
        const row = JSON.parse(bytes.toString()) as Record<string, unknown>;
        for (const [at, name] of ['k', 'v'].entries()) {
          const json = bytes.toString('utf8', scanner.starts[at], scanner.ends[at]);
          expect(json === '' ? undefined : (JSON.parse(json) as unknown)).toEqual(row[name]);
        }
      }),
      { numRuns: 8_000 },
    );
    expect(taken).toBeGreaterThan(1_000);
  });

  it.each([
    ['{"k":1}', 1],
    [' {"k" : "a" , "x":"\\u12aF\\n"} ', 1],
    ['{}', 1],
    ['', 0],
    ['{"k":01}', undefined],
    ['{"k":1,}', undefined],
    ['{"k":NaN}', undefined],
    ['{"k":1.}', undefined],
    ['{"k":-}', undefined],
    ['{"k":"a\tb"}', undefined],
    ['{"x":"\\q"}', undefined],
    ['{"x":"\\u12g4"}', undefined],
    ['{"k":1}{', undefined],
    ['{"k":1', undefined],
    ['[1]', undefined],
    ['{"x":tru}', undefined],
    ['{"x":[1]}', undefined],
    [`{"x":${'9'.repeat(301)}}`, undefined],
  ])('of %j finds %j records', (line, count) => {
    const scanner = new JsonScanner(['k']);
    const bytes = Buffer.from(line);
    expect(scanner.scan(bytes, 0) < bytes.length ? undefined : scanner.count).toBe(count);
  });
});
