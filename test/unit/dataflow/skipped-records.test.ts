import { expect, it } from 'vitest';
import { job, read } from '../../../src/dataflow/index.ts';
import { runJob } from '../../../src/dataflow/testing.ts';

it('a record is left out that gives a length which is none, though V8 says the same of lists that outgrow memory', async () => {
  const lists = read
    .ndjson<{ n: number }>({ onBadRecord: 'skip' })
    .map(({ n }) => new Array<number>(n).fill(n));
  const { text, counters } = await runJob(job('x', lists.write.ndjson()), [{ n: 1 }, { n: -1 }, { n: 2 }]);
  expect([text, counters]).toEqual(['[1]\n[2,2]\n', { skippedRecords: 1 }]);
});
