import { expect, it } from 'vitest';
import { job, read } from '../../../src/dataflow/index.ts';
import { runJob } from '../../../src/dataflow/testing.ts';

it('reads lines of Windows as those of Unix, and leaves other carriage returns where they are', async () => {
  const lengths = read.text().map((line) => [line, line.length] as const);
  const lines = ['/Cart\r', '/Cart', '\r', 'a\rb\r\r', ''];
  const { records } = await runJob(job('x', lengths.write.ndjson()), lines, { tasks: 1 });
  expect(records).toEqual([
    ['/Cart', 5],
    ['/Cart', 5],
    ['', 0],
    ['a\rb\r', 4],
    ['', 0],
  ]);
});
