import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { execute } from '../../../src/cli/main.ts';
import { keepRun } from '../../../src/cli/run-records.ts';
import { jobRecord } from '../report/report-records.ts';
import { memoryConsole, scratchDir } from './fixtures.ts';

async function run(args: readonly string[], files: Readonly<Record<string, string>> = {}) {
  const cwd = await scratchDir();
  for (const [name, text] of Object.entries(files)) await writeFile(join(cwd, name), text);
  const { console, written } = memoryConsole(cwd);
  return { exitCode: await execute(args, console), ...written, cwd };
}

const scenario = JSON.stringify({
  cluster: { nodes: [{ count: 2 }] },
  scheduler: { wakeOnEnd: true },
  jobs: [{ policy: 'late', deadlineMs: 15_000, stages: [{ name: 'map', tasks: 4, workMs: 5_000 }] }],
});

describe('outrider simulate', () => {
  it('runs a scenario and answers with the names that scripts rely on', async () => {
    const { exitCode, out, err } = await run(['simulate', 's.json', '--json', '--seed', '3'], {
      's.json': scenario,
    });
    expect([exitCode, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toEqual({
      policy: 'late',
      seed: 3,
      jobs: 1,
      failed: 0,
      completionS: { mean: 10, p50: 10, p90: 10, p95: 10, p99: 10 },
      bins: [{ tasks: '1-10', jobs: 1, meanS: 10, p50S: 10, p95S: 10 }],
      slotSeconds: 20,
      wastedSlotSeconds: 0,
      copies: { started: 0, won: 0 },
      slowestToMedian: { p50: 1, p95: 1 },
      deadlines: { met: 1, missed: 0 },
      dollars: expect.any(Number),
    });
  });

  it('shows the same to people', async () => {
    const { out } = await run(['simulate', 's.json', '--policy', 'mantri'], { 's.json': scenario });
    expect(out).toMatch(/^mantri, seed 1: 1 job\n/);
    expect(out).toContain('deadlines   1 met, 0 missed');
  });

  it('tells of jobs that fail why, ends with 1, and names no time that none has taken', async () => {
    const failing = JSON.stringify({ ...(JSON.parse(scenario) as object), faults: { attemptFailure: 1 } });
    const { exitCode, out, err } = await run(['simulate', 's.json'], { 's.json': failing });
    expect([exitCode, err]).toEqual([1, '']);
    expect(out).toMatch(/^late, seed 1: 1 job, 1 failed\nthe first failed: stage map, task \d failed .+\n/);
    expect(out).toContain('\ncompletion  mean -, median -, 90 % -, 95 % -, 99 % -\n');
    const json = await run(['simulate', 's.json', '--json'], { 's.json': failing });
    expect(json.exitCode).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({
      ...{ jobs: 1, failed: 1, error: expect.stringMatching(/^stage map, task \d failed/) as string },
      completionS: { mean: 0 },
    });
  });

  it.each([
    0,
    { kind: 'empirical', values: [1, 0] },
    { kind: 'uniform', min: 0, max: 1 },
    { kind: 'mixture', probability: 0.1, outlier: 0, usual: 1 },
  ])('refuses a node that may stand still: %j', async (speed) => {
    const still = JSON.stringify({
      ...(JSON.parse(scenario) as object),
      cluster: { nodes: [{ count: 1 }, { count: 2, speed }] },
    });
    const { exitCode, out, err } = await run(['simulate', 's.json'], { 's.json': still });
    expect([exitCode, out, err]).toEqual([
      2,
      '',
      'outrider: cluster.nodes[1].speed must be above 0, whatever is drawn\n',
    ]);
  });

  it('replays a trace, the same for the same seed', async () => {
    const swim = 'job0\t0\t0\t300000000\t90000000\t1000\njob1\t5\t5\t1000\t0\t0\n';
    const args = [
      'simulate',
      '--trace',
      't.tsv',
      '--format',
      'swim',
      '--policy',
      'outrider',
      '--seed',
      '2',
      '--slots',
      '4',
      '--json',
    ];
    const [first, second] = [await run(args, { 't.tsv': swim }), await run(args, { 't.tsv': swim })];
    expect(first.exitCode).toBe(0);
    expect(JSON.parse(first.out)).toMatchObject({ policy: 'outrider', jobs: 2, failed: 0 });
    expect(second.out).toBe(first.out);
  });

  it('says of a job of which its schedulers had written nothing down that this is gone, or is to come', async () => {
    const cwd = await scratchDir();
    const job = jobRecord({ state: 'running' });
    await keepRun(join(cwd, '.outrider'), { job, attempts: { attempts: [] }, lines: [] });
    const { console, written } = memoryConsole(cwd);
    expect(await execute(['simulate', '--replay', job.jobId], console)).toBe(1);
    expect(written.err).toBe(
      `outrider: job ${job.jobId} cannot be gone through again: what its schedulers had learned is not kept: they write it down once a minute and as they leave the job, and what they had not written is lost with them\n`,
    );
  });

  it('prints the schema of scenarios', async () => {
    const { out } = await run(['simulate', '--schema']);
    expect(JSON.parse(out)).toMatchObject({ type: 'object', required: ['cluster', 'jobs'] });
  });

  it.each([
    [['simulate'], 'outrider: give either a scenario file, --trace or --replay\n'],
    [
      ['simulate', 'none.json'],
      /^outrider: cannot read \S+none\.json: there is no such file or directory\n$/,
    ],
    [['simulate', 'bad.json'], /^outrider: \S+bad\.json is not JSON: .+\n$/],
    [['simulate', 'empty.json'], /^outrider: cluster.+\n$/],
    [['simulate', 's.json', '--policy', 'x'], /^outrider: no such policy: x; there are none, .+\n$/],
    [
      ['simulate', 's.json', '--seed', 'x'],
      'outrider: --seed "x" must be a whole number from 0 to 1000000000\n',
    ],
    [['simulate', '--trace', 's.json'], /^outrider: --trace needs --format, one of swim, .+\n$/],
    [['simulate', '--trace', 's.json', '--format', 'swim'], /^outrider: .+s\.json:1.+\n$/],
    [
      ['simulate', '--trace', 's.json', '--format', 'swim', '--host', 'moon'],
      'outrider: --host "moon" must be one of lambda, fargate, hadoop, local\n',
    ],
    [
      ['simulate', '--trace', 's.json', '--format', 'swim', '--load', '0'],
      /^outrider: --load "0" must be .+\n$/,
    ],
    // Numbers of another cluster would pass for those that were asked for.
    [
      ['simulate', 's.json', '--host', 'fargate'],
      'outrider: --host cannot go with a scenario file: it says it by itself\n',
    ],
    [
      ['simulate', 's.json', '--slots', '50'],
      'outrider: --slots cannot go with a scenario file: it says it by itself\n',
    ],
    [
      ['simulate', 's.json', '--jobs', '100'],
      'outrider: --jobs cannot go with a scenario file: it says it by itself\n',
    ],
    [
      ['simulate', '--replay', 'sort-0123456789ab', '--seed', '2'],
      'outrider: --seed cannot go with --replay: the job says it by itself\n',
    ],
    [
      ['simulate', 's.json', '--endpoint', 'http://nowhere'],
      'outrider: --endpoint goes with --replay alone: nothing else asks a service\n',
    ],
    [
      ['simulate', '--trace', 's.json', '--format', 'swim', '--state-dir', 'x'],
      'outrider: --state-dir goes with --replay alone: nothing else asks a service\n',
    ],
    [['simulate', 'backwards.json'], 'outrider: jobs[0].stages[0].workMs.min must be at most "max"\n'],
    [['experiments', 'x'], /^outrider: no such experiment: x; there are late-sleep, .+\n$/],
    [
      ['experiments', 'late-examples', '--seeds', '0'],
      'outrider: --seeds "0" must be a whole number from 1 to 1000\n',
    ],
    [
      ['experiments', 'policies-on-traces', '--data', 'x'],
      /^outrider: policies-on-traces needs the traces rumen, .+ --data\n$/,
    ],
  ])('answers %j with one line and exit code 2', async (args, line) => {
    const { exitCode, out, err } = await run(args, {
      's.json': scenario,
      'bad.json': '{',
      'empty.json': '{}',
      'backwards.json': scenario.replace('"workMs":5000', '"workMs":{"kind":"uniform","min":9,"max":3}'),
    });
    expect([exitCode, out]).toEqual([2, '']);
    expect(err).toMatch(line);
  });
});

describe('outrider experiments', () => {
  it('lists all', async () => {
    const { out } = await run(['experiments', 'list', '--json']);
    expect(JSON.parse(out)).toMatchObject({
      experiments: expect.arrayContaining([
        expect.objectContaining({ name: 'late-sleep', defaultSeeds: 20, traces: [] }),
      ]),
    });
    expect((await run(['experiments'])).out).toMatch(/^late-sleep .+LATE §5\.4/m);
  });

  it('prints one document for one experiment', async () => {
    const { exitCode, out, err } = await run(['experiments', 'late-examples', '--json']);
    expect([exitCode, err]).toEqual([0, '']);
    const result = JSON.parse(out) as object;
    expect(Object.keys(result)).toEqual(['name', 'seed', 'seeds', 'rows', 'checks', 'verdict']);
    expect(result).toMatchObject({ name: 'late-examples', seed: 1, verdict: 'reproduced' });
  });

  it('shows table, checks and verdict to people', async () => {
    const { out } = await run(['experiments', 'late-examples']);
    expect(out).toContain('ok   slow node: end with it, min: paper 4; here 4\n');
    expect(out).toMatch(/\nlate-examples: reproduced \(\d+ of \d+ checks hold\)\n/);
  });

  it('writes the results as a page of Markdown', async () => {
    const { exitCode, err, cwd } = await run(['experiments', 'late-examples', '--markdown', '--json']);
    expect(exitCode).toBe(0);
    expect(err).toBe(`wrote ${join(cwd, 'RESULTS.md')}\n`);
    const page = await readFile(join(cwd, 'RESULTS.md'), 'utf8');
    expect(page).toMatch(/^# Results of the experiments\n/);
    expect(page).toContain('| [late-examples](#late-examples) |');
    expect(page).toContain('**reproduced**');
  });

  it('writes plots where it is told to', async () => {
    const { exitCode, err, cwd } = await run([
      'experiments',
      'late-sleep',
      '--seeds',
      '1',
      '--plot',
      'plots',
      '--json',
    ]);
    expect(exitCode).toBe(0);
    expect(err).toContain('wrote ');
    expect((await readdir(join(cwd, 'plots'))).sort()).toEqual([
      'late-sleep-slow-node-threshold.svg',
      'late-sleep-slow-task-threshold.svg',
      'late-sleep-speculative-cap.svg',
    ]);
  });
});
