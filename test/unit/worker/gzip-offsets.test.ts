import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { sourceInput } from '../../../src/worker/task-input.ts';
import { putSource } from '../../support/worker-fixtures.ts';

const { signal } = new AbortController();

describe('where records of a gzip file begin that is cut', () => {
  it('is told by bytes of its text in the first piece, and by their order alone behind it', async () => {
    const members = ['{"n":1}\n{"n":2}\n', '{"n":3}\n{"n":4}\n', '{"n":5}\n{"n":6}\n'].map((text) =>
      gzipSync(text),
    );
    const objects = new MemoryObjectStore();
    const whole = await putSource(objects, { bucket: 'b', key: 'a.gz' }, Buffer.concat(members), true);
    const cut = members[0]?.length ?? 0;
    const found: [unknown, number][] = [];
    for (const segment of [
      { ...whole, end: cut },
      { ...whole, start: cut },
    ]) {
      const meter = new AttemptMeter(new MemoryClock(), signal, () => 0);
      const reading = { objects, signal, onBytes: () => undefined };
      const form = { format: 'ndjson', header: true, onBadRecord: 'fail' } as const;
      const input = sourceInput({ ...form, segments: [segment], reading, meter });
      for await (const { rows, offsets } of input.located?.() ?? [])
        rows.forEach((row, at) => found.push([row['n'], offsets[at] ?? -1]));
    }
    // The line that begins where a member does is of the piece before.
    expect(found.map(([n]) => n)).toEqual([1, 2, 3, 4, 5, 6]);
    const offsets = found.map(([, offset]) => offset);
    expect(offsets.slice(0, 3)).toEqual([0, 8, 16]);
    expect(offsets).toEqual([...new Set(offsets)].sort((one, other) => one - other));
    expect(offsets[3]).toBeGreaterThan(24);
  });
});
