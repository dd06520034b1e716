import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { SideFiles } from '../../../src/operators/duckdb/joined-files.ts';
import { PieceCutter, type PieceTable } from '../../../src/operators/join-pieces.ts';
import { OpenPiece } from '../../../src/operators/open-piece.ts';
import { inTempDir } from '../../support/worker-fixtures.ts';

const tableOf = (columns: readonly string[]): PieceTable => ({
  columns,
  form: { kind: 'json', fields: columns.length + 1, key: 0, cells: columns.map((_, at) => at + 1) },
});
const openFiles = (): number => readdirSync('/proc/self/fd').length;

describe('a side of a join with rows of many kinds', () => {
  it.skipIf(process.platform !== 'linux')('has few of its files open at once, and each whole', () =>
    inTempDir(async (dir) => {
      const files = new SideFiles(dir, 'left');
      const tables = Array.from({ length: 400 }, (_, at) => tableOf([`c${String(at)}`]));
      const before = openFiles();
      let most = 0;
      for (const round of ['one', 'two', 'three'])
        for (const [at, table] of tables.entries()) {
          // What begins with a byte order mark gets another.
          const bytes = Buffer.from(`${at === 7 ? '\uFEFF' : ''}${round}\n`);
          await files.add({ table, bytes, rows: 1, isPlain: true });
          most = Math.max(most, openFiles() - before);
        }
      await files.finish();
      expect(most).toBeLessThanOrEqual(64);
      expect(openFiles()).toBe(before);
      expect(files.all.map(({ columns }) => columns)).toEqual(tables.map(({ columns }) => columns));
      for (const [at, { path, rows, start }] of files.all.entries()) {
        const mark = at === 7 ? '\uFEFF' : '';
        expect([rows, start, await readFile(path, 'utf8')]).toEqual([
          ...[3, mark === '' ? 0 : 3],
          `${mark}${mark}one\n${mark}two\n${mark}three\n`,
        ]);
      }
    }),
  );

  it('is handed over as soon as its memory is, however little of that is used', async () => {
    let [rows, taken] = [0, 0];
    const cutter = new PieceCutter({
      partitions: 1_000,
      side: { key: 'k', columns: undefined, keysAsText: false },
      begin: () => undefined,
      take: (piece) => {
        taken++;
        rows += piece.rows;
        return undefined;
      },
    });
    for (let table = 0; table < 100; table++)
      for (let key = 0; key < 3_000; key++) await cutter.row({ [`c${String(table)}`]: 1 }, String(key));
    expect(taken).toBeGreaterThan(0);
    await cutter.flush();
    expect(rows).toBe(300_000);
  });
});

describe('the memory of a piece that was handed over', () => {
  it('is kept for the next one, but that of a line far longer than pieces are', () => {
    const piece = new OpenPiece();
    piece.add(Buffer.alloc(100_000, 'x'), 0, 100_000);
    piece.empty(100_000);
    expect([piece.used, piece.rows, piece.bytes.length]).toEqual([0, 0, 100_000]);
    piece.add(Buffer.alloc(2_000_000, 'x'), 0, 2_000_000);
    piece.empty(100_000);
    expect([piece.used, piece.rows]).toEqual([0, 0]);
    expect(piece.bytes.length).toBeLessThan(1_000);
  });
});
