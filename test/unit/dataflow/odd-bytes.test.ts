import { tmpdir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { job, read } from '../../../src/dataflow/index.ts';
import { describeJob, operatorOf } from '../../../src/dataflow/runtime.ts';
import { runJob } from '../../../src/dataflow/testing.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import type { TaskContext } from '../../../src/worker/operator.ts';
import { sourceInput } from '../../../src/worker/task-input.ts';
import { putSource } from '../../support/worker-fixtures.ts';

const signal = new AbortController().signal;
/** Lines of characters of two to four bytes, one that is Latin-1, and at the end half of a character. */
const body = Buffer.concat([
  Buffer.from('né\n€uro\n😀😀\n'),
  Buffer.from('caf\xe9\n', 'latin1'),
  Buffer.from('end €').subarray(0, -1),
]);

/** What a job that writes each line as it is makes of a file that is cut here. */
async function copied(cut: number) {
  const objects = new MemoryObjectStore();
  const whole = await putSource(objects, { bucket: 'input', key: 'a' }, body);
  const identity = job('x', read.text().write.text());
  const { graph, stages } = describeJob(identity);
  let text = '';
  const counters: Record<string, number> = {};
  for (const segment of [
    { ...whole, end: cut },
    { ...whole, start: cut },
  ]) {
    const input = sourceInput({
      ...{ format: 'text', header: false, onBadRecord: 'fail', segments: [segment] },
      reading: { objects, signal, onBytes: () => undefined },
      meter: new AttemptMeter(new MemoryClock(), signal, () => 0),
    });
    const context = {
      ...{ stage: 'x', task: 0, tasks: 1, partitions: 1, inputs: [input], signal, scratchDir: tmpdir() },
      options: { stage: stages[0]?.name ?? '', graph, partitions: 1 },
      environment: {},
      output: {
        write: (bytes: Uint8Array) => {
          text += Buffer.from(bytes).toString();
        },
      },
      count: (name: string, by: number) => (counters[name] = (counters[name] ?? 0) + by),
    };
    await operatorOf(identity).run(context as unknown as TaskContext);
  }
  return { text, counters };
}

describe('what is no UTF-8', () => {
  it('is U+FFFD in lines of text wherever a file is cut, and such lines are counted', async () => {
    for (let cut = 1; cut < body.length; cut++) {
      expect(await copied(cut), `cut at ${String(cut)}`).toEqual({
        text: 'né\n€uro\n😀😀\ncaf\uFFFD\nend \uFFFD\n',
        counters: { invalidUtf8Lines: 2 },
      });
    }
  });

  it('is counted where a job writes half a character, which NDJSON writes as an escape', async () => {
    const halves = read.text().map((line) => line.slice(0, 3));
    const lines = ['ab😀', 'abc', 'a\uFFFD'];
    const asText = await runJob(job('x', halves.write.text()), lines);
    expect([asText.text, asText.counters]).toEqual(['ab\uFFFD\nabc\na\uFFFD\n', { halfCharacterRecords: 1 }]);
    const cells = halves.map((cell) => ({ cell }));
    const asCsv = await runJob(job('x', cells.write.csv(['cell'])), lines);
    expect(asCsv.counters).toEqual({ halfCharacterRecords: 1 });
    const asJson = await runJob(job('x', cells.write.ndjson()), lines);
    expect([asJson.text.split('\n')[0], asJson.counters]).toEqual(['{"cell":"ab\\ud83d"}', {}]);
  });
});
