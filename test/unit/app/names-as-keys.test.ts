import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { coreutils } from '../../support/coreutils.ts';
import { MemoryHost } from '../../support/memory-host.ts';

/** Names that every object has something under. Of a stage only the first is allowed. */
const columns = ['constructor', '__proto__', 'toString', 'hasOwnProperty'] as const;
const policies = ['none', 'dolly', 'mantri', 'late', 'outrider'] as const;
const rows = Array.from({ length: 60 }, (_, index) =>
  [index % 3, index % 4, index % 5, index].map((n) => `v${n}`),
);
const csv = Buffer.from([columns, ...rows].map((row) => `${row.join(',')}\n`).join(''));
const ndjson = Buffer.from(
  rows.map((row) => `{${columns.map((name, at) => `"${name}":"${row[at] ?? ''}"`).join(',')}}\n`).join(''),
);

/** `value count` by column, from cut, sort and uniq. */
const counted = (column: number): string[] => {
  const values = coreutils('cut', ['-d,', `-f${column + 1}`], csv)
    .toString()
    .split('\n')
    .slice(1);
  return coreutils('uniq', ['-c'], coreutils('sort', [], Buffer.from(values.join('\n'))))
    .toString()
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
};

const source = (uri: string, format: 'csv' | 'ndjson') => ({
  s3: [uri],
  format,
  splitBytes: format === 'csv' ? 1e6 : 500,
});

/** Counts under names that are awkward as keys, and passes its lines on. */
const countingBundle = `export default {
  check() {},
  async run({ inputs, output, count }) {
    for (const input of inputs) for await (const batch of input.records()) for (const { key } of batch) {
      for (const name of ${JSON.stringify(columns)}) count(name, 1);
      await output.emit(key, new Uint8Array());
    }
  },
};`;

describe.each(policies)('under %s, names that objects have inherited', (policy) => {
  it.each(columns.flatMap((column, at) => [[column, at, 'csv'] as const, [column, at, 'ndjson'] as const]))(
    'group rows by column %s (%i) of %s in a stage named constructor',
    async (column, at, format) => {
      const host = new MemoryHost({ totalSlots: 400 });
      const uri = await host.put('in/rows', format === 'csv' ? csv : ndjson);
      const options = { key: [column], aggregates: [{ op: 'count', as: 'n' }] };
      const { job, output } = await host.run({
        name: 'keys',
        policy,
        stages: [
          {
            name: 'constructor',
            operator: 'groupby-map',
            options,
            inputs: [source(uri, format)],
            partitions: 2,
          },
          {
            name: 'reduce',
            operator: 'groupby-reduce',
            options,
            inputs: [{ stage: 'constructor', pattern: 'all-to-all' }],
          },
        ],
      });
      expect(job.error).toBeUndefined();
      const lines = output.toString().split('\n').slice(0, -1);
      const expected = counted(at).map((line) => {
        const [count = '', value = ''] = line.split(' ');
        return `{"${column}":"${value}","n":${count}}`;
      });
      expect(lines.toSorted()).toEqual(expected.toSorted());
      expect(job.stages.map(({ name, done, tasks }) => [name, done === tasks])).toEqual([
        ['constructor', true],
        ['reduce', true],
      ]);
      if (policy === 'dolly' && format === 'csv') expect(job.attempts.clones).toBeGreaterThan(0);
    },
  );

  it('are counters like any other', async () => {
    const host = new MemoryHost({ totalSlots: 400 });
    const uri = await host.put('in/rows', csv);
    const s3 = await host.put('code/count.mjs', Buffer.from(countingBundle));
    const code = { s3, sha256: createHash('sha256').update(countingBundle).digest('hex') };
    const { job } = await host.run({
      name: 'keys',
      policy,
      stages: [
        { name: 'constructor', code, inputs: [{ s3: [uri], splitBytes: 200 }], partitions: 2 },
        { name: 'count', code, inputs: [{ stage: 'constructor', pattern: 'all-to-all' }] },
      ],
    });
    expect(job.error).toBeUndefined();
    // Each of 61 lines is counted in both stages.
    expect(Object.entries(job.counters).toSorted()).toEqual(columns.map((name) => [name, 122]).toSorted());
  });

  it('join two sides by such a column', async () => {
    const host = new MemoryHost({ totalSlots: 400 });
    const left = await host.put('in/left', Buffer.from('__proto__,constructor\na,1\nb,2\nc,3\n'));
    const right = await host.put(
      'in/right',
      Buffer.from('{"__proto__":"a","toString":7}\n{"__proto__":"c","constructor":8}\n'),
    );
    const key = { key: '__proto__' };
    const { job, output } = await host.run({
      name: 'keys',
      policy,
      stages: [
        {
          name: 'constructor',
          operator: 'join-map',
          options: key,
          inputs: [source(left, 'csv')],
          partitions: 2,
        },
        {
          name: 'right',
          operator: 'join-map',
          options: key,
          inputs: [source(right, 'ndjson')],
          partitions: 2,
        },
        {
          name: 'join',
          operator: 'join-reduce',
          options: { leftKey: '__proto__', rightKey: '__proto__', output: 'ndjson' },
          inputs: [
            { stage: 'constructor', pattern: 'all-to-all' },
            { stage: 'right', pattern: 'all-to-all' },
          ],
        },
      ],
    });
    expect(job.error).toBeUndefined();
    expect(output.toString().split('\n').toSorted()).toEqual([
      '',
      '{"__proto__":"a","constructor":"1","toString":7}',
      '{"__proto__":"c","constructor":"3","constructor_right":8}',
    ]);
  });
});
