import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { bundleModule } from '../../../src/cli/job-file/bundle-job.ts';
import { describeBundle } from '../../../src/cli/job-file/describe-bundle.ts';
import { carriedOf } from '../../../src/cli/carried.ts';
import { attemptDataKey } from '../../../src/contracts/keys.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { InterruptedWorker, inputBucket, type Outcome, savedBy } from '../../support/interrupted-worker.ts';
import { putSource } from '../../support/worker-fixtures.ts';
import type { StageOfTest } from '../../support/worker-stage.ts';

/** Two files of 1.2 MB each, the second without an end of its last line: some forty blocks. Smaller ones are read at once. */
const lines = Array.from(
  { length: 60_000 },
  (_, line) => `word${String(line % 977)} in one of many lines, of number ${String(line)}`,
);
const texts = [`${lines.slice(0, 30_000).join('\n')}\n`, lines.slice(30_000).join('\n')];
const totalBytes = texts.join('').length;

interface Code {
  readonly source: string | Uint8Array;
  readonly stage: Omit<StageOfTest, 'run' | 'inputs' | 'code'>;
}

/** A stage of user code over the files. */
async function stageOf(
  worker: InterruptedWorker,
  { source, stage }: Code,
): Promise<{ readonly stage: Omit<StageOfTest, 'run'> }> {
  const bytes = Buffer.from(source);
  await worker.objects.write({ bucket: 'code', key: 'job.mjs' }, bytes);
  const segments: SourceSegment[] = [];
  for (const [index, text] of texts.entries())
    segments.push(
      await putSource(worker.objects, { bucket: inputBucket, key: `f${String(index)}` }, Buffer.from(text)),
    );
  const planned = { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const;
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return {
    stage: { ...stage, code: { s3: 's3://code/job.mjs', sha256 }, inputs: [{ planned, segments }] },
  };
}

/** An operator of one's own: `run` sees `context` and each line of its input as `line`. */
const perLine = (body: string, { before = '', after = '', more = 'resumes: true,' } = {}): string => `
export default {
  check() {}, ${more}
  async run(context) {
    const { inputs, output, kept, keep } = context;
    ${before}
    for (const input of inputs)
      for await (const { bytes } of input.blocks())
        for (const line of bytes.toString().replace(/\\n$/, '').split('\\n')) { ${body} }
    ${after}
  },
};`;
const countingWords = "context.count('lines', 1); await output.emit(Buffer.from(line.split(' ')[0]), one);";
const combining = `resumes: true,
  combiner: () => (left, right) => { const sum = Buffer.alloc(4); sum.writeInt32BE(left.readInt32BE() + right.readInt32BE()); return sum; },`;

const codes: Readonly<Record<string, Code>> = {
  'a combiner of its own': {
    source: perLine(countingWords, {
      before: 'const one = Buffer.from([0, 0, 0, 1]);',
      more: combining,
    }),
    stage: { output: 'sorted', partitions: 3 },
  },
  'records by key': {
    source: perLine("await output.emit(Buffer.from(line.split(' ')[0]), Buffer.from(line.slice(-5)));"),
    stage: { output: 'sorted', partitions: 2 },
  },
  'numbers of lines, which it keeps': {
    source: perLine("await output.emit(Buffer.from(String(number++)), Buffer.from(line.split(' ')[0]));", {
      before: 'let number = kept?.number ?? 0;',
      after: 'keep({ number });',
    }),
    stage: { output: 'unsorted' },
  },
  'text of the final stage': {
    source: perLine(
      "if (line.endsWith('7')) { context.count('sevens', 1); await output.write(Buffer.from(line + '\\n')); }",
    ),
    stage: { output: 'final' },
  },
};

async function unbroken(code: Code): Promise<Outcome & { readonly recordsOut: unknown }> {
  const worker = new InterruptedWorker();
  const last = await worker.interrupt(await stageOf(worker, code), 0);
  expect(last.state).toBe('done');
  return { ...(await worker.outcome()), recordsOut: last.progress?.recordsOut };
}

const codeOf = (name: string): Code => {
  const code = codes[name];
  if (code === undefined) throw new Error(name);
  return code;
};

describe('a task of code that says that it can be gone on with', () => {
  it.each(Object.keys(codes))('is gone on with by the next attempts: %s', async (name) => {
    const code = codeOf(name);
    const whole = await unbroken(code);
    const worker = new InterruptedWorker();
    const stage = await stageOf(worker, code);
    const first = await worker.interrupt(stage, 0, { afterBytes: 700_000 });
    const done = first.saved?.bytesDone ?? 0;
    expect(done).toBeGreaterThan(600_000);
    expect(first.failure).toMatchObject({
      cause: 'interrupted',
      message: `Spot needs its place; it hands on the ${String(Math.floor((100 * done) / totalBytes))} % of its input that it has done`,
    });
    expect((await worker.leftovers()).uploads).toEqual([]);
    const second = await worker.interrupt(stage, 1, { afterBytes: 600_000, saved: savedBy(first) });
    const doneThen = second.saved?.bytesDone ?? 0;
    expect(doneThen).toBeGreaterThan(done + 500_000);
    const last = await worker.interrupt(stage, 2, { saved: savedBy(second) });
    expect(last).toMatchObject({
      state: 'done',
      progress: {
        bytesRead: totalBytes - doneThen,
        bytesTotal: totalBytes - doneThen,
        takenUp: { attempt: 1, bytes: doneThen },
      },
    });
    expect({ ...(await worker.outcome()), recordsOut: last.progress?.recordsOut }).toEqual(whole);
  });

  it('is so of a job whose functions keep nothing', async () => {
    const program = `import { job, read } from 'outrider';
export default job('x', read.text().filter((line) => line.endsWith('3')).keyBy((line) => line.slice(0, 5)).join(
  read.text({ input: 'other' }).keyBy((line) => line)).write.ndjson(), { resumes: true });`;
    const directory = await mkdtemp(join(tmpdir(), 'outrider-taken-up-'));
    onTestFinished(() => rm(directory, { recursive: true }));
    await writeFile(join(directory, 'job.ts'), program);
    const bundle = carriedOf(await bundleModule(join(directory, 'job.ts'), 'job'));
    const { stages, graph } = await describeBundle(bundle.bytes, 'job.ts');
    const options = { stage: stages[0]?.name ?? '', graph, partitions: 2 };
    const code: Code = { source: bundle.bytes, stage: { output: 'sorted', partitions: 2, options } };
    const worker = new InterruptedWorker();
    const stage = await stageOf(worker, code);
    const first = await worker.interrupt(stage, 0, { afterBytes: 1_500_000 });
    expect(first.saved?.bytesDone).toBeGreaterThan(1_400_000);
    const last = await worker.interrupt(stage, 1, { saved: savedBy(first) });
    expect(last.progress?.takenUp?.attempt).toBe(0);
    expect(await worker.outcome()).toEqual(
      await unbroken(code).then(({ recordsOut, ...whole }) => {
        expect(recordsOut).toBe(6_000);
        return whole;
      }),
    );
  });

  it('counts a line of text once that an attempt has left without its end', async () => {
    const code: Code = {
      source: perLine("await output.write(Buffer.from('+'));"),
      stage: { output: 'final' },
    };
    const whole = await unbroken(code);
    expect(whole).toMatchObject({ body: expect.stringMatching(/^\+{60000}$/) as string, recordsOut: 1 });
    const worker = new InterruptedWorker();
    const stage = await stageOf(worker, code);
    const first = await worker.interrupt(stage, 0, { afterBytes: 300_000 });
    const last = await worker.interrupt(stage, 1, { saved: savedBy(first) });
    expect(last.progress).toMatchObject({ takenUp: { attempt: 0 }, recordsOut: 1 });
    expect(await worker.outcome()).toMatchObject({ body: whole.body });
  });
});

describe('a task of code that cannot be gone on with', () => {
  it.each<[string, string, string, string?]>([
    [
      'it does not say so',
      perLine("await output.write(Buffer.from(line + '\\n'));", { more: '' }),
      'sorted',
      'not-handed-on: what it had done is not handed on, since its code or stage does not say "resumes": true',
    ],
    [
      'what it keeps is too much',
      perLine('', { after: "keep({ much: ['x'.repeat(5_000_000)] });" }),
      'sorted',
      'not-handed-on: what it had done is not handed on: its operator keeps more than can be handed on',
    ],
    [
      'it has sent its part to where only Finish completes it',
      perLine("await output.write(Buffer.from((line + '\\n').repeat(40)));"),
      'final',
    ],
  ])('hands on nothing, leaves nothing and is begun anew where %s', async (_, source, output, why) => {
    const code: Code = {
      source,
      stage: { output: output as 'sorted' | 'final', partitions: output === 'final' ? 1 : 2 },
    };
    const worker = new InterruptedWorker();
    const stage = await stageOf(worker, code);
    const first = await worker.interrupt(stage, 0, { afterBytes: 600_000 });
    expect(first).toMatchObject({ state: 'failed', failure: { cause: 'interrupted' } });
    expect(first.failure?.message).toMatch(/^Spot needs its place/);
    expect(first.saved).toBeUndefined();
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
    expect(worker.whys).toEqual(why === undefined ? [] : [why]);
    const second = await worker.interrupt(stage, 1);
    expect(second).toMatchObject({ state: 'done', progress: { bytesRead: totalBytes } });
  });

  it('begins at the begin where what was handed on is damaged, and has not failed', async () => {
    for (const name of ['a combiner of its own', 'text of the final stage']) {
      const code = codeOf(name);
      const worker = new InterruptedWorker();
      const stage = await stageOf(worker, code);
      const first = await worker.interrupt(stage, 0, { afterBytes: 800_000 });
      const ref = { bucket: worker.dataBucket, key: attemptDataKey(worker.jobId, first.attemptId) };
      const body = Buffer.from(await worker.objects.readAll(ref));
      const last = (first.saved?.dataBytes ?? 0) - 2;
      body.writeUInt8(body.readUInt8(last) ^ 4, last);
      await worker.objects.write(ref, body);
      const second = await worker.interrupt(stage, 1, { saved: savedBy(first) });
      expect(second).toMatchObject({ state: 'done', progress: { bytesRead: totalBytes } });
      expect(second.progress?.takenUp).toBeUndefined();
      const { recordsOut, ...whole } = await unbroken(code);
      expect([await worker.outcome(), second.progress?.recordsOut]).toEqual([whole, recordsOut]);
      expect(worker.whys.join()).toMatch(/^not-taken-up: it begins at the begin/);
    }
  });

  it('is done where it has left its input before anything ended early', async () => {
    const source = `export default { check() {}, resumes: true, async run({ inputs: [input], output }) {
      let blocks = 0;
      for await (const { bytes } of input.blocks()) {
        await output.write(bytes.subarray(0, 6));
        if (++blocks === 4) break;
      }
    } };`;
    const worker = new InterruptedWorker();
    const stage = await stageOf(worker, { source, stage: { output: 'final' } });
    const first = await worker.interrupt(stage, 0, { afterBytes: 200_000 });
    expect(first.state).toBe('done');
    expect((await worker.outcome()).body).toMatch(/^(word\d.){4}$/);
  });
});
