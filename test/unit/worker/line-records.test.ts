import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import { attemptDataKey } from '../../../src/contracts/keys.ts';
import { exec } from '../../../src/operators/exec.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import { collect, latin1, recordsOf } from '../../support/worker-fixtures.ts';
import { WorkerOfTest } from '../../support/worker-stage.ts';

const mib = 1024 * 1024;
const sortMemoryBytes = 40 * mib;
const kinds = ['unsorted', 'sorted'] as const;

/** The records that a stage gives which writes text. */
async function recordsOfText(
  output: (typeof kinds)[number],
  write: (output: TaskContext['output']) => Promise<void>,
): Promise<Awaited<ReturnType<typeof recordsOf>>> {
  const worker = new WorkerOfTest();
  const run = (context: TaskContext): Promise<void> => write(context.output);
  expect(await worker.run({ run, output }, 0, { sortMemoryBytes })).toBe('done');
  const key = attemptDataKey(worker.jobId, attemptIdOf('work', 0, 0));
  return recordsOf(Buffer.concat(await collect(worker.objects.read({ bucket: worker.dataBucket, key }))));
}

describe.each(kinds)('text that a stage with %s output writes', (output) => {
  it('ends where a record has no end within what one may have, and tells so', async () => {
    const worker = new WorkerOfTest();
    const piece = Buffer.alloc(mib, 'x');
    let written = 0;
    const run = async ({ output: to }: TaskContext): Promise<void> => {
      for (; written < 80; written++) await to.write(piece);
    };
    expect(await worker.run({ run, output }, 0, { sortMemoryBytes })).toBe('failed');
    expect(written).toBe(64);
    expect((await worker.attempt(attemptIdOf('work', 0, 0)))?.failure).toEqual({
      cause: 'bad-input',
      message: 'a record has at least 68157440 bytes; the most is 67108864',
    });
  });

  it('may come byte by byte, in lines of any length', async () => {
    const lines = ['', 'a', 'b\tc', 'd'.repeat(300), 'e'.repeat(70_000), 'f\t', 'g\t\t', 'h'];
    const records = await recordsOfText(output, async (to) => {
      for (const byte of latin1(lines.join('\n'))) await to.write(Buffer.of(byte));
    });
    expect(records).toEqual([
      ['', ''],
      ['a', ''],
      ['b', 'c'],
      ['d'.repeat(300), ''],
      ['e'.repeat(70_000), ''],
      // Where lines are put together by key, it is the key of "f" as well.
      [output === 'sorted' ? 'f' : 'f\t', ''],
      ['g', '\t'],
      ['h', ''],
    ]);
  });
});

it('a line may be as long as any record', async () => {
  // With a TAB, which is of neither key nor value.
  const half = Buffer.alloc(32 * mib, 'x');
  const records = await recordsOfText('unsorted', async (to) => {
    for (const piece of ['a\nk', half.subarray(1), '\t', half, '\nz\t', 'y'])
      await to.write(Buffer.from(piece));
  });
  expect(records.map(([key, value]) => [key.length, value.length])).toEqual([
    [1, 0],
    [32 * mib, 32 * mib],
    [1, 1],
  ]);
});

it('a program that writes no line end is ended at the longest record that there may be', async () => {
  const worker = new WorkerOfTest();
  const stage = {
    options: { command: ['sh', '-c', "yes | tr -d '\\n'"] },
    run: (context: TaskContext) => exec.run(context),
    output: 'unsorted' as const,
  };
  expect(await worker.run(stage, 0, { sortMemoryBytes })).toBe('failed');
  expect((await worker.attempt(attemptIdOf('work', 0, 0)))?.failure).toMatchObject({
    cause: 'bad-input',
    message: expect.stringMatching(/^a record has at least \d+ bytes; the most is 67108864$/) as string,
  });
});
