import { gzipSync } from 'node:zlib';
import type { Draw } from './draw.ts';

/** An input object: `body` as it is stored, `plain` as it is read. */
export interface Material {
  readonly name: string;
  readonly body: Buffer;
  readonly plain: Buffer;
}

/** A value of a row; CSV holds all of them as text. */
export type Cell = string | number | null;
export type Table = readonly Readonly<Record<string, Cell>>[];

const words = [
  'the',
  'a',
  'be',
  'Zebra',
  'caf\xe9',
  '\0',
  '10',
  '-',
  'a.b',
  '[x]',
  'w'.repeat(120),
  '\xff\xfe',
];
const gaps = [' ', ' ', '\n', '\n', '\n', '\r\n', '\t', '  ', '\n\n', '\v', '\r'];

function someText(draw: Draw, pieces: number): Buffer {
  const text = draw
    .times(pieces, () => draw.pick(words) + String(draw.int(0, 40)) + draw.pick(gaps))
    .join('');
  return Buffer.from(draw.chance(0.5) ? text : `${text}last line`, 'latin1');
}

function material(draw: Draw, name: string, plain: Buffer): Material {
  if (!draw.chance(0.15)) return { name, plain, body: plain };
  return { name: `${name}.gz`, plain, body: gzipSync(plain) };
}

/**
 * Texts as people have them and as they should not: empty files, no last line end, CRLF, NULs, bytes that are no
 * UTF-8, gzip, many small ones, one long line.
 */
export function drawTexts(draw: Draw): readonly Material[] {
  const shape = draw.weighted([
    [5, 'some'],
    [2, 'small'],
    [1, 'line'],
    [1, 'empty'],
  ] as const);
  const plains = {
    some: () => draw.times(draw.int(1, 4), () => someText(draw, draw.pick([0, 1, 200, 1_500]))),
    small: () => draw.times(draw.int(8, 14), () => someText(draw, draw.int(0, 6))),
    line: () => [Buffer.alloc(draw.int(100_000, 700_000), 'long '), someText(draw, 50)],
    empty: () => draw.times(draw.int(1, 3), () => Buffer.alloc(0)),
  }[shape]();
  return plains.map((plain, index) => material(draw, `text-${String(index).padStart(3, '0')}`, plain));
}

/** Bytes per task that make a few tasks of these inputs, and now and then one of each. */
export function drawSplitBytes(draw: Draw, materials: readonly Material[]): number {
  const total = materials.reduce((sum, { plain }) => sum + plain.length, 0);
  return Math.max(64, Math.ceil(total / draw.int(1, 5)));
}

/** The texts with each last line ended: what a program reads that is given one file after another. */
export const laidEndToEnd = (materials: readonly Material[]): Buffer =>
  Buffer.concat(
    materials.map(({ plain }) =>
      plain.length === 0 || plain.at(-1) === 0x0a ? plain : Buffer.concat([plain, Buffer.from('\n')]),
    ),
  );

const texts = [
  'a',
  'b',
  'A',
  'two words',
  'com,ma',
  'quo"te',
  'caf\u00e9',
  '1',
  '01',
  'line\nbreak',
  '__proto__',
  'constructor',
];

/** A text, or now and then one that is like no other. */
const drawCell = (draw: Draw): string =>
  draw.chance(0.8) ? draw.pick(texts) : `t${String(draw.int(0, 60))}`;

/** Rows of these columns: whole numbers under names that begin with "n", texts elsewhere, some of them null. */
export function drawTable(draw: Draw, columns: readonly string[], rows: number): Table {
  const cell = (column: string): Cell => {
    if (draw.chance(0.1)) return null;
    return column.startsWith('n') ? draw.int(-1_000, 1_000) : drawCell(draw);
  };
  return draw.times(rows, () => Object.fromEntries(columns.map((column) => [column, cell(column)])));
}

const quoted = (value: Cell): string => `"${String(value ?? '').replaceAll('"', '""')}"`;

/** A table as files of one format; CSV has a header in each. */
export function tableFiles(
  draw: Draw,
  table: Table,
  { columns, format, name }: { columns: readonly string[]; format: 'csv' | 'ndjson'; name: string },
): readonly Material[] {
  const pieces = draw.int(1, 3);
  return draw.times(pieces, (piece) => {
    const part = table.filter((_, index) => index % pieces === piece);
    const lines =
      format === 'ndjson'
        ? part.map((row) => JSON.stringify(row))
        : [
            columns.join(','),
            ...part.map((row) => columns.map((column) => quoted(row[column] ?? null)).join(',')),
          ];
    return material(draw, `${name}-${String(piece)}`, Buffer.from(lines.map((line) => `${line}\n`).join('')));
  });
}
