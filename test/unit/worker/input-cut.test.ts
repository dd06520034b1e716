import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import type { SourceSegment } from '../../../src/contracts/plan.ts';
import { AttemptMeter } from '../../../src/worker/attempt-meter.ts';
import { InputCut, type InputPlace } from '../../../src/worker/input-cut.ts';
import type { SourceFormat } from '../../../src/contracts/job-spec.ts';
import type { TaskInput } from '../../../src/worker/operator.ts';
import { sourceInput } from '../../../src/worker/task-input.ts';
import { putSource } from '../../support/worker-fixtures.ts';

/** A worker's reading of some segments, which may be cut. */
class Reader {
  readonly objects = new MemoryObjectStore();
  readonly meter = new AttemptMeter(new MemoryClock(), new AbortController().signal, () => 0);

  /** Each text as a file, cut in segments at the given bytes. */
  async put(texts: readonly string[], cutsAt: readonly number[]): Promise<SourceSegment[]> {
    const segments: SourceSegment[] = [];
    for (const [index, text] of texts.entries()) {
      const whole = await putSource(
        this.objects,
        { bucket: 'b', key: `f${String(index)}` },
        Buffer.from(text),
      );
      const places = [0, ...cutsAt.filter((at) => at > 0 && at < whole.end), whole.end];
      const ends = [...new Set(places)].sort((left, right) => left - right);
      ends.slice(1).forEach((end, place) => segments.push({ ...whole, start: ends[place] ?? 0, end }));
      if (ends.length === 1) segments.push(whole);
    }
    return segments;
  }

  open(segments: readonly SourceSegment[], format: SourceFormat, cut?: InputCut): TaskInput {
    const { objects, meter } = this;
    const reach = cut?.watch(0, segments, () => true);
    const reading = { objects, signal: new AbortController().signal, onBytes: () => undefined, reach };
    const form = {
      format,
      header: true,
      onBadRecord: 'fail',
      ...(format === 'csv' ? { multiline: false } : {}),
    };
    return sourceInput({ ...form, onBadRecord: 'fail', segments, reading, meter });
  }
}

/** What is left from a place on. */
function restOf(segments: readonly SourceSegment[], { segment, offset }: InputPlace): SourceSegment[] {
  return segments
    .slice(segment)
    .map((each, place) => (place === 0 && offset !== undefined ? { ...each, start: offset } : each));
}

/** Takes everything of a stream, and has it cut once so many items have come. */
async function taken<T>(stream: AsyncIterable<T>, cut?: InputCut, after = 0): Promise<T[]> {
  const items: T[] = [];
  if (after === 0) cut?.request();
  for await (const item of stream) {
    items.push(item);
    if (items.length === after) cut?.request();
  }
  return items;
}

const lineLengths = fc.array(
  fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 60_000, max: 300_000 })),
  {
    maxLength: 14,
  },
);
const arbFile = fc.record({
  lengths: lineLengths,
  end: fc.constantFrom('\n', '\r\n'),
  isOpen: fc.boolean(),
});
type FileOfTest = typeof arbFile extends fc.Arbitrary<infer T> ? T : never;

/** Lines that differ, the last of which may lack its end. */
const textOf = (
  { lengths, end, isOpen }: FileOfTest,
  lineOf: (index: number, length: number) => string,
): string => {
  const text = lengths.map((length, index) => lineOf(index, length) + end).join('');
  return isOpen ? text.slice(0, Math.max(0, text.length - end.length)) : text;
};

const arbWhere = fc.record({
  cutsAt: fc.array(fc.integer({ min: 1, max: 900_000 }), { maxLength: 3 }),
  after: fc.integer({ min: 0, max: 12 }),
});

describe('an input that is cut', () => {
  it('gives, with its rest, the very bytes of one that is not, whatever its lines and wherever it is cut', async () => {
    let within = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(arbFile, { minLength: 1, maxLength: 3 }),
        arbWhere,
        async (files, { cutsAt, after }) => {
          const reader = new Reader();
          const texts = files.map((file) =>
            textOf(file, (index, length) => `${String(index)}${'x'.repeat(length)}`),
          );
          const segments = await reader.put(texts, cutsAt);
          const cut = new InputCut();
          const before = await taken(reader.open(segments, 'text', cut).blocks(), cut, after);
          const place = cut.rest()?.get(0) ?? { segment: segments.length };
          if (place.offset !== undefined) within++;
          const rest = restOf(segments, place);
          const behind = await taken(reader.open(rest, 'text').blocks());
          const bytes = Buffer.concat([...before, ...behind].map((block) => block.bytes));
          expect(bytes.equals(Buffer.from(texts.join('')))).toBe(true);
          const restBytes = rest.reduce((sum, { start, end }) => sum + end - start, 0);
          expect(cut.rest() === undefined ? 0 : restBytes + cut.bytesBefore).toBe(
            cut.rest() === undefined ? 0 : texts.join('').length,
          );
        },
      ),
      { numRuns: 120, seed: 7 },
    );
    expect(within).toBeGreaterThan(10);
  });

  it.each(['ndjson', 'csv'] as const)(
    'gives, with its rest, the very rows of one that is not: %s',
    async (format) => {
      let within = 0;
      const row = (index: number, length: number): string =>
        format === 'csv'
          ? `${String(index)},${'y'.repeat(length)}`
          : JSON.stringify({ id: index, text: 'y'.repeat(length) });
      await fc.assert(
        fc.asyncProperty(
          fc.array(arbFile, { minLength: 1, maxLength: 2 }),
          arbWhere,
          async (files, { cutsAt, after }) => {
            const reader = new Reader();
            const head = (end: string): string => (format === 'csv' ? `id,text${end}` : '');
            const texts = files.map((file) => head(file.end) + textOf(file, row));
            const segments = await reader.put(texts, cutsAt);
            const whole = (await taken(reader.open(segments, format).rows())).flat();
            const cut = new InputCut();
            const before = (await taken(reader.open(segments, format, cut).rows(), cut, after)).flat();
            const place = cut.rest()?.get(0) ?? { segment: segments.length };
            if (place.offset !== undefined) within++;
            const rest = (await taken(reader.open(restOf(segments, place), format).rows())).flat();
            expect([...before, ...rest]).toEqual(whole);
            expect(whole.length).toBe(files.reduce((sum, { lengths }) => sum + lengths.length, 0));
          },
        ),
        { numRuns: 60, seed: 11 },
      );
      expect(within).toBeGreaterThan(5);
    },
  );

  it('ends no second pass before what a first one has handed out', async () => {
    const reader = new Reader();
    const segments = await reader.put(['a'.repeat(299_999).concat('\n').repeat(4)], []);
    const cut = new InputCut();
    const input = reader.open(segments, 'text', cut);
    let first = 0;
    for await (const block of input.blocks()) {
      first += block.bytes.length;
      if (first >= 900_000) break; // As where rows turn out to need a closer look.
    }
    cut.request();
    const second = await taken(input.blocks());
    expect(second.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBe(900_000);
    expect(cut.rest()).toEqual(new Map([[0, { segment: 0, offset: 900_000 }]]));
    expect(cut.bytesBefore).toBe(900_000);
  });

  it('has nothing left where it was read to its end, or was not asked for more: nobody has cut that', async () => {
    const reader = new Reader();
    const segments = await reader.put(['one\n', 'two\n'], []);
    const read = new InputCut();
    await taken(reader.open(segments, 'text', read).blocks());
    read.request();
    expect(read.rest()).toBeUndefined();
    const unread = new InputCut();
    reader.open(segments, 'text', unread);
    expect(unread.rest()).toBeUndefined();
    unread.request();
    expect(unread.rest()).toBeUndefined();
    const left = new InputCut();
    for await (const block of reader.open(segments, 'text', left).blocks())
      if (block.offset === 0) {
        left.request();
        break;
      }
    expect([left.rest(), left.hasLeftAny]).toEqual([undefined, true]);
  });

  it('is left whole where it was asked for when all was to end, and says that it ended early', async () => {
    const reader = new Reader();
    const segments = await reader.put(['one\n', 'two\n'], []);
    const cut = new InputCut();
    const input = reader.open(segments, 'text', cut);
    expect(input.endedEarly?.()).toBe(false);
    expect(await taken(input.blocks(), cut)).toEqual([]);
    expect(cut.rest()).toEqual(new Map([[0, { segment: 0 }]]));
    expect([cut.bytesBefore, cut.hasLeftAny, input.endedEarly?.()]).toEqual([0, false, true]);
  });
});
