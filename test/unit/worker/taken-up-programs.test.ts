import { describe, expect, it } from 'vitest';
import { exec } from '../../../src/operators/exec.ts';
import { operators } from '../../../src/operators/registry.ts';
import { frameOf } from '../../../src/worker/framing.ts';
import { InterruptedWorker, inputBucket, savedBy } from '../../support/interrupted-worker.ts';
import { putSource } from '../../support/worker-fixtures.ts';
import type { StageOfTest } from '../../support/worker-stage.ts';

/** Blocks of input hold at least a quarter of a megabyte: so long are lines that lie in one each. */
const padding = 'x'.repeat(270_000);
const words = ['bee', 'ant', 'cat', 'bee', 'ant', 'dog', 'bee', 'cat', 'ant'];
const lines = words.map((word, index) => `${word} ${String(index)} ${padding}`);
/** Neither file ends its last line. */
const texts = [lines.slice(0, 5).join('\n'), lines.slice(5).join('\n')];

type Stage = Omit<StageOfTest, 'run'>;
async function stageOf(
  worker: InterruptedWorker,
  command: readonly string[],
  stage: Pick<Stage, 'output' | 'partitions'>,
  resumes = true,
): Promise<Stage> {
  const segments = [];
  for (const [index, text] of texts.entries())
    segments.push(
      await putSource(worker.objects, { bucket: inputBucket, key: `f${String(index)}` }, Buffer.from(text)),
    );
  const planned = { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const;
  return { ...stage, options: { command: [...command], resumes }, inputs: [{ planned, segments }] };
}

/** What comes of a program where the first attempt is interrupted while it reads line number `at`, if it is. */
async function outcomeOf(
  command: readonly string[],
  given: Pick<Stage, 'output' | 'partitions'>,
  at?: number,
): Promise<object> {
  const worker = new InterruptedWorker();
  const stage = await stageOf(worker, command, given);
  let saved;
  if (at !== undefined) {
    const first = await worker.interrupt({ operator: exec, stage }, 0, {
      afterBytes: at * padding.length + 1,
    });
    expect(first.failure?.message).toMatch(/^Spot needs its place; it hands on the \d+ % of its input/);
    saved = savedBy(first);
  }
  const last = await worker.interrupt({ operator: exec, stage }, at === undefined ? 0 : 1, { saved });
  expect(last).toMatchObject({ state: 'done' });
  expect(last.progress?.takenUp?.attempt).toBe(at === undefined ? undefined : 0);
  return { ...(await worker.outcome()), recordsOut: last.progress?.recordsOut };
}

describe('a program that is said to treat its lines one by one', () => {
  it.each<[string, readonly string[], Pick<Stage, 'output' | 'partitions'>]>([
    ['sed', ['sed', 's/^/> /; s/xx*//'], { output: 'final' }],
    // What it does not change it hands through, an end of a line that lacks included.
    ['tr', ['tr', 'a-w', 'A-W'], { output: 'final' }],
    ['sed, to records by key', ['sed', 's/ /\\t/; s/ xx*//'], { output: 'sorted', partitions: 2 }],
    ['cut, to records', ['cut', '-c', '1-5'], { output: 'unsorted' }],
  ])('gives the same bytes wherever its task is cut: %s', async (_, command, stage) => {
    const whole = await outcomeOf(command, stage);
    expect(whole).toMatchObject({ recordsIn: 9, recordsOut: 9 });
    for (let at = 0; at < lines.length - 1; at++)
      expect(await outcomeOf(command, stage, at), String(at)).toEqual(whole);
  });

  it('has not failed where it does not bear that its input ends early', async () => {
    const command = ['sh', '-c', 'grep -o "^dog [0-9]" || { echo no dog >&2; exit 1; }'];
    const worker = new InterruptedWorker();
    const stage = await stageOf(worker, command, { output: 'final' });
    const first = await worker.interrupt({ operator: exec, stage }, 0, { afterBytes: 2 * padding.length });
    expect(first.failure).toEqual({ cause: 'interrupted', message: 'Spot needs its place' });
    expect(first.saved).toBeUndefined();
    expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
    expect(worker.whys).toEqual([
      'not-handed-on: what it had done is not handed on: sh ended with code 1: no dog',
    ]);
    await worker.interrupt({ operator: exec, stage }, 1);
    expect((await worker.outcome()).body).toBe('dog 5\n');
  });

  it('hands on nothing where nobody says so', async () => {
    const worker = new InterruptedWorker();
    const stage = await stageOf(worker, ['cut', '-c', '1-5'], { output: 'final' }, false);
    const first = await worker.interrupt({ operator: exec, stage }, 0, { afterBytes: 2 * padding.length });
    expect(first.failure?.message).toBe('Spot needs its place');
    expect(first.saved).toBeUndefined();
    expect(worker.whys).toEqual([
      'not-handed-on: what it had done is not handed on, since its code or stage does not say "resumes": true',
    ]);
  });

  it.each([
    ['a program', exec, {}],
    ['grep', operators.grep, { options: { pattern: 'b' } }],
    ['tokenize', operators.tokenize, { options: {}, output: 'sorted' as const }],
  ])(
    'hands on nothing where it reads another stage besides, and would again: %s',
    async (_, operator, more) => {
      const worker = new InterruptedWorker();
      const { inputs = [], ...own } = await stageOf(worker, ['cut', '-c', '1-5'], { output: 'final' });
      const stage = { ...own, ...more };
      const planned = { kind: 'stage', stage: 'other', pattern: 'broadcast', producerTasks: 1 } as const;
      const segment = await worker.putData('other', 0, frameOf(Buffer.from('a line'), Buffer.alloc(0)));
      const both = [...inputs, { planned: { ...planned, producerPartitions: 1 }, segments: [segment] }];
      const first = await worker.interrupt({ operator, stage: { ...stage, inputs: both } }, 0, {
        afterBytes: 2 * padding.length,
      });
      expect(first.failure?.message).toBe('Spot needs its place');
      expect(first.saved).toBeUndefined();
      expect(worker.whys).toEqual([]);
    },
  );

  it('is asked for with true or false alone', () => {
    expect(() => {
      exec.check({ command: ['cat'], resumes: 'yes' });
    }).toThrow('options.resumes must be true or false');
  });
});
