import { describe, expect, it } from 'vitest';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import { ndjsonCells } from '../../../src/worker/ndjson-rows.ts';

const lines = [
  '\ufeff{"a":1,"b":"x"}',
  '',
  '{"b":"\\u0061","a":[1, 2]}',
  ' {"a" : "é"}\r',
  '{"a":1e3,"b":null,"c":{"a":5}}',
];
const all = ['1|"x"', '[1,2]|"a"', '"é"|', '1000|null'];

/** The cells of columns a and b in pieces of a file that begin at these places. */
async function cellsOf(text: Buffer, starts: readonly number[], policy: 'fail' | 'skip' = 'fail') {
  const objects = new MemoryObjectStore();
  const ref = { bucket: 'bucket', key: 'file' };
  await objects.write(ref, text);
  const etag = (await objects.head(ref))?.etag ?? '';
  const reading = { objects, signal: new AbortController().signal, onBytes: () => undefined };
  const found: string[] = [];
  let skipped = 0;
  const onSkip = (): void => {
    skipped++;
  };
  for (const [at, start] of starts.entries()) {
    const end = starts[at + 1] ?? text.length;
    const segment = { ...ref, etag, sizeBytes: text.length, start, end, gzip: false };
    for await (const cells of ndjsonCells(reading, segment, { bad: { policy, onSkip }, columns: ['a', 'b'] }))
      for (let record = 0; record < cells.count; record++)
        found.push(
          [0, 1]
            .map((column) => 2 * record + column)
            .map((place) => cells.bytes.toString('utf8', cells.starts[place], cells.ends[place]))
            .join('|'),
        );
  }
  return { found, skipped };
}

describe('the cells of NDJSON', () => {
  const text = Buffer.from(lines.join('\n'));

  it('are found once each wherever the file is cut', async () => {
    for (let cut = 1; cut < text.length; cut++)
      expect((await cellsOf(text, [0, cut])).found, `cut at ${String(cut)}`).toEqual(all);
  });

  it('are not those of bad records, which are told with their places or left out', async () => {
    const bad = Buffer.from('{"a":1}\n{"a":1,}\n{"a":2}\nnull\n{"a":1e999}\n{"a":3}\n');
    await expect(cellsOf(bad, [0])).rejects.toThrow(/^file:2: not valid JSON: .*\(byte 8\)$/);
    expect(await cellsOf(bad, [0], 'skip')).toEqual({ found: ['1|', '2|', '3|'], skipped: 3 });
    const broken = Buffer.concat([
      Buffer.from('{"a":1}\n{"a":"'),
      Buffer.of(0xff),
      Buffer.from('"}\n{"a":2}'),
    ]);
    await expect(cellsOf(broken, [0])).rejects.toThrow('file:2: not valid UTF-8');
    expect(await cellsOf(broken, [0], 'skip')).toEqual({ found: ['1|', '2|'], skipped: 1 });
  });
});
