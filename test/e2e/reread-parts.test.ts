import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { Workplace } from './command.ts';

const regions = ['north', 'south', 'east', 'west', 'far, away', 'the "top"'];
const sales = regions.flatMap((region, index) => [
  { region, amount: index },
  { region, amount: 10 },
]);
const quoted = (text: string): string => (/[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const salesCsv = `region,amount\n${sales.map(({ region, amount }) => `${quoted(region)},${String(amount)}\n`).join('')}`;

const readJob = `import { job, read } from 'outrider';
export default job('reread', read.csv().map(({ region, sum_amount }) => [region, sum_amount].join('|')).write.text());
`;
const sqlJob = {
  name: 'reread',
  stages: [
    {
      name: 'all',
      operator: 'sql',
      options: { query: 'SELECT region, sum_amount FROM input', output: 'csv', header: false },
      inputs: [{ s3: ['totals'], format: 'csv' }],
    },
  ],
};

/** Totals by region as CSV in twelve parts of a grouping job: the first has the header, and some hold nothing. */
async function makeTotals(): Promise<Workplace> {
  const place = await Workplace.make();
  await writeFile(place.path('sales.csv'), salesCsv);
  const result = await place.run(
    ...['run', 'groupby', '--input', 'sales.csv', '--key', 'region', '--agg', 'count,sum:amount'],
    ...['--rows', 'csv', '--partitions', '12', '--output', 'totals'],
  );
  expect(result.exitCode, result.err).toBe(0);
  const sizes = await Promise.all(
    (await partsOf(place)).map(async (name) => (await readFile(place.path('totals', name))).length),
  );
  expect(sizes).toContain(0);
  expect(sizes.filter((size) => size > 0).length).toBeGreaterThan(3);
  return place;
}

const partsOf = async (place: Workplace): Promise<string[]> =>
  (await readdir(place.path('totals'))).filter((name) => name.startsWith('part-')).sort();

async function linesOf(place: Workplace, ...args: readonly string[]): Promise<string[]> {
  const result = await place.run('run', ...args, '--output', 'back');
  expect(result.exitCode, result.err).toBe(0);
  const lines = (await place.parts('back')).toString().split('\n').slice(0, -1);
  await rm(place.path('back'), { recursive: true });
  return lines.sort();
}

describe('CSV in parts of which the first has the header', () => {
  it('is read back with each row once, by jobs of every kind', async () => {
    const place = await makeTotals();
    await writeFile(place.path('job.ts'), readJob);
    const told = regions.map((region, index) => `${region}|${String(index + 10)}`).sort();
    expect(await linesOf(place, 'job.ts', '--input', 'totals')).toEqual(told);

    await writeFile(place.path('job.json'), JSON.stringify(sqlJob));
    const rows = regions.map((region, index) => `${quoted(region)},${String(index + 10)}`).sort();
    expect(await linesOf(place, 'job.json')).toEqual(rows);

    const grouping = ['groupby', '--key', 'region', '--agg', 'count', '--rows', 'csv'];
    const counted = ['region,count', ...regions.map((region) => `${quoted(region)},1`)].sort();
    expect(await linesOf(place, ...grouping, '--input', 'totals')).toEqual(counted);

    const joining = ['join', '--left-key', 'region', '--right', 'totals', '--input', 'sales.csv'];
    for (const form of [['--partitions', '2'], ['--broadcast']]) {
      const joined = await linesOf(place, ...joining, ...form);
      expect(joined).toContain('region,amount,count,sum_amount');
      expect(joined).toHaveLength(1 + sales.length);
    }
  });

  it('is refused without the part that has the header, and files with a header each go on', async () => {
    const place = await makeTotals();
    await writeFile(place.path('job.ts'), readJob);
    const [first = '', ...others] = await partsOf(place);
    const header = 'region,count,sum_amount\n';
    await mkdir(place.path('each'));
    await cp(place.path('totals', first), place.path('each', first));
    for (const name of others)
      await writeFile(
        place.path('each', name),
        header + (await readFile(place.path('totals', name), 'utf8')),
      );
    const told = regions.map((region, index) => `${region}|${String(index + 10)}`).sort();
    expect(await linesOf(place, 'job.ts', '--input', 'each')).toEqual(told);

    await rm(place.path('totals', first));
    const refused = await place.run('run', 'job.ts', '--input', 'totals', '--output', 'back');
    expect(refused.exitCode).toBe(2);
    expect(refused.err).toMatch(/part-000\d\d has the name of a later part of a job's output/);
  });
});
