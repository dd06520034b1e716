import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { carriedOf } from '../../../src/cli/carried.ts';
import { bundleModule } from '../../../src/cli/job-file/bundle-job.ts';
import { describeBundle } from '../../../src/cli/job-file/describe-bundle.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { SourceFormat } from '../../../src/contracts/job-spec.ts';
import type { Failure } from '../../../src/contracts/records.ts';
import { putSource } from '../../support/worker-fixtures.ts';
import { type StageOfTest, WorkerOfTest } from '../../support/worker-stage.ts';

interface Ran {
  readonly worker: WorkerOfTest;
  readonly outcome: string;
  readonly failure: Failure | undefined;
  readonly counters: Readonly<Record<string, number>> | undefined;
}

/** Runs the first stage of a job file, bundled, in a worker, over one object `in/data`. */
async function runFirstStage(
  program: string,
  text: string,
  {
    format = 'text',
    number = 0,
    onBadRecord = 'fail',
  }: { format?: SourceFormat; number?: number; onBadRecord?: 'fail' | 'skip' } = {},
): Promise<Ran> {
  const directory = await mkdtemp(join(tmpdir(), 'outrider-bundle-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, 'my job.ts');
  await writeFile(file, program);
  const bundle = carriedOf(await bundleModule(file, 'job'));
  const { stages, graph } = await describeBundle(bundle.bytes, 'my job.ts');
  const worker = new WorkerOfTest();
  await worker.objects.write({ bucket: 'code', key: 'job.mjs' }, bundle.bytes);
  const segment = await putSource(worker.objects, { bucket: 'input', key: 'in/7-data' }, Buffer.from(text));
  const stage: StageOfTest = {
    run: () => Promise.reject(new Error('user code runs elsewhere')),
    code: { s3: 's3://code/job.mjs', sha256: bundle.sha256 },
    options: { stage: stages[0]?.name ?? '', graph, partitions: 2 },
    inputs: [{ planned: { kind: 'source', format, header: true, onBadRecord }, segments: [segment] }],
  };
  const outcome = await worker.run(stage, number);
  const attempt = await worker.attempt(attemptIdOf('work', 0, number));
  return { worker, outcome, failure: attempt?.failure, counters: (await worker.results())[0]?.counters };
}

const head = "import { job, read } from 'outrider';\n";

describe('a function of a job that throws', () => {
  it.each<[SourceFormat, string, string]>([
    ['text', 'read.text().map((line) => line)', 'a\nb\nc\nd\n'],
    ['ndjson', 'read.ndjson<{ n: string }>().map(({ n }) => n)', '{"n":"a"}\n\n{"n":"c"}\n{"n":"d"}\n'],
    ['csv', 'read.csv({ columns: ["n"] }).map(({ n }) => n)', 'n\na\nc\nd\n'],
  ])('is told with its file and line, and the place of its record in %s', async (format, source, text) => {
    const program = `${head}
const fail = (text: string): string => {
  if (text === 'c') throw new TypeError('no c, please');
  return text;
};
export default job('x', ${source}.filter((text) => text !== '').map((text) => fail(text)).write.text());`;
    const { failure } = await runFirstStage(program, text, { format });
    expect(failure?.cause).toBe('user-code');
    expect(failure?.message).toMatch(
      /^TypeError: no c, please \(at fail \(my job\.ts:4:27\), (<anonymous> \()?my job\.ts:7:\d+\)?\); at s3:\/\/input\/in\/7-data:3$/,
    );
  });

  it('may throw anything, and say much', async () => {
    const { failure } = await runFirstStage(
      `${head}export default job('x', read.text().map((): string => { throw 'x'.repeat(5_000); }).write.text());`,
      'a\n',
    );
    expect(failure?.message).toMatch(/^x{500,}…; at s3:\/\/input\/in\/7-data:1$/);
    expect(failure?.message.length).toBeLessThanOrEqual(1_000);
  });

  it('is told with no more than its files where it fails when it is loaded on a worker', async () => {
    const { failure } = await runFirstStage(
      `${head}
if (process.cwd().includes('operator')) throw new Error('not here');
export default job('x', read.text().write.text());`,
      'a\n',
    );
    expect(failure?.message).toMatch(/^not here \(at (<anonymous> \()?my job\.ts:3:47\)?\)/);
  });

  it('is told that the graph is another on the worker', async () => {
    const { failure } = await runFirstStage(
      `${head}
const lines = read.text();
const isWorker = process.cwd().includes('operator');
export default job('x', (isWorker ? lines : lines.map((line) => line)).write.text());`,
      'a\n',
    );
    expect(failure).toMatchObject({
      cause: 'bad-input',
      message: expect.stringMatching(/another graph here/),
    });
  });
});

it('leaves out records for which a function throws where bad ones are to be skipped, beside those that cannot be read', async () => {
  const program = `${head}
export default job('x', read.ndjson<{ word: string }>().map(({ word }) => word.toUpperCase()).write.text());`;
  const text = '{"word":"a"}\nno json\n{"word":1}\n{"word":"b"}\n';
  const { worker, outcome, counters } = await runFirstStage(program, text, {
    format: 'ndjson',
    onBadRecord: 'skip',
  });
  expect([outcome, counters]).toEqual(['done', { skippedRecords: 2 }]);
  const final = (await worker.results())[0]?.final;
  expect(final?.kind === 'inline' ? Buffer.from(final.body).toString() : final).toBe('A\nB\n');
  expect(worker.logged).toContain('user-output');
});

it('tells a function of its attempt, its record’s place, and takes its counters and its progress', async () => {
  const program = `${head}
export default job('x', read.text().map((line, context) => {
  const { input, stage, task, attempt, scratchDir } = context;
  context.count('lines');
  context.progress(0.5);
  context.log.warn('seen', { line });
  return [line, input?.name, input?.key, input?.offset, stage, task, attempt, scratchDir === process.cwd()].join(' ');
}).write.text());`;
  const { worker, outcome, counters, failure } = await runFirstStage(program, 'ab\nc\n', { number: 2 });
  expect({ outcome, failure }).toEqual({ outcome: 'done', failure: undefined });
  expect(counters).toEqual({ lines: 2 });
  expect(worker.logged).toContain('user-output');
  const [result] = await worker.results();
  const final = result?.final;
  expect(final?.kind === 'inline' ? Buffer.from(final.body).toString() : final).toBe(
    'ab 7-data in/7-data 0 work 0 2 true\nc 7-data in/7-data 3 work 0 2 true\n',
  );
  expect(result?.progress).toMatchObject({ bytesRead: 5, bytesTotal: 5 });
});

it('sends its worker a bounded number of messages however often a function tells its progress', async () => {
  const program = `import { Socket } from 'node:net';
${head}
export default job('x', read.text().map((line, { progress, count }) => {
  const write = Socket.prototype.write;
  Socket.prototype.write = function (...given) { count('writes'); return write.apply(this, given); };
  for (let step = 0; step < 200_000; step++) progress(step / 200_000);
  Socket.prototype.write = write;
  return line;
}).write.text());`;
  const { outcome, counters } = await runFirstStage(program, 'a\n');
  expect(outcome).toBe('done');
  // Two for each message.
  expect(counters?.['writes']).toBeGreaterThan(0);
  expect(counters?.['writes']).toBeLessThanOrEqual(20_000);
});

describe('where bad records are to be skipped', () => {
  it.each([
    [
      'counts under too many names',
      '(line, context) => { context.count(`line ${line}`); return line; }',
      'user-code',
      /^count\("line 100", …\): a task may count under at most 100 names/,
    ],
    [
      'tells a progress that is none',
      '(line, context) => { context.progress(Number(line)); return line; }',
      'user-code',
      /^progress must be a number from 0 to 1/,
    ],
    [
      'has no memory for one',
      "(line) => line === '7' ? String(new ArrayBuffer(2 ** 52).byteLength) : line",
      'out-of-memory',
      /^RangeError: Array buffer allocation failed/,
    ],
  ])('a task fails whose function %s', async (_, map, cause, message) => {
    const program = `${head}export default job('x', read.text().map(${map}).write.text());`;
    const text = Array.from({ length: 150 }, (_each, number) => `${String(number)}\n`).join('');
    const { outcome, failure } = await runFirstStage(program, text, { onBadRecord: 'skip' });
    expect([outcome, failure?.cause]).toEqual(['failed', cause]);
    expect(failure?.message).toMatch(message);
  });
});
