import { writeFile } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { Workplace } from './command.ts';
import { expectSameReplay, runExplained } from './explained-run.ts';

const files = 6;
const rowsOfFile = 4_000;
const partitions = 4;

/** Nine orders in ten are of one customer; the others are of as many customers as there are orders. */
const orders = Array.from({ length: files * rowsOfFile }, (_, id) => [
  String(id),
  id % 10 === 3 ? `c${String(id)}` : 'c0',
  `order number ${String(id * 7919)}`,
]);
const customers = Array.from({ length: 500 }, (_, id) => [
  `c${String(id * 10)}`,
  `name ${String(id)}`,
]).concat([
  ['c3', 'three'],
  ['c13', 'thirteen'],
  ['c0', 'nought again'],
]);

const csv = (header: string, rows: readonly (readonly string[])[]): string =>
  [header, ...rows.map((row) => row.join(','))].map((line) => `${line}\n`).join('');

/** What SQLite makes of it: an oracle that shares no code with ours. */
function joined(): string[] {
  const db = new DatabaseSync(':memory:');
  db.exec('create table o (id text, customer text, what text); create table c (customer text, name text)');
  const [intoOrders, intoCustomers] = [
    db.prepare('insert into o values (?, ?, ?)'),
    db.prepare('insert into c values (?, ?)'),
  ];
  for (const order of orders) intoOrders.run(...order);
  for (const customer of customers) intoCustomers.run(...customer);
  const rows = db.prepare('select id, customer, what, name from o join c using (customer)').all();
  db.close();
  return rows.map((row) => Object.values(row).join(',')).toSorted();
}

async function place(): Promise<Workplace> {
  const made = await Workplace.make();
  for (let file = 0; file < files; file++)
    await writeFile(
      made.path(`orders-${String(file)}.csv`),
      csv('id,customer,what', orders.slice(file * rowsOfFile, (file + 1) * rowsOfFile)),
    );
  await writeFile(made.path('customers.csv'), csv('customer,name', customers));
  return made;
}

/** However little is gained: so small a job would not be worth it. */
function jobOf(isOn: boolean): JobSpecInput {
  const inputs = Array.from({ length: files }, (_, file) => `orders-${String(file)}.csv`);
  const form = { format: 'csv', leftKey: 'customer', rightKey: 'customer', multiline: true } as const;
  return {
    ...builtinJob('join', { inputs, right: ['customers.csv'], ...form, partitions, splitBytes: 1 }),
    policy: 'none',
    policyConfig: { split: { isOn, leastGainMs: 0 } },
  };
}

describe('outrider run of a join in which one key has most rows', () => {
  it('splits its partition among tasks, gives what SQLite does, says why, and decides alike in a replay', async () => {
    const at = await place();
    const { exitCode, report, explanation, text } = await runExplained({
      place: at,
      job: jobOf(true),
      options: ['--slots', '8'],
    });
    expect([exitCode, report.error]).toEqual([0, null]);
    const join = report.stages.find(({ name }) => name === 'join');
    // The heavy partition has a part of each of the six files.
    expect(join).toMatchObject({ tasks: partitions + files - 1, done: partitions + files - 1 });
    const [header, ...lines] = (await at.parts('out')).toString().split('\n').slice(0, -1);
    expect(header).toBe('id,customer,what,name');
    expect(lines.toSorted()).toEqual(joined());
    const splits = explanation.actions.filter(({ kind }) => kind === 'split');
    expect(splits).toMatchObject([{ facts: { parts: files } }]);
    expect(splits[0]?.of).toMatch(/^join\/\d$/);
    expect(text).toMatch(
      /join\/\d had so much more to read than is usual, which no copy mends, that its partition was split among tasks: 6 parts, /,
    );
    await expectSameReplay(at, report.jobId);
  }, 180_000);

  it('does not where the job says so, and gives the same rows', async () => {
    const at = await place();
    const { exitCode, report, explanation } = await runExplained({
      place: at,
      job: jobOf(false),
      options: ['--slots', '8'],
    });
    expect([exitCode, report.error]).toEqual([0, null]);
    expect(report.stages.find(({ name }) => name === 'join')?.tasks).toBe(partitions);
    expect(explanation.actions.filter(({ kind }) => kind === 'split')).toEqual([]);
    const [, ...lines] = (await at.parts('out')).toString().split('\n').slice(0, -1);
    expect(lines.toSorted()).toEqual(joined());
  }, 180_000);
});
