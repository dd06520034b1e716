import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { csvBlocks } from '../../../src/worker/csv-blocks.ts';
import { csvRows } from '../../../src/worker/csv-rows.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { BadRecordError, type Row } from '../../../src/worker/operator.ts';
import { forEachRow } from '../../../src/worker/row-places.ts';
import { collect, putSource } from '../../support/worker-fixtures.ts';

const signal = new AbortController().signal;

interface Read {
  readonly rows: readonly Row[];
  readonly skipped: number;
}

/** Reads a file in pieces that begin at these shares of it; whole and in several lines a record where there are none. */
async function read(
  text: string,
  { cuts, header, policy }: { cuts?: readonly number[]; header: boolean; policy: 'fail' | 'skip' },
): Promise<Read> {
  const objects = new MemoryObjectStore();
  const whole = await putSource(objects, { bucket: 'input', key: 'in/a.csv' }, Buffer.from(text), false);
  let skipped = 0;
  const bad = {
    policy,
    onSkip: () => {
      skipped++;
    },
  };
  const rows: Row[] = [];
  for (const segment of piecesOf(whole, cuts ?? [])) {
    const form = { header, bad, ...(cuts === undefined ? {} : { multiline: false }) };
    const reading = { objects, signal, onBytes: () => undefined };
    rows.push(...(await collect(csvRows(reading, segment, form))).flat());
  }
  return { rows, skipped };
}

/** The fields of the records that are given as bytes, read by a plain parser. */
async function readBytes(
  text: string,
  { cuts, header, policy }: { cuts: readonly number[]; header: boolean; policy: 'fail' | 'skip' },
): Promise<string[][]> {
  const objects = new MemoryObjectStore();
  const whole = await putSource(objects, { bucket: 'input', key: 'in/a.csv' }, Buffer.from(text), false);
  const records: string[][] = [];
  for (const segment of piecesOf(whole, cuts)) {
    const form = { header, bad: { policy, onSkip: () => undefined }, multiline: false, key: undefined };
    const reading = { objects, signal, onBytes: () => undefined };
    for await (const block of csvBlocks(reading, segment, form)) records.push(...parse(block.bytes));
  }
  return records;
}

function piecesOf(whole: SourceSegment, cuts: readonly number[]): SourceSegment[] {
  const places = new Set(cuts.map((share) => Math.floor(share * whole.sizeBytes)));
  const inside = [...places].filter((at) => at > 0 && at < whole.sizeBytes);
  const starts = [0, ...inside.toSorted((a, b) => a - b)];
  return starts.map((start, index) => ({ ...whole, start, end: starts[index + 1] ?? whole.sizeBytes }));
}

const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 });
const oneLine = fc
  .array(fc.constantFrom('a', '"', ',', ' ', 'é', '0'), { maxLength: 6 })
  .map((parts) => parts.join(''));
const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;
const ends = fc.constantFrom('\n', '\r\n');

describe('CSV that is cut', () => {
  it('gives the records that were written, and that a plain parser reads', async () => {
    const tables = fc
      .integer({ min: 1, max: 4 })
      .chain((width) =>
        fc.array(fc.array(oneLine, { minLength: width, maxLength: width }), { maxLength: 30 }),
      );
    await fc.assert(
      fc.asyncProperty(tables, ends, fc.boolean(), cuts, async (table, end, isEnded, shares) => {
        const lines = table.map((fields) => fields.map(quoted).join(','));
        const text = lines.join(end) + (isEnded ? end : '');
        const { rows } = await read(text, { cuts: shares, header: false, policy: 'fail' });
        const expected = table.map((fields) =>
          Object.fromEntries(fields.map((field, index) => [`c${String(index)}`, field])),
        );
        expect(rows).toEqual(expected);
        const parsed: string[][] = parse(text, { skip_empty_lines: true });
        expect(rows.map((row) => Object.values(row))).toEqual(parsed);
      }),
    );
  });

  it('takes the columns of the first record for all pieces, wherever they begin', async () => {
    await fc.assert(
      fc.asyncProperty(
        cuts,
        fc.integer({ min: 0, max: 40 }),
        fc.nat({ max: 5 }),
        async (shares, count, blank) => {
          const lines = Array.from({ length: count }, (_, index) => `${String(index)},x${String(index)}`);
          const text = `${'\r\n'.repeat(blank)}number,"the ""x"""\n${lines.join('\n')}`;
          const { rows } = await read(text, { cuts: shares, header: true, policy: 'fail' });
          expect(rows).toEqual(
            lines.map((_, index) => ({ number: String(index), 'the "x"': `x${String(index)}` })),
          );
        },
      ),
    );
  });

  it('refuses each file of which a field holds a line end, wherever it is cut, also where bad records are skipped', async () => {
    const filler = fc.array(fc.constantFrom('1,2', '"a",b', '', '"x"",",y'), { maxLength: 12 });
    const broken = fc
      .tuple(
        oneLine,
        fc.array(fc.constantFrom('\n', '"",\n', 'b,c\n', '\n"",1\n'), { minLength: 1, maxLength: 4 }),
      )
      .map(
        ([first, rest]) =>
          `7,"${first.replaceAll('"', '""')}${rest.join('').replaceAll(/(?<!")"(?!")/g, '""')}"`,
      );
    await fc.assert(
      fc.asyncProperty(
        filler,
        broken,
        filler,
        cuts,
        fc.constantFrom('fail' as const, 'skip' as const),
        async (before, record, after, shares, policy) => {
          const text = ['k,v', ...before, record, ...after].join('\n');
          const failed = read(text, { cuts: shares, header: true, policy });
          await expect(failed).rejects.toThrow(BadRecordError);
          await expect(failed).rejects.toThrow(`in/a.csv:${String(before.length + 2)}: a quoted field`);
          await expect(failed).rejects.toThrow('--multiline');
        },
      ),
    );
  });

  it('gives of any text what reading it whole gives, or refuses it', async () => {
    const texts = fc
      .array(fc.constantFrom('a', '"', ',', '\n', '\r\n', '\r', '""', '","', '\n\n', 'b,c\n', '\ufeff'), {
        maxLength: 40,
      })
      .map((parts) => parts.join(''));
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(texts, cuts, fc.boolean(), async (text, shares, header) => {
        const outcome = async (given?: readonly number[]): Promise<Read | string> =>
          read(text, { header, policy: 'skip', ...(given === undefined ? {} : { cuts: given }) }).catch(
            (error: unknown) => String(error),
          );
        const cut = await outcome(shares);
        if (typeof cut === 'string' && cut.includes('--multiline')) {
          expect(await outcome([])).toBe(cut);
          return;
        }
        compared++;
        expect(cut).toEqual(await outcome());
      }),
      { numRuns: 1_000 },
    );
    expect(compared).toBeGreaterThan(200);
  });

  it('tells file and line of a bad record, and of a bad value, in a later piece', async () => {
    const lines = Array.from({ length: 100 }, (_, index) => `${String(index)},b`);
    const text = ['k,v', ...lines, 'x,"y"z', ...lines].join('\n');
    await expect(read(text, { cuts: [0.3, 0.45], header: true, policy: 'fail' })).rejects.toThrow(
      'in/a.csv:102: text after the closing quote of a field',
    );
    const objects = new MemoryObjectStore();
    const whole = await putSource(
      objects,
      { bucket: 'input', key: 'in/b.csv' },
      Buffer.from(`k,v\n${lines.join('\n')}`),
      false,
    );
    const reading = { objects, signal, onBytes: () => undefined };
    const bad = { policy: 'fail', onSkip: () => undefined } as const;
    const rows = csvRows(reading, { ...whole, start: 200 }, { header: true, bad, multiline: false });
    const input = { kind: 'source', format: 'csv', rows: () => rows } as const;
    const failing = forEachRow(input, (row) => {
      if (row['k'] === '77') throw new BadRecordError('no number');
      return undefined;
    });
    await expect(failing).rejects.toThrow('in/b.csv:79: no number');
  });

  it('gives as bytes what it gives as rows, or refuses it in the same words', async () => {
    const parts = [
      'a,b\n',
      '"a",b\n',
      'a',
      '"',
      ',',
      '\n',
      '\r\n',
      '"x,""",y\n',
      '\n\n',
      '"p\n',
      'é,"ü"\r\n',
    ];
    const texts = fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map((drawn) => drawn.join(''));
    const outcomes = { same: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(
        texts,
        cuts,
        fc.boolean(),
        fc.constantFrom('fail' as const, 'skip' as const),
        async (text, shares, header, policy) => {
          const options = { cuts: shares, header, policy };
          const rows = await read(text, options).catch((error: unknown) => String(error));
          const bytes = await readBytes(text, options).catch((error: unknown) => String(error));
          outcomes[typeof rows === 'string' ? 'refused' : 'same']++;
          expect(bytes).toEqual(typeof rows === 'string' ? rows : rows.rows.map((row) => Object.values(row)));
        },
      ),
      { numRuns: 600 },
    );
    expect(Math.min(...Object.values(outcomes))).toBeGreaterThan(50);
  });
});
