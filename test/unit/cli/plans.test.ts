import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { execute } from '../../../src/cli/main.ts';
import { memoryConsole, scratchDir } from './fixtures.ts';

async function run(args: readonly string[], files: Readonly<Record<string, string>> = {}) {
  const cwd = await scratchDir();
  for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text);
  const { console, written } = memoryConsole(cwd);
  return { exitCode: await execute(args, console), ...written, cwd };
}

const stage = (name: string, tasks: number, ms: number, inputs: readonly object[]) => ({
  ...{ name, tasks, inputs, queueMs: [], failureShare: 0 },
  runs: [{ slots: 1, times: { cold: [], first: [], later: [ms] } }],
});
const profile = JSON.stringify({
  ...{ version: 1, name: 'nightly', fingerprint: 'f', inputBytes: 0, runs: 100, jobs: [] },
  profile: {
    stages: [stage('map', 8, 10_000, []), stage('reduce', 1, 10_000, [{ stage: 0, isBarrier: true }])],
  },
});
const files = { 'p.json': profile };

describe('outrider plan', () => {
  it('answers with quantiles, probabilities and dollars, and marks the cheapest that is in time', async () => {
    const { exitCode, out, err } = await run(
      ['plan', '--profile', 'p.json', '--deadline', '40s', '--budget', '1', '--slots', '1,4,8', '--json'],
      files,
    );
    expect([exitCode, err]).toEqual([0, '']);
    const plan = JSON.parse(out) as { readonly allocations: readonly Record<string, unknown>[] };
    expect(plan).toMatchObject({
      ...{ name: 'nightly', deadlineMs: 40_000, budgetDollars: 1, tasks: 9, simulatedRuns: 200 },
      basis: { kind: 'given', runs: 100, says: 'the profile in p.json, of 100 finished runs' },
      prices: { asOf: '2026-11-01', region: 'us-east-1', overridden: [] },
    });
    // 90, 30 and 20 seconds, give or take 3 %.
    expect(
      plan.allocations.map((row) => [row['slots'], row['deadlineProbability'], row['isWithinBudget']]),
    ).toEqual([
      [1, 0, true],
      [4, 1, true],
      [8, 1, true],
    ]);
  });

  it('shows the same to people, and draws it the same each time', async () => {
    const args = ['plan', '--profile', 'p.json', '--deadline', '40s', '--slots', '1,4', '--svg', 'plan.svg'];
    const first = await run(args, files);
    expect(first.out).toMatch(
      /^nightly rests on the profile in p\.json, of 100 finished runs\ndeadline 40\.0s\n/,
    );
    expect(first.out).toMatch(/\n {4}4 .* 100\.0 % .*cheapest that meets the deadline at 95 %\n/);
    expect(first.out).toContain('prices of us-east-1, 2026-11-01');
    const picture = await readFile(join(first.cwd, 'plan.svg'), 'utf8');
    expect(picture).toMatch(/^<\?xml .*\n<svg .*<\/svg>\n$/s);
    for (const text of ['time to completion', 'dollars', 'cheapest in time: 4', 'deadline, budget', '1 min'])
      expect(picture).toContain(text);
    expect(picture).not.toContain('NaN');
    const again = await run(args, files);
    expect(await readFile(join(again.cwd, 'plan.svg'), 'utf8')).toBe(picture);
  });

  it('says that no allocation is in time', async () => {
    const { out } = await run(['plan', '--profile', 'p.json', '--deadline', '5s'], files);
    expect(out).toContain('no allocation meets the deadline at 95 %');
    expect(out).not.toContain('cheapest');
  });

  it('takes a profile from a trace, keeps it, and plans by it the same', async () => {
    const line = JSON.stringify({
      ...{ size: '2g', query: 3, edges: [[0, 1]] },
      stages: [
        { id: 0, tasks: 4, ms_by_executors: { 20: { first: [1_000, 1_000], rest: [1_000, 1_000] } } },
        { id: 1, tasks: 1, ms_by_executors: { 20: { first: [3_000], rest: [] } } },
      ],
    });
    const traced = ['--trace', 't.jsonl', '--trace-format', 'tpch', '--trace-job', 'q3-2g'];
    const { exitCode, out, cwd } = await run(
      ['plan', ...traced, '--slots', '4', '--save-profile', 'q3.json', '--json'],
      { 't.jsonl': `${line}\n` },
    );
    expect(exitCode).toBe(0);
    const plan = JSON.parse(out) as {
      readonly allocations: readonly { readonly completionMs: { readonly p50: number } }[];
    };
    expect(plan).toMatchObject({
      name: 'q3-2g',
      tasks: 5,
      basis: { kind: 'given', runs: 1, says: 'one recorded run, q3-2g of t.jsonl' },
    });
    expect(plan.allocations[0]?.completionMs.p50).toBeGreaterThan(3_700);
    expect(plan.allocations[0]?.completionMs.p50).toBeLessThan(4_300);
    const saved = await readFile(join(cwd, 'q3.json'), 'utf8');
    const again = await run(['plan', '--profile', 'q3.json', '--slots', '4', '--json'], { 'q3.json': saved });
    expect(JSON.parse(again.out)).toMatchObject({
      allocations: plan.allocations,
      basis: { says: 'the profile in q3.json, of 1 finished run' },
    });
  });

  it('says that it does not know how much a job reads whose inputs no service lists', async () => {
    const stages = [stage('tokenize', 8, 10_000, []), stage('count', 1, 10_000, [])];
    const words = JSON.stringify({ ...(JSON.parse(profile) as object), profile: { stages } });
    const args = ['plan', 'wordcount', '--input', 's3://data/logs/', '--profile', 'w.json', '--json'];
    const { exitCode, out, err } = await run(args, { 'w.json': words });
    expect([exitCode, err]).toEqual([
      0,
      'how much the job reads is not known: s3://data/logs/ was not listed, as no service is asked\n',
    ]);
    expect(JSON.parse(out)).toMatchObject({
      basis: { says: 'the profile in w.json, of 100 finished runs, taken to read as much as then' },
    });
  });

  it('takes prices from a file, and says so', async () => {
    const prices = JSON.stringify({ asOf: '2027-01-15', region: 'eu-west-1', lambdaGbSecond: 1 });
    const { out } = await run(['plan', '--profile', 'p.json', '--slots', '8', '--prices', 'prices.json'], {
      ...files,
      'prices.json': prices,
    });
    expect(out).toContain('prices of eu-west-1, 2027-01-15, with asOf, region, lambdaGbSecond as given');
  });

  it.each([
    [['plan'], /name a job, or give --profile or --trace/],
    [['plan', '--profile', 'none.json'], /cannot read none\.json/],
    [['plan', '--profile', 'bad.json'], /bad\.json is no profile: it is no JSON/],
    [['plan', '--trace', 'p.json'], /--trace needs --trace-format, one of swim/],
    [['plan', '--profile', 'p.json', '--slots', '0'], /--slots/],
    [['plan', '--profile', 'p.json', '--deadline', 'soon'], /--deadline/],
    [['plan', '--profile', 'p.json', '--prices', 'wrong.json'], /lambdaGbSeconds is not a known field/],
    [
      ['plan', 'wordcount', '--input', 'bad.json', '--profile', 'p.json'],
      /the profile has the stages map, reduce, and the job /,
    ],
    [
      ['plan', '--profile', 'p.json', '--like', 'nightly'],
      /--like cannot go with --profile or --trace: those say what the runs were/,
    ],
    [['plan', '--save-profile', 'x.json'], /--save-profile writes what --trace tells/],
  ])('refuses %j, and says what would be right', async (args, message) => {
    const { exitCode, err } = await run(args, {
      ...files,
      'bad.json': 'text\n',
      'wrong.json': '{"lambdaGbSeconds":1}',
    });
    expect(exitCode).toBe(2);
    expect(err).toMatch(message);
  });
});
