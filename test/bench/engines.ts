/**
 * The four jobs of the command, everything included, beside the programs that people would use instead, as ratios of
 * pairs in one run; then what each operator gets through per core inside a worker, the store's time set apart.
 *
 * `node test/bench/engines.ts [--size 16] [--pairs 10] [--only sort] [--sources] [--workers-only] [--json]`; the size in
 * MB. The command is that of a packed installation, as users have it; with `--sources` that of the checkout.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { builtinJob, type BuiltinJobName, type BuiltinJobOptions } from '../../src/operators/builtin-jobs.ts';
import { commandOfPackage, commandOfSources } from './measured-command.ts';
import { writeCustomers, writeLines, writeSales, writeText } from './inputs.ts';
import { byKind, measured, type Measured } from './measured-process.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const { values: flags } = parseArgs({
  options: {
    size: { type: 'string', default: '16' },
    pairs: { type: 'string', default: '10' },
    only: { type: 'string' },
    sources: { type: 'boolean', default: false },
    'workers-only': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});
const sizeBytes = Number(flags.size) * 1_000_000;
const pairs = Number(flags.pairs);
if (!(sizeBytes > 0 && Number.isInteger(pairs) && pairs > 0))
  throw new Error('--size must be megabytes, and --pairs a whole number, both above 0');
const customers = Math.max(1, Math.floor(sizeBytes / 250));

/** A job: how the command is told of it, what the worker is told, and what does the same without it. */
interface Case {
  readonly name: BuiltinJobName;
  readonly files: readonly string[];
  readonly args: readonly string[];
  readonly options: Partial<BuiltinJobOptions>;
  readonly others: Readonly<Record<string, readonly string[]>>;
}

const root = await mkdtemp(join(tmpdir(), 'outrider-engines-'));
const data = join(root, 'bench');
const at = (file: string): string => join(data, file);
const shell = (script: string): readonly string[] => ['sh', '-c', script];
const duckDb = (query: string): readonly string[] => [process.execPath, here('duckdb-query.ts'), '2', query];
const out = join(root, 'reference');
const copied = (query: string): string => `COPY (${query}) TO '${out}' (FORMAT csv)`;

const cases: readonly Case[] = [
  {
    name: 'wordcount',
    files: ['text'],
    args: ['--input', at('text')],
    options: {},
    others: {
      mawk: shell(
        `LC_ALL=C mawk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print w "\\t" n[w] }' ${at('text')} > ${out}`,
      ),
      DuckDB: duckDb(
        copied(
          `SELECT word, count(*) FROM (SELECT unnest(string_split(line, ' ')) AS word FROM read_csv('${at('text')}', columns={'line': 'VARCHAR'}, delim='\\x01', quote='', escape='', header=false)) GROUP BY word`,
        ),
      ),
    },
  },
  {
    name: 'groupby',
    files: ['sales.csv'],
    args: ['--input', at('sales.csv'), '--key', 'shop', '--agg', 'count,sum:amount'],
    options: { key: 'shop', aggregates: [{ op: 'count' }, { op: 'sum', column: 'amount' }] },
    others: {
      DuckDB: duckDb(
        copied(`SELECT shop, count(*), sum(amount) FROM read_csv('${at('sales.csv')}') GROUP BY shop`),
      ),
      mawk: shell(
        `LC_ALL=C mawk -F, 'NR > 1 { n[$2]++; s[$2] += $4 } END { for (k in n) print k "," n[k] "," s[k] }' ${at('sales.csv')} > ${out}`,
      ),
    },
  },
  {
    name: 'sort',
    files: ['lines'],
    args: ['--input', at('lines')],
    options: {},
    others: { 'GNU sort': shell(`LC_ALL=C sort ${at('lines')} > ${out}`) },
  },
  {
    name: 'join',
    files: ['sales.csv', 'customers.csv'],
    args: ['--input', at('sales.csv'), '--right', at('customers.csv'), '--left-key', 'customer'],
    options: { right: ['s3://bench/customers.csv'], leftKey: 'customer' },
    others: {
      DuckDB: duckDb(
        copied(
          `SELECT * FROM read_csv('${at('sales.csv')}') s JOIN read_csv('${at('customers.csv')}') c USING (customer)`,
        ),
      ),
    },
  },
];

const round = (value: number): number => Math.round(value * 100) / 100;
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
const isThere = (name: string): boolean =>
  name === 'DuckDB' ||
  spawnSync('sh', ['-c', `command -v ${name === 'GNU sort' ? 'sort' : name}`]).status === 0;

/** Runs the command once, on a stack of its own. */
async function runCommand(command: readonly string[], { name, args }: Case): Promise<Measured> {
  const output = join(root, 'from-command');
  const run = await measured([...command, 'run', name, ...args, '--output', output, '--slots', '2'], {
    cwd: root,
  });
  await rm(output, { recursive: true });
  return run;
}

/** Pairs of the command and each other program, one after the other, so that what else runs disturbs both. */
async function compare(command: readonly string[], one: Case): Promise<object[]> {
  const rows: object[] = [];
  const others = Object.entries(one.others).filter(([name]) => isThere(name));
  const ours: Measured[] = [];
  const theirs = new Map<string, Measured[]>(others.map(([name]) => [name, []]));
  for (let pair = 0; pair < pairs; pair++) {
    ours.push(await runCommand(command, one));
    for (const [name, other] of others) theirs.get(name)?.push(await measured(other));
  }
  for (const [name, runs] of theirs) {
    const over = (of: (run: Measured) => number): number =>
      round(median(runs.map((run, pair) => of(ours[pair] ?? run) / of(run))));
    rows.push({
      job: one.name,
      beside: name,
      'wall s': round(median(ours.map(({ wallSeconds }) => wallSeconds))),
      'its wall s': round(median(runs.map(({ wallSeconds }) => wallSeconds))),
      'wall ratio': over(({ wallSeconds }) => wallSeconds),
      'CPU s': round(median(ours.map(({ cpuSeconds }) => cpuSeconds))),
      'its CPU s': round(median(runs.map(({ cpuSeconds }) => cpuSeconds))),
      'CPU ratio': over(({ cpuSeconds }) => cpuSeconds),
    });
  }
  report(`${one.name}: processes of the last run`, byKind(ours.at(-1)?.processes ?? []));
  return rows;
}

interface WorkerReport {
  readonly stages: readonly { stage: string; cpuMs: number; tasks: number }[];
  readonly cpuMs: number;
  readonly storeMs: number;
  readonly peakBytes: number;
}

/** What a worker gets through per second of one core. */
async function throughput({ name, files, options }: Case): Promise<object> {
  const spec = builtinJob(name, { inputs: [`s3://bench/${files[0] ?? ''}`], ...options });
  const flagsOfWorker = ['--max-semi-space-size=4', '--expose-gc'];
  const printed = execFileSync(process.execPath, [
    ...flagsOfWorker,
    here('worker-job.ts'),
    root,
    JSON.stringify(spec),
  ]);
  const { stages, cpuMs, storeMs, peakBytes } = JSON.parse(printed.toString()) as WorkerReport;
  // What the store kept of the job.
  for (const left of ['data', 'output']) await rm(join(root, left), { recursive: true, force: true });
  let inputBytes = 0;
  for (const file of files) inputBytes += (await stat(at(file))).size;
  return {
    job: name,
    'MB/s per core': round(inputBytes / 1_000 / (cpuMs - storeMs)),
    'CPU s': round((cpuMs - storeMs) / 1_000),
    'store CPU s': round(storeMs / 1_000),
    'peak MB': Math.round(peakBytes / 1_048_576),
    stages: stages.map(({ stage, cpuMs: own }) => `${stage} ${String(round(own / 1_000))}`).join(', '),
  };
}

function report(title: string, rows: readonly object[]): void {
  if (flags.json) console.log(JSON.stringify({ title, rows }));
  else {
    console.log(title);
    console.table(rows);
  }
}

try {
  await mkdir(data);
  await writeText(at('text'), sizeBytes);
  await writeLines(at('lines'), sizeBytes);
  await writeSales(at('sales.csv'), sizeBytes, customers);
  await writeCustomers(at('customers.csv'), customers);
  const wanted = cases.filter(({ name }) => flags.only === undefined || flags.only === name);
  const load = (): string => loadavg().map(round).join(' ');
  const machine = `${cpus()[0]?.model ?? 'unknown'}, ${String(cpus().length)} cores, Node ${process.version}`;
  report('machine', [{ machine, 'MB of input': flags.size, pairs, 'load before': load() }]);
  const inWorker: object[] = [];
  for (const one of wanted) inWorker.push(await throughput(one));
  report('inside one worker, the store set apart', inWorker);
  if (!flags['workers-only']) {
    const command = flags.sources ? commandOfSources() : await commandOfPackage(join(root, 'package'));
    const rows: object[] = [];
    for (const one of wanted) {
      await runCommand(command, one); // Else the first pair alone would make what is kept: compiled code, and templates.
      rows.push(...(await compare(command, one)));
    }
    report('the command, everything included, beside other programs (medians of pairs)', rows);
  }
  report('load', [{ 'load after': load() }]);
} finally {
  await rm(root, { recursive: true });
}
