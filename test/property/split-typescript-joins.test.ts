import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { prepareJobFile } from '../../src/cli/job-file/prepare-job-file.ts';
import type { UncheckedJob } from '../../src/cli/prepare-inputs.ts';
import { specOnHost } from '../support/carried-code.ts';
import type { HostedJob } from '../support/memory-host.ts';
import { isWhole } from '../support/draws.ts';
import { MemoryHost } from '../support/memory-host.ts';

/** Whatever is larger than others is split, and however little that saves. */
const split = { factor: 1, leastGainMs: 0, mostParts: 5 };

/** Pairs, and in two more stages how many there are of each left-hand row, and the greatest three. */
const jobFile = (how: 'inner' | 'left', rest: string): string => `
import { job, read } from 'outrider';
const left = read.ndjson({ input: 'left' }).keyBy((row) => row.k);
const right = read.ndjson({ input: 'right' }).keyBy((row) => row.k);
const pairs = left.join(right, { how: '${how}' }).map(([k, [l, r]]) => [k, l.v, r === undefined ? null : r.w]);
export default job('joined', ${rest});
`;
const ends = {
  'as pairs': 'pairs.write.ndjson()',
  'counted in another stage':
    'pairs.map(([k, v]) => [v, 1]).keyBy(([v]) => v).reduce(([v, a], [, b]) => [v, a + b]).map(([, pair]) => pair).write.ndjson()',
  'as the greatest three': 'pairs.top(3, ([, v, w]) => [v, w]).write.ndjson()',
} as const;

interface Row {
  readonly k: string;
  readonly v?: string;
  readonly w?: string;
}

const arbKey = fc.oneof(
  { weight: 6, arbitrary: fc.constant('hot') },
  { weight: 3, arbitrary: fc.constantFrom('a', 'b', 'c', 'é', '') },
);
const arbRows = (name: 'v' | 'w', most: number): fc.Arbitrary<readonly Row[]> =>
  fc
    .array(fc.tuple(arbKey, fc.constantFrom('x', 'z'.repeat(90))), { maxLength: most })
    .map((rows) =>
      rows.map(([k, text], row): Row => ({ k, [name]: `${String(row).padStart(2, '0')} ${text}` })),
    );
const arbCase = fc.record({
  left: arbRows('v', 50),
  right: arbRows('w', 20),
  leftFiles: fc.integer({ min: 1, max: 5 }),
  rightFiles: fc.integer({ min: 1, max: 5 }),
  partitions: fc.integer({ min: 2, max: 4 }),
});
type Case = typeof arbCase extends fc.Arbitrary<infer One> ? One : never;

/** Drawn first, since few draws may split nothing: either side is the larger one, and lies in several files. */
const heavy = (left: number, right: number): Case => ({
  left: Array.from({ length: left }, (_, row) => ({
    k: row % 9 === 8 ? 'a' : 'hot',
    v: `${String(row + 10)} z`,
  })),
  right: Array.from({ length: right }, (_, row) => ({
    k: 'hot',
    w: `${String(row + 10)} ${'x'.repeat(200)}`,
  })),
  leftFiles: 5,
  rightFiles: 4,
  partitions: 3,
});

/** What SQLite makes of it: an oracle that shares no code with ours. */
function expected(how: 'inner' | 'left', end: keyof typeof ends, { left, right }: Case): unknown[][] {
  const db = new DatabaseSync(':memory:');
  db.exec('create table l (k text, v text); create table r (k text, w text)');
  for (const { k, v = '' } of left) db.prepare('insert into l values (?, ?)').run(k, v);
  for (const { k, w = '' } of right) db.prepare('insert into r values (?, ?)').run(k, w);
  const pairs = `from l ${how} join r using (k)`;
  const rows = db
    .prepare(
      end === 'counted in another stage'
        ? `select v, count(*) ${pairs} group by v`
        : `select k, v, w ${pairs}${end === 'as pairs' ? '' : ' order by v desc, w desc limit 3'}`,
    )
    .all();
  db.close();
  return rows.map((row) => Object.values(row));
}

const inOrder = (rows: readonly unknown[]): string[] => rows.map((row) => JSON.stringify(row)).toSorted();
const rowsOf = (output: Buffer): unknown[] =>
  output
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line): unknown => JSON.parse(line));

async function filesOf(host: MemoryHost, side: string, rows: readonly Row[], count: number): Promise<string> {
  for (let file = 0; file < count; file++) {
    const lines = rows.filter((_, at) => at % count === file).map((row) => `${JSON.stringify(row)}\n`);
    await host.put(`${side}/${String(file)}`, Buffer.from(lines.join('')));
  }
  return `s3://input/${side}/`;
}

describe('a join of a TypeScript job whose heavy partitions are split', () => {
  let directory: string;
  const prepared = new Map<string, UncheckedJob>();
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'outrider-joins-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function jobOf(how: 'inner' | 'left', end: keyof typeof ends): Promise<UncheckedJob> {
    const name = `${how} ${end}.mjs`;
    await writeFile(join(directory, name), jobFile(how, ends[end]));
    const options = { input: ['left=s3://input/left/', 'right=s3://input/right/'], header: true };
    const job = prepared.get(name) ?? (await prepareJobFile(name, options, { cwd: directory, inputs: 's3' }));
    prepared.set(name, job);
    return job;
  }

  async function run(host: MemoryHost, prepared: UncheckedJob, partitions: number): Promise<HostedJob> {
    const spec = await specOnHost(host, prepared);
    const stages = spec.stages.map((stage) => ({
      ...stage,
      inputs: stage.inputs.map((input) => ('s3' in input ? { ...input, splitBytes: 300 } : input)),
      ...(stage.partitions === undefined ? {} : { partitions }),
    }));
    return host.run({ ...spec, stages, policy: 'none', policyConfig: { split } });
  }

  describe.each(['inner', 'left'] as const)('%s', (how) => {
    it.each(Object.keys(ends) as (keyof typeof ends)[])('has the rows that SQLite finds, %s', async (end) => {
      const job = await jobOf(how, end);
      let added = 0;
      await fc.assert(
        fc.asyncProperty(arbCase, async (one) => {
          const host = new MemoryHost({ totalSlots: 20 });
          await filesOf(host, 'left', one.left, one.leftFiles);
          await filesOf(host, 'right', one.right, one.rightFiles);
          const { job: ended, output } = await run(host, job, one.partitions);
          expect(ended.error).toBeUndefined();
          added += (ended.stages.find(({ name }) => name === 'join')?.tasks ?? 0) - one.partitions;
          expect(inOrder(rowsOf(output))).toEqual(inOrder(expected(how, end, one)));
        }),
        { numRuns: isWhole ? 3 : 2, examples: [[heavy(50, 2)], [heavy(12, 20)]] },
      );
      expect(added).toBeGreaterThan(0);
    });
  });
});
