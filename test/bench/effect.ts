/**
 * What each policy makes of one slow worker, with real processes: word count on an embedded stack with
 * `--inject slow=8x1`, beside the same job left alone, as ratios of runs of one seed. Every output is compared with counts
 * made here.
 *
 * `node test/bench/effect.ts [--seeds 10] [--first 1] [--policies none,late,outrider] [--blocks 12] [--slots 4]
 * [--factor 8] [--json]`
 */
import { createReadStream } from 'node:fs';
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { spawn } from 'node:child_process';
import { type PolicyName, policyNames } from '../../src/contracts/policy-names.ts';
import { type MeasuredStage, predictedSeconds } from './effect-prediction.ts';
import { writeText } from './inputs.ts';
import { commandOfSources } from './measured-command.ts';

const { values: flags } = parseArgs({
  options: {
    seeds: { type: 'string', default: '10' },
    first: { type: 'string', default: '1' },
    policies: { type: 'string', default: 'none,hadoop,late,mantri,dolly,outrider' },
    blocks: { type: 'string', default: '12' },
    slots: { type: 'string', default: '4' },
    factor: { type: 'string', default: '8' },
    json: { type: 'boolean', default: false },
  },
});

const whole = (name: 'seeds' | 'first' | 'blocks' | 'slots'): number => {
  const value = Number(flags[name]);
  if (!Number.isInteger(value) || value < 1)
    throw new Error(`--${name} must be a whole number of at least 1`);
  return value;
};
const [seeds, first, blocks, slots] = [whole('seeds'), whole('first'), whole('blocks'), whole('slots')];
const policies = policyNames.filter((name) => flags.policies.split(',').includes(name));
if (policies.length !== flags.policies.split(',').length)
  throw new Error(`--policies must be some of ${policyNames.join(', ')}`);
/** Of text, which is as many tasks' input as it is written behind itself. */
const blockBytes = 32 << 20;

/** What is read of the command's report. */
interface Report {
  readonly state: string;
  readonly wallMs: number;
  readonly workerSeconds: number;
  readonly stages: readonly MeasuredStage[];
  readonly output: readonly string[];
  readonly attempts: Readonly<Record<string, number>>;
}

/** One run of the job. */
interface Run {
  readonly seed: number;
  readonly policy: PolicyName;
  readonly isInjected: boolean;
  /** From submission to published output. */
  readonly seconds: number;
  readonly workerSeconds: number;
  /** Attempts beyond one of each task. */
  readonly copies: number;
  readonly stages: readonly MeasuredStage[];
}

/** Runs the command to its end, and gives its report. Throws with what it wrote to standard error where it fails. */
async function report(args: readonly string[], cwd: string): Promise<Report> {
  const [program = '', ...words] = commandOfSources();
  const child = spawn(program, [...words, ...args], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let [out, errors] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-4_000)));
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  if (code !== 0) throw new Error(`${args.join(' ')} failed: ${errors}`);
  return JSON.parse(out) as Report;
}

/** Writes the input of a seed, and counts its words. */
async function writeInput(path: string, seed: number): Promise<ReadonlyMap<string, number>> {
  const block = `${path}.block`;
  await writeText(block, blockBytes, `effect:${String(seed)}`);
  const text = (await readFile(block)).subarray(0, blockBytes);
  const lines = text.subarray(0, text.lastIndexOf(0x0a) + 1);
  await rm(block);
  await writeFile(path, '');
  for (let count = 0; count < blocks; count++) await appendFile(path, lines);
  const counts = new Map<string, number>();
  for (const word of lines.toString().split(/\s+/))
    if (word !== '') counts.set(word, (counts.get(word) ?? 0) + blocks);
  return counts;
}

/** Throws where the parts hold anything but these counts, each word once. */
async function check(parts: readonly string[], expected: ReadonlyMap<string, number>): Promise<void> {
  let words = 0;
  for (const part of parts)
    for await (const line of createInterface({ input: createReadStream(part) })) {
      const [word = '', count] = line.split('\t');
      if (expected.get(word) !== Number(count))
        throw new Error(`${part} has "${line}", not what was counted`);
      words += 1;
    }
  if (words !== expected.size)
    throw new Error(`${String(words)} words were put out, ${String(expected.size)} were counted`);
}

const root = await mkdtemp(join(tmpdir(), 'outrider-effect-'));
const input = join(root, 'text');
const runs: Run[] = [];

async function run(
  seed: number,
  policy: PolicyName,
  isInjected: boolean,
  expected: ReadonlyMap<string, number>,
): Promise<void> {
  const output = join(root, 'counts');
  const harm = isInjected ? ['--inject', `slow=${flags.factor}x1,seed=${String(seed)}`] : [];
  const told = await report(
    [
      ...[
        'run',
        'wordcount',
        '--input',
        input,
        '--output',
        output,
        '--policy',
        policy,
        '--slots',
        String(slots),
      ],
      ...['--split-size', String(blockBytes), '--quiet', '--json', ...harm],
    ],
    root,
  );
  await check(told.output, expected);
  await rm(output, { recursive: true });
  const done = { seed, policy, isInjected, seconds: told.wallMs / 1_000, workerSeconds: told.workerSeconds };
  const { backups = 0, restarts = 0, clones = 0 } = told.attempts;
  runs.push({ ...done, copies: backups + restarts + clones, stages: told.stages });
  console.error(JSON.stringify({ ...done, attempts: told.attempts, load: loadavg()[0] }));
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, each) => sum + each, 0) / values.length;
const rounded = (value: number): number => Math.round(value * 1_000) / 1_000;

/** A row of the table: what runs of one kind took, and how that compares with the runs left alone, seed by seed. */
function rowOf(
  name: string,
  some: readonly Run[],
  alone: (seed: number) => readonly Run[],
  foretold: number,
): object {
  const over = (of: (run: Run) => number): number =>
    rounded(mean(some.map((each) => of(each) / mean(alone(each.seed).map(of)))));
  return {
    run: name,
    runs: some.length,
    s: rounded(mean(some.map(({ seconds }) => seconds))),
    'of the time left alone': over(({ seconds }) => seconds),
    'as the simulator foretells': rounded(foretold),
    'worker s': rounded(mean(some.map(({ workerSeconds }) => workerSeconds))),
    'of those left alone': over(({ workerSeconds }) => workerSeconds),
    'copies and kills': rounded(mean(some.map(({ copies }) => copies))),
  };
}

/** The job's stages in the mean of runs. */
const meanStages = (some: readonly Run[]): readonly MeasuredStage[] =>
  (some[0]?.stages ?? []).map(({ name, tasks }, place) => ({
    name,
    tasks,
    workerMs: mean(some.map(({ stages }) => stages[place]?.workerMs ?? 0)),
  }));

async function table(): Promise<object[]> {
  const alone = runs.filter(({ policy, isInjected }) => policy === 'none' && !isInjected);
  const ofSeed = (seed: number): readonly Run[] => alone.filter((each) => each.seed === seed);
  const stages = meanStages(alone);
  const aloneSeconds = await predictedSeconds(stages, { policy: 'none', slots, factor: 1 });
  const kinds = Map.groupBy(
    runs,
    ({ policy, isInjected }) => `${policy}${isInjected ? ', one slow worker' : ''}`,
  );
  const rows: object[] = [];
  for (const [name, some] of kinds) {
    const [{ policy, isInjected } = { policy: 'none' as const, isInjected: false }] = some;
    const terms = { policy, slots, factor: isInjected ? Number(flags.factor) : 1 };
    rows.push(rowOf(name, some, ofSeed, (await predictedSeconds(stages, terms)) / aloneSeconds));
  }
  return rows;
}

try {
  for (let seed = first; seed < first + seeds; seed++) {
    const expected = await writeInput(input, seed);
    if (seed === first) {
      // Makes what is kept: templates, compiled code.
      await run(seed, 'none', false, expected);
      runs.pop();
    }
    // Those that all others are held against come first and last, since what else the machine does changes.
    await run(seed, 'none', false, expected);
    for (const policy of policies) await run(seed, policy, true, expected);
    await run(seed, 'outrider', false, expected);
    await run(seed, 'none', false, expected);
  }
  const machine = `${cpus()[0]?.model ?? 'unknown'}, ${String(cpus().length)} cores, Node ${process.version}`;
  if (flags.json) console.log(JSON.stringify({ machine, load: loadavg(), runs, table: await table() }));
  else {
    console.log(
      `${machine}, load ${loadavg()
        .map((each) => each.toFixed(1))
        .join(' ')}`,
    );
    console.table(await table());
  }
} finally {
  await rm(root, { recursive: true });
}
