import { describe, expect, it } from 'vitest';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import type { Ill } from '../support/hard-process.ts';
import { type HardEnd, hardRun, wrongWith } from '../support/hard-runs.ts';

const records = 700;
const rest = 'z'.repeat(1_500);
const input = `one two three ${rest}\n`.repeat(records);
const linesOf = (text: string): string[] => text.split('\n').slice(0, -1).toSorted();
const expected = ['one', 'three', 'two', rest].map((word) => `${word}\t${String(records)}`);

/** What may befall a call of a worker that has little time: for short, and for longer than it has. */
const ills: readonly Omit<Ill, 'call'>[] = [
  { kind: 'slow', ms: 120_000 },
  { kind: 'late', ms: 60_000 },
  { kind: 'lost', ms: 0 },
  { kind: 'failed', ms: 0 },
  { kind: 'repeated', ms: 0 },
  { kind: 'twin', ms: 60_000 },
  { kind: 'freeze-before', ms: 90_000 },
  { kind: 'freeze-after', ms: 90_000 },
  { kind: 'dies', ms: 0 },
];

/**
 * A word count of one task that takes several workers' lives, each of which hands on what it has done, on Lambda alone; the
 * same befalls the `call`-th call of a worker each time.
 */
const handedOver = (befalls: Readonly<Record<string, readonly Ill[]>> = {}): Promise<HardEnd> =>
  hardRun({
    spec: {
      ...builtinJob('wordcount', { inputs: ['s3://input/a'], splitBytes: 10_000_000, partitions: 2 }),
      policy: 'none',
    },
    ...{ input, ills: befalls, taskMs: 500, blockMs: 20_000, workerMs: 100_000, deathToldMs: 500 },
  });

function wrongWithTask(end: HardEnd): string[] {
  const [stage] = end.verdict?.job.stages ?? [];
  return [
    ...wrongWith(end, (output) => linesOf(output).join() === expected.join()),
    ...(stage?.recordsIn === records ? [] : [`read ${String(stage?.recordsIn)} records`]),
    ...(stage?.bytesIn === input.length ? [] : [`read ${String(stage?.bytesIn)} bytes`]),
    ...(end.verdict?.unexplained ?? []),
  ];
}

describe('a task that outlasts its workers, each of which hands on what it has done', () => {
  it('needs several of them', async () => {
    const end = await handedOver();
    expect(wrongWithTask(end)).toEqual([]);
    const ofTask = end.verdict?.launched.filter(({ attemptId }) => attemptId.startsWith('tokenize/0/')) ?? [];
    expect(ofTask.length).toBeGreaterThanOrEqual(4);
  });

  it.each([
    ['the first', 'tokenize/0/0 1'],
    ['one that took up the work of another', 'tokenize/0/1 1'],
  ])(
    'is done exactly whatever befalls any call of %s, reports excepted',
    async (_which, who) => {
      const all = (await handedOver()).places.get(who) ?? [];
      const calls = all.flatMap((place, at) => (/attempts\.(report|orders)/.test(place) ? [] : [at + 1]));
      const seen = new Set(calls.map((call) => all[call - 1]));
      for (const place of [
        'attempts.claim',
        'objects.read',
        'objects.write',
        'attempts.end',
        'attempts.tell',
      ])
        expect([...seen]).toContain(place);
      for (const [turn, call] of calls.entries()) {
        // What hands on meets with all of them, any other with one.
        const isHandingOn = ['objects.write', 'attempts.end'].includes(all[call - 1] ?? '');
        for (const [kind, ill] of ills.entries()) {
          if (!isHandingOn && kind !== turn % ills.length) continue;
          const end = await handedOver({ [who]: [{ ...ill, call }] });
          expect({ ill, place: all[call - 1], wrong: wrongWithTask(end) }).toEqual({
            ill,
            place: all[call - 1],
            wrong: [],
          });
        }
      }
    },
    300_000,
  );
});
