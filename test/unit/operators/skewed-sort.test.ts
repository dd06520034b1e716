import { describe, expect, it } from 'vitest';
import { builtinJob } from '../../../src/operators/builtin-jobs.ts';
import { operators } from '../../../src/operators/registry.ts';
import { coreutils } from '../../support/coreutils.ts';
import { recordsOf, runJob, runTask, seeded, sourceOf } from '../../support/operator-bench.ts';

/** So many different lines, none of them one that is repeated. */
const others = (count: number): string[] =>
  Array.from({ length: count }, (_, at) => String((at * 7_919) % 100_003).padStart(7, '0'));
const repeated = (line: string, count: number): string[] => Array.from({ length: count }, () => line);

/** The lines in an order that is none. */
function shuffled(lines: readonly string[]): string[] {
  const random = seeded(5);
  return lines
    .map((line) => [random(), line] as const)
    .sort(([left], [right]) => left - right)
    .map(([, line]) => line);
}

/** The parts that a sort makes of these lines; checks them against coreutils. */
async function sorted(lines: readonly string[], partitions: number): Promise<readonly Buffer[]> {
  const text = Buffer.from(`${lines.join('\n')}\n`);
  const job = builtinJob('sort', { inputs: ['s3://bucket/text'], splitBytes: 8_000, partitions });
  const parts = await runJob(job, { 's3://bucket/text': text });
  expect(Buffer.concat(parts).equals(coreutils('sort', [], text))).toBe(true);
  return parts;
}

/** Bytes of the largest part over those of the mean one. */
const heaviest = (parts: readonly Buffer[]): number => {
  const sizes = parts.map(({ length }) => length);
  return (Math.max(...sizes) * sizes.length) / sizes.reduce((sum, size) => sum + size, 0);
};

describe('a sort of lines that are repeated very often', () => {
  it.each([
    ['one that is six of ten lines', [...others(4_000), ...repeated('0050000', 6_000)]],
    ['nine of ten', [...others(1_000), ...repeated('0050000', 9_000)]],
    ['the first of all', [...others(4_000), ...repeated('', 6_000)]],
    ['the last of all', [...others(4_000), ...repeated('9', 6_000)]],
    [
      'three, one the start of another',
      [
        ...others(1_000),
        ...repeated('0050000', 3_000),
        ...repeated('00500000', 3_000),
        ...repeated('0099999', 3_000),
      ],
    ],
    ['a single one', repeated('same', 10_000)],
    ['one that is a fifth, less than a partition', [...others(8_000), ...repeated('0050000', 2_000)]],
  ])('gives every task about as much to do: %s', async (_, lines) => {
    for (const partitions of [2, 4, 7]) {
      const parts = await sorted(shuffled(lines), partitions);
      expect(parts).toHaveLength(partitions);
      expect(heaviest(parts)).toBeLessThan(1.25);
    }
  });

  it('sends the same lines of a task to the same partitions each time, so that what is lost can be made again', async () => {
    const bounds = (
      await runTask(operators.bounds, { partitions: 4 }, [
        recordsOf(
          'stage',
          repeated('same', 100).map((key) => ({ key: Buffer.from(key), value: Buffer.alloc(0) })),
          seeded(3),
        ),
      ])
    ).records;
    const partitionsOf = async (task: number): Promise<readonly (readonly number[])[]> => {
      const runs = [1, 2].map(async (seed) => {
        const text = Buffer.from(`${repeated('same', 50).join('\n')}\n`);
        const inputs = [sourceOf(text, seeded(seed)), recordsOf('stage', bounds, seeded(seed))];
        const { collector } = await runTask(operators['range-partition'], {}, inputs, {
          partitions: 4,
          task,
        });
        return collector.records.map(({ partition }) => partition);
      });
      return Promise.all(runs);
    };
    const [first, again] = await partitionsOf(0);
    expect(first).toEqual(again);
    expect(new Set(first)).toEqual(new Set([0, 1, 2, 3]));
    // Tasks that have few of them do not all begin with the same partition.
    const begins = await Promise.all(
      [0, 1, 2, 3, 4, 5].map(async (task) => (await partitionsOf(task))[0]?.[0]),
    );
    expect(new Set(begins).size).toBeGreaterThan(2);
  });
});
