import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { draws } from '../support/draws.ts';
import { MemoryHost } from '../support/memory-host.ts';

/** Whatever is larger than others is split, and however little that saves. */
const split = { factor: 1, leastGainMs: 0, mostParts: 5 };

type Row = Readonly<Record<string, string>>;

/** One key has most rows of either side; others have few or none. */
const arbKey = fc.oneof(
  { weight: 6, arbitrary: fc.constant('hot') },
  { weight: 3, arbitrary: fc.constantFrom('a', 'b', 'c', 'quo"te', 'com,ma', '', 'é') },
  { weight: 1, arbitrary: fc.string({ maxLength: 3 }).map((text) => text.replaceAll(/[\0\r\n]/g, '')) },
);
const arbRows = (name: string, most: number): fc.Arbitrary<readonly Row[]> =>
  fc
    .array(fc.tuple(arbKey, fc.constantFrom('x', 'y', 'comma, "quote"', 'z'.repeat(90))), { maxLength: most })
    .map((rows) => rows.map(([key, text], row) => ({ k: key, [name]: `${String(row)} ${text}` })));

const quoted = (value = ''): string => `"${value.replaceAll('"', '""')}"`;
const csvOf = (rows: readonly Row[], columns: readonly string[]): string =>
  [columns, ...rows.map((row) => columns.map((column) => row[column]))]
    .map((cells) => `${cells.map(quoted).join(',')}\n`)
    .join('');

/** Rows in files, every second of which names its columns the other way round. */
async function filesOf(
  host: MemoryHost,
  name: string,
  rows: readonly Row[],
  { format, count }: { readonly format: 'csv' | 'ndjson'; readonly count: number },
): Promise<string[]> {
  return Promise.all(
    Array.from({ length: count }, (_, file) => {
      const own = rows.filter((_row, at) => at % count === file);
      const columns = file % 2 === 0 ? ['k', name] : [name, 'k'];
      const lines = own.map((row) => `${JSON.stringify(row)}\n`).join('');
      return host.put(`${name}/${String(file)}`, Buffer.from(format === 'csv' ? csvOf(own, columns) : lines));
    }),
  );
}

/** What SQLite makes of it: an oracle that shares no code with ours. */
function joined(left: readonly Row[], right: readonly Row[]): string[][] {
  const db = new DatabaseSync(':memory:');
  db.exec('create table l (k text, v text); create table r (k text, w text)');
  const [intoLeft, intoRight] = ['l', 'r'].map((name) => db.prepare(`insert into ${name} values (?, ?)`));
  for (const { k = '', v = '' } of left) intoLeft?.run(k, v);
  for (const { k = '', w = '' } of right) intoRight?.run(k, w);
  const rows = db.prepare('select k, v, w from l join r using (k)').all();
  db.close();
  return rows.map((row) => Object.values(row).map(String));
}

const inOrder = (rows: readonly (readonly string[])[]): string[] =>
  rows.map((row) => JSON.stringify(row)).toSorted();

/** How many tasks the join of a job had, more than its partitions. */
const added = (stages: readonly { readonly name: string; readonly tasks: number }[], partitions: number) =>
  (stages.find(({ name }) => name === 'join')?.tasks ?? 0) - partitions;

const rowsOf = (output: Buffer): string[][] =>
  output
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const { k, v, w } = JSON.parse(line) as Row;
      return [k ?? '', v ?? '', w ?? ''];
    });

const arbCase = fc.record({
  left: arbRows('v', 60),
  right: arbRows('w', 25),
  leftForm: fc.record({ format: fc.constantFrom('csv', 'ndjson'), count: fc.integer({ min: 1, max: 6 }) }),
  rightForm: fc.record({ format: fc.constantFrom('csv', 'ndjson'), count: fc.integer({ min: 1, max: 6 }) }),
  partitions: fc.integer({ min: 2, max: 5 }),
});

/** Drawn first, since few draws may split nothing: ten lines in each of six files have one key. */
const alwaysSplit: typeof arbCase extends fc.Arbitrary<infer Case> ? Case : never = {
  left: Array.from({ length: 60 }, (_, row) => ({ k: 'hot', v: `${String(row)} ${'z'.repeat(90)}` })),
  right: [{ k: 'hot', w: '0 x' }],
  leftForm: { format: 'ndjson', count: 6 },
  rightForm: { format: 'ndjson', count: 1 },
  partitions: 3,
};

describe('a join whose heavy partitions are split', () => {
  it('has the rows that SQLite finds, whichever side is cut, and whatever the forms of both', async () => {
    let tasksAdded = 0;
    await fc.assert(
      fc.asyncProperty(arbCase, async ({ left, right, leftForm, rightForm, partitions }) => {
        const host = new MemoryHost({ totalSlots: 20 });
        const spec: JobSpecInput = builtinJob('join', {
          inputs: await filesOf(host, 'v', left, leftForm),
          right: await filesOf(host, 'w', right, rightForm),
          ...{ format: leftForm.format, rightFormat: rightForm.format, leftKey: 'k', rightKey: 'k' },
          ...{ partitions, rows: 'ndjson', splitBytes: 300 },
        });
        const { job, output } = await host.run({ ...spec, policy: 'none', policyConfig: { split } });
        expect(job.error).toBeUndefined();
        tasksAdded += added(job.stages, partitions);
        expect(inOrder(rowsOf(output))).toEqual(inOrder(joined(left, right)));
      }),
      { numRuns: draws(40), examples: [[alwaysSplit]] },
    );
    expect(tasksAdded).toBeGreaterThan(0);
  }, 300_000);

  it('writes CSV with the columns of the first file of all in each part, and its header once', async () => {
    const host = new MemoryHost({ totalSlots: 20 });
    const left = Array.from({ length: 40 }, (_, row) => ({
      k: row % 8 === 7 ? String(row) : 'hot',
      v: `l${String(row)}${'x'.repeat(80)}`,
    }));
    const right = [
      { k: 'hot', w: 'r0' },
      { k: '7', w: 'r1' },
      { k: 'hot', w: 'r2' },
    ];
    const spec = builtinJob('join', {
      inputs: await filesOf(host, 'v', left, { format: 'csv', count: 5 }),
      right: await filesOf(host, 'w', right, { format: 'csv', count: 2 }),
      ...{ format: 'csv', leftKey: 'k', rightKey: 'k', partitions: 3, splitBytes: 1, multiline: true },
    });
    const { job, output } = await host.run({ ...spec, policy: 'none', policyConfig: { split } });
    expect(job.error).toBeUndefined();
    expect(added(job.stages, 3)).toBeGreaterThan(1);
    const [header, ...lines] = output.toString().replaceAll('"', '').split('\n').slice(0, -1);
    expect(header).toBe('k,v,w');
    expect(lines.toSorted()).toEqual(
      joined(left, right)
        .map((row) => row.join(','))
        .toSorted(),
    );
  });

  it('splits nothing where that is off', async () => {
    const host = new MemoryHost({ totalSlots: 20 });
    const left = Array.from({ length: 40 }, (_, row) => ({ k: 'hot', v: String(row) }));
    const files = await filesOf(host, 'v', left, { format: 'csv', count: 4 });
    const form = {
      format: 'csv',
      leftKey: 'k',
      rightKey: 'k',
      partitions: 3,
      splitBytes: 1,
      multiline: true,
    } as const;
    const right = await filesOf(host, 'w', [{ k: 'hot', w: 'r' }], { format: 'csv', count: 1 });
    const spec = builtinJob('join', { inputs: files, right, ...form });
    const off = await host.run({
      ...spec,
      policy: 'none',
      policyConfig: { split: { ...split, isOn: false } },
    });
    expect([off.job.error, added(off.job.stages, 3)]).toEqual([undefined, 0]);
    const on = await host.run({ ...spec, policy: 'none', policyConfig: { split } });
    expect(added(on.job.stages, 3)).toBeGreaterThan(0);
  });
});
