import { describe, expect, it } from 'vitest';
import { job, read } from '../../../src/dataflow/index.ts';
import { runJob } from '../../../src/dataflow/testing.ts';
import { copyOf, decodeValue, ValueEncoder } from '../../../src/dataflow/value-codec.ts';

const pattern = /(?<user>\w+) (?<ms>\d+)/g;
const lines = ['ann 30, bob 7', 'cy 120', 'no match', 'dee 4, eve 5, fay 6'];

const bin = Object.assign([1, 2], { x0: 0, x1: 10 });
const match = [...'ann 30'.matchAll(pattern)][0];

describe('lists that have more than their items', () => {
  it.each([
    ['a match', match, { 0: 'ann 30', index: 0, input: 'ann 30', groups: { user: 'ann', ms: '30' } }],
    ['an empty one', Object.assign([], { x0: 3 }), { x0: 3 }],
    ['one in a list', [bin], { 0: { x0: 0, x1: 10, length: 2 } }],
    ['one in an object', { bin }, { bin: { x0: 0, x1: 10, 1: 2 } }],
  ])('come to another stage, and are copied, with it: %s', (_, value, expected) => {
    expect(decodeValue(new ValueEncoder().encode(value))).toMatchObject(expected);
    expect(copyOf(value)).toMatchObject(expected);
  });

  it.each([1, 3])('do so in a job of %i tasks a stage', async (tasks) => {
    const times = read.text().flatMap((line) => line.matchAll(pattern));
    const sorted = times
      .sortBy((found) => Number(found.groups?.['ms']))
      .map((found) => found.groups?.['user']);
    const { records } = await runJob(job('x', sorted.write.ndjson()), lines, { tasks, partitions: tasks });
    expect(records).toEqual(['dee', 'eve', 'fay', 'bob', 'ann', 'cy']);
    const later = times.keyBy(() => 1).reduce((a, b) => (a.index > b.index ? a : b));
    const last = later.map(([, found]) => `${found.input}: ${String(found.index)}`);
    const reduced = await runJob(
      job(
        'x',
        last.write.text((text) => text),
      ),
      lines,
      { tasks, partitions: tasks },
    );
    expect(reduced.text).toBe('dee 4, eve 5, fay 6: 14\n');
  });
});
