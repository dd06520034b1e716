import { describe, expect, it } from 'vitest';
import { job, read } from '../../../src/dataflow/index.ts';
import { runJob } from '../../../src/dataflow/testing.ts';

describe.each([
  { tasks: 1, partitions: 1 },
  { tasks: 2, partitions: 3 },
])('on $tasks tasks and $partitions partitions', (options) => {
  it.each([false, true])('joins pairs whose values are of their own (broadcast: %s)', async (broadcast) => {
    interface Side {
      k: string;
      list: number[];
      at: Date;
    }
    const of = (input: string) =>
      read.ndjson<{ k: string; n: number }>({ input }).map(({ k, n }): Side => ({
        k,
        list: [n],
        at: new Date(n),
      }));
    const nested = read
      .ndjson<{ k: string; n: number }>({ input: 'plain' })
      .map(({ k, n }) => ({ k, of: { n } }));
    const rows = of('left')
      .keyBy(({ k }) => [k, 1])
      .join(
        of('right').keyBy(({ k }) => [k, 1]),
        { broadcast },
      )
      .map(([key, [left, right]]) => {
        const seen = [...key, ...left.list, ...right.list, left.at.getTime(), right.at.getTime()].join();
        left.list.push(0);
        right.list.push(0);
        left.at.setTime(-1);
        right.at.setTime(-1);
        (key as unknown as number[])[1] = 2;
        return { k: left.k, seen };
      })
      .keyBy(({ k }) => k)
      .join(
        nested.keyBy(({ k }) => k),
        { broadcast },
      )
      .map(([, [{ seen }, plain]]) => `${seen},${String(plain.of.n++)}`);
    const sides = (...numbers: number[]) => numbers.map((n) => ({ k: 'a', n }));
    const inputs = { left: sides(1, 2), right: sides(10, 20), plain: sides(5) };
    const { text } = await runJob(job('pairs', rows.write.text()), inputs, options);
    expect(text.trimEnd().split('\n').sort()).toEqual([
      'a,1,1,10,1,10,5',
      'a,1,1,20,1,20,5',
      'a,1,2,10,2,10,5',
      'a,1,2,20,2,20,5',
    ]);
  });

  it('gives what cannot be copied to each pair of a broadcast join as it is', async () => {
    class Own {
      readonly #n: number;
      constructor(n: number) {
        this.#n = n;
      }
      get n(): number {
        return this.#n;
      }
    }
    const rows = read
      .ndjson<{ n: number }>({ input: 'left' })
      .map(({ n }) => ({ own: new Own(n), self: {} }))
      .map((record) => {
        record.self = record;
        return record;
      })
      .keyBy(() => 'all')
      .join(
        read.ndjson<{ n: number }>({ input: 'right' }).keyBy(() => 'all'),
        { broadcast: true },
      )
      .map(([, [left, right]]) => left.own.n + right.n);
    const inputs = { left: [{ n: 1 }, { n: 2 }], right: [{ n: 10 }, { n: 20 }] };
    const { records } = await runJob(job('pairs', rows.write.ndjson()), inputs, options);
    expect([...records].sort()).toEqual([11, 12, 21, 22]);
  });
});
