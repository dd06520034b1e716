import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { parse } from 'csv-parse/sync';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import type { Draw } from './draw.ts';
import { type Cell, drawTable, type Table, tableFiles } from './inputs.ts';
import type { Workload } from './workload.ts';

type Row = Record<string, unknown>;

/** A table of SQLite without type affinity, so that values stay what they are. */
function fill(db: DatabaseSync, name: string, columns: readonly string[], rows: Table): void {
  db.exec(`CREATE TABLE ${name} (${columns.join(', ')})`);
  const insert = db.prepare(`INSERT INTO ${name} VALUES (${columns.map(() => '?').join(', ')})`);
  for (const row of rows) insert.run(...columns.map((column): SQLInputValue => whole(row[column] ?? null)));
}

/** Whole numbers as SQL integers: a JavaScript number would be a float to SQLite. */
const whole = (value: Cell): SQLInputValue => (typeof value === 'number' ? BigInt(value) : value);

function query(
  tables: Readonly<Record<string, Table>>,
  columns: Readonly<Record<string, readonly string[]>>,
  sql: string,
): Row[] {
  const db = new DatabaseSync(':memory:');
  try {
    for (const [name, rows] of Object.entries(tables)) fill(db, name, columns[name] ?? [], rows);
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}

/** CSV has no null in its columns of text: an empty field is an empty text. */
const asCsv = (table: Table, columns: readonly string[]): Table =>
  table.map((row) => ({
    ...row,
    ...Object.fromEntries(columns.map((column) => [column, row[column] ?? ''])),
  }));

function rowsOf(output: Buffer, format: 'csv' | 'ndjson'): Row[] {
  if (format === 'csv') return parse(output, { columns: true });
  return output
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Row);
}

/** A row as text that is equal where the rows are; numbers to twelve digits, since averages are fractions. */
const textOf = (row: Row): string =>
  JSON.stringify(
    Object.entries(row)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, value]) => [name, typeof value === 'number' ? value.toPrecision(12) : value]),
  );

function rowsDiffer(got: readonly Row[], expected: readonly Row[]): string | undefined {
  const [left, right] = [got.map(textOf).sort(), expected.map(textOf).sort()];
  const at = left.findIndex((line, index) => line !== right[index]);
  if (at < 0 && left.length === right.length) return undefined;
  const place = at < 0 ? left.length : at;
  return `${left.length} rows where ${right.length} were expected, first: ${String(left[place])} for ${String(right[place])}`;
}

/** Texts are drawn with line ends, which a field of CSV may hold where the job says so. */
const mayHoldLineEnds = (format: 'csv' | 'ndjson') => (format === 'csv' ? { multiline: true } : {});

const sum = 'count(*) AS count, sum(n) AS sum_n, min(n) AS min_n, max(n) AS max_n, avg(n) AS avg_n';

/** Aggregates by two columns, against GROUP BY. */
export function groupby(draw: Draw): Workload {
  const columns = ['shop', 'day', 'n'];
  const format = draw.pick(['csv', 'ndjson'] as const);
  const drawn = drawTable(draw, columns, draw.pick([0, 1, 60, 400]));
  const table = format === 'csv' ? asCsv(drawn, ['shop', 'day']) : drawn;
  const materials = tableFiles(draw, table, { columns, format, name: 'sales' });
  const partitions = draw.int(1, 4);
  return {
    kind: 'groupby',
    materials,
    stages: (uriOf) =>
      builtinJob('groupby', {
        inputs: materials.map(({ name }) => uriOf(name)),
        format,
        ...mayHoldLineEnds(format),
        key: ['shop', 'day'],
        aggregates: [
          { op: 'count' },
          { op: 'sum', column: 'n' },
          { op: 'min', column: 'n' },
          { op: 'max', column: 'n' },
          { op: 'avg', column: 'n' },
        ],
        partitions,
        rows: 'ndjson',
      }).stages,
    differs: (output) =>
      rowsDiffer(
        rowsOf(output, 'ndjson'),
        query({ t: table }, { t: columns }, `SELECT shop, day, ${sum} FROM t GROUP BY shop, day`),
      ),
  };
}

/** Rows of equal keys, against JOIN … ON. */
export function join(draw: Draw, broadcast: boolean): Workload {
  const format = draw.pick(['csv', 'ndjson'] as const);
  const columns = { a: ['id', 'shared', 'l'], b: ['ref', 'shared', 'r'] };
  const side = (name: 'a' | 'b'): Table => {
    const drawn = drawTable(draw, columns[name], draw.pick([0, 1, 20, 60]));
    return format === 'csv' ? asCsv(drawn, columns[name]) : drawn;
  };
  const tables = { a: side('a'), b: side('b') };
  const left = tableFiles(draw, tables.a, { columns: columns.a, format, name: 'left' });
  const right = tableFiles(draw, tables.b, { columns: columns.b, format, name: 'right' });
  const partitions = draw.int(1, 4);
  return {
    kind: broadcast ? 'join --broadcast' : 'join',
    materials: [...left, ...right],
    stages: (uriOf) =>
      builtinJob('join', {
        inputs: left.map(({ name }) => uriOf(name)),
        right: right.map(({ name }) => uriOf(name)),
        format,
        ...mayHoldLineEnds(format),
        leftKey: 'id',
        rightKey: 'ref',
        broadcast,
        ...(broadcast ? {} : { partitions }),
      }).stages,
    differs: (output) =>
      rowsDiffer(
        rowsOf(output, format),
        query(
          tables,
          columns,
          'SELECT a.id, a.shared, a.l, b.ref, b.shared AS shared_right, b.r FROM a JOIN b ON a.id = b.ref',
        ),
      ),
  };
}
