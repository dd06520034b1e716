import { deflateRawSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeShardItem, encodeResult } from '../../../src/adapters/aws/attempt-item.ts';
import type { Item } from '../../../src/adapters/aws/dynamo-table.ts';
import { attemptIdOf, type JobId, taskIdOf } from '../../../src/contracts/ids.ts';
import type { TaskResult } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';

const space = { jobId: 'job-0123456789ab' as JobId, shards: 1 };
const result: TaskResult = {
  ...{ taskId: taskIdOf('map', 0), attemptId: attemptIdOf('map', 0, 0), committedAt: epochMs(1_000) },
  ...{ bytesIn: 1, bytesOut: 0, recordsIn: 1, recordsOut: 0, counters: {} },
};
const spoilt = (set: Item): Item => ({ ...encodeResult(space, result), ...set });
const deflated = (text: string): Uint8Array => new Uint8Array(deflateRawSync(text));
const plainFinal = (text: string): Uint8Array =>
  new Uint8Array(Buffer.concat([Buffer.from('{"kind":"plain"}\n'), deflateRawSync(text)]));
const namesOf = (count: number, name: (index: number) => string): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), -1.2345678901234567e-300]));

describe('a result that a session wrote past the bounds of workers cannot be read', () => {
  it.each<[string, Item, RegExp]>([
    [
      'counters that inflate to sixty megabytes of lists',
      { counters: deflated(`{"a":[${'[],'.repeat(20_000_000)}[]]}`) },
      /65536 bytes/,
    ],
    ['a counter of a name of a megabyte', { counters: deflated(`{"${'a'.repeat(1e6)}":1}`) }, /65536 bytes/],
    [
      'a counter of a name of 101 characters',
      { counters: `{"${'a'.repeat(101)}":1}` },
      /counters must be at most 100, with names of at most 100 characters/,
    ],
    ['no counters', { counters: 'null' }, /counters must be finite numbers by name$/],
    ['counters in a list', { counters: deflated('[1]') }, /counters must be finite numbers by name$/],
    ['101 counters', { counters: JSON.stringify(namesOf(101, String)) }, /counters must be at most 100/],
    [
      'parts that inflate to sixty megabytes',
      { final: plainFinal(`{"kind":"empty","parts":[${'[],'.repeat(20_000_000)}[]]}`) },
      /4194304 bytes/,
    ],
  ])('%s', (_, set, why) => {
    const decoded = decodeShardItem(spoilt(set));
    expect(decoded).toMatchObject({
      kind: 'unreadable',
      unreadable: { kind: 'result', taskId: 'map/0', why: expect.stringMatching(why) as unknown },
    });
  });
});

it.each<[string, TaskResult]>([
  [
    'a hundred counters of a hundred characters, three bytes each',
    { ...result, counters: namesOf(100, (index) => String(index).padEnd(100, 'ह')) },
  ],
  [
    'a hundred counters of a hundred characters that JSON escapes',
    { ...result, counters: namesOf(100, (index) => String(index).padEnd(100, '"\\')) },
  ],
  [
    'a hundred counters and those of the system',
    {
      ...result,
      counters: { ...namesOf(100, String), skippedRecords: 1, invalidUtf8Lines: 2, halfCharacterRecords: 3 },
    },
  ],
  ['a counter of a name that later releases refuse', { ...result, counters: { '': 1, 'a\nb': 2 } }],
  [
    'ten thousand parts with etags of their own kind',
    {
      ...result,
      final: {
        ...{ kind: 'upload', uploadId: 'u'.repeat(1_000), sizeBytes: 5 },
        parts: Array.from({ length: 10_000 }, (_, index) => ({
          number: index + 1,
          etag: `"${String(index).padStart(128, '0')}-1"`,
        })),
      },
    },
  ],
])('a result with %s is read as it was written', (_, written) => {
  expect(decodeShardItem(encodeResult(space, written))).toEqual({ kind: 'result', result: written });
});
