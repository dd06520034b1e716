import { writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { createRng } from '../../src/lib/rng.ts';
import { Workplace } from './command.ts';

/** Orders and customers with empty, missing and repeated keys, commas and quotes in their text. */
function makeTables(): { orders: string[][]; customers: string[][] } {
  const rng = createRng('tables');
  const pick = <T>(values: readonly T[]): T => values[Math.floor(rng.next() * values.length)] as T;
  const regions = ['north', 'south', 'east, far', 'the "west"', 'ø'];
  const orders = Array.from({ length: 3_000 }, (_, id) => [
    String(id),
    String(Math.floor(rng.next() * 300)),
    pick(regions),
    String(Math.floor(rng.next() * 2_000) - 500),
  ]);
  const customers = Array.from({ length: 250 }, (_, id) => [String(id), `name ${pick(regions)}`]);
  return { orders, customers };
}

const quoted = (field: string): string => (/[",\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field);
const csv = (header: string, rows: readonly (readonly string[])[]): string =>
  [header, ...rows.map((row) => row.map(quoted).join(','))].map((line) => `${line}\n`).join('');

/** The tables in SQLite: an oracle that shares no code with ours. */
function openOracle({ orders, customers }: ReturnType<typeof makeTables>): DatabaseSync {
  const database = new DatabaseSync(':memory:');
  database.exec('create table orders (id text, customer text, region text, amount integer)');
  database.exec('create table customers (customer text, name text)');
  const addOrder = database.prepare('insert into orders values (?, ?, ?, ?)');
  for (const [id = '', customer = '', region = '', amount] of orders)
    addOrder.run(id, customer, region, Number(amount));
  const addCustomer = database.prepare('insert into customers values (?, ?)');
  for (const [customer = '', name = ''] of customers) addCustomer.run(customer, name);
  return database;
}

const sorted = (lines: readonly string[]): string[] => [...lines].sort();
const expectedLines = (database: DatabaseSync, sql: string): string[] =>
  sorted(
    database
      .prepare(sql)
      .all()
      .map((row) => Object.values(row).map(String).map(quoted).join(',')),
  );

async function prepare(): Promise<{ place: Workplace; database: DatabaseSync }> {
  const place = await Workplace.make();
  const tables = makeTables();
  await writeFile(
    place.path('orders-1.csv'),
    csv('id,customer,region,amount', tables.orders.slice(0, 1_200)),
  );
  await writeFile(place.path('orders-2.csv'), csv('id,customer,region,amount', tables.orders.slice(1_200)));
  await writeFile(place.path('customers.csv'), csv('customer,name', tables.customers));
  return { place, database: openOracle(tables) };
}

async function rowsOf(place: Workplace, output: string): Promise<{ header: string; rows: string[] }> {
  const [header = '', ...rows] = (await place.parts(output)).toString().split('\n').slice(0, -1);
  return { header, rows: sorted(rows) };
}

/** Orders with the names of their customers, in the order of columns of the orders' first file. */
async function expectJoined(place: Workplace, database: DatabaseSync): Promise<void> {
  const { header, rows } = await rowsOf(place, 'joined');
  expect(header).toBe('id,customer,region,amount,name');
  const sql =
    'select o.id, o.customer, o.region, o.amount, c.name from orders o join customers c using (customer)';
  expect(rows).toEqual(expectedLines(database, sql));
}

describe('outrider run on tables', () => {
  it('groups as SQLite does', async () => {
    const { place, database } = await prepare();
    const result = await place.run(
      ...['run', 'groupby', '--input', 'orders-*.csv', '--key', 'region', '--output', 'totals'],
      ...['--agg', 'count,sum:amount,min:amount,max:amount,avg:amount', '--partitions', '3', '--json'],
    );
    expect(result.exitCode, result.err).toBe(0);
    const { rows } = await rowsOf(place, 'totals');
    const sql =
      'select region, count(*), sum(amount), min(amount), max(amount), avg(amount) from orders group by region';
    const fields = (line: string): (string | number)[] => {
      const parts = line.split(',');
      return [...parts.slice(0, -1), Number(parts.at(-1)).toPrecision(12)];
    };
    expect(rows.map(fields)).toEqual(expectedLines(database, sql).map(fields));
  });

  it.each([
    ['by shuffle', ['--partitions', '2']],
    ['by broadcast, as it does by itself', []],
  ])('joins as SQLite does, %s', async (_form, flags) => {
    const { place, database } = await prepare();
    const result = await place.run(
      ...['run', 'join', '--input', 'orders-1.csv', 'orders-2.csv', '--right', 'customers.csv'],
      ...['--left-key', 'customer', '--output', 'joined', ...flags],
    );
    expect(result.exitCode, result.err).toBe(0);
    await expectJoined(place, database);
  });

  // Each task of a broadcast writes a part of its own files, and only the first one a header.
  it.each([
    ['by shuffle', ['--partitions', '2']],
    ['by broadcast', ['--broadcast']],
  ])(
    'joins files that have their columns in different orders, the first without records, %s',
    async (_, flags) => {
      const { place, database } = await prepare();
      const tables = makeTables();
      await writeFile(place.path('orders-0.csv'), csv('id,customer,region,amount', []));
      const other = tables.orders
        .slice(1_200)
        .map(([id = '', customer = '', region = '', amount = '']) => [...[amount, region, customer, id]]);
      await writeFile(place.path('orders-2.csv'), csv('amount,region,customer,id', other));
      const result = await place.run(
        ...[
          'run',
          'join',
          '--input',
          'orders-0.csv',
          'orders-1.csv',
          'orders-2.csv',
          '--right',
          'customers.csv',
        ],
        ...['--left-key', 'customer', '--output', 'joined', '--split-size', '1000', ...flags],
      );
      expect(result.exitCode, result.err).toBe(0);
      await expectJoined(place, database);
    },
  );
});
