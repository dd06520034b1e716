import { InvalidInputError } from '../contracts/errors.ts';
import type { SourceFormat } from '../contracts/job-spec.ts';
import { uriOf } from '../contracts/keys.ts';
import { skippedRecords } from '../contracts/own-counters.ts';
import { codecOf, type SourceSegment } from '../contracts/plan.ts';
import { metered } from './attempt-meter.ts';
import type { AttemptMeter } from './attempt-meter.ts';
import { csvBlocks } from './csv-blocks.ts';
import { columnsBefore, type CsvForm, CsvProblem, csvRows } from './csv-rows.ts';
import { lineNameAt } from './line-number.ts';
import { ndjsonCells, ndjsonHead, ndjsonRows } from './ndjson-rows.ts';
import type { BadRecords } from './ndjson-rows.ts';
import type {
  CsvBlock,
  JsonCells,
  KeyValue,
  LineBlock,
  Row,
  SourceFile,
  SourcePiece,
  TaskInput,
} from './operator.ts';
import { PartHeaders } from './part-header.ts';
import type { UpstreamSegment } from './upstream-segment.ts';
import { ReadAhead } from './read-ahead.ts';
import { locatedRows } from './row-places.ts';
import { sourceBlocks } from './source-blocks.ts';
import { rangeOf, type SourceReading } from './object-ranges.ts';
import { planSample, sampledBlocks, unreadBytes } from './sampled-blocks.ts';
import { headRecords, linesInOrder, recordsInOrder, recordsInTurn } from './stage-records.ts';
import type { MergeReading } from './stage-records.ts';

const newline = 10;
const tab = 9;
const noValue = Buffer.alloc(0);
const batchRecords = 1_000;

export interface SourceInputOptions {
  readonly format: SourceFormat;
  readonly header: boolean;
  readonly onBadRecord: 'fail' | 'skip';
  /** Csv: whether quoted fields may hold line ends, as they may where it is left out; segments are whole files then. */
  readonly multiline?: boolean;
  readonly segments: readonly SourceSegment[];
  /** Csv with a header and Parquet: the begin of the first object of all tasks' segments. */
  readonly first?: SourceSegment | undefined;
  readonly reading: SourceReading;
  readonly meter: AttemptMeter;
}

/** An input from S3 objects. `rows` throws `InvalidInputError` where the format is text. */
export function sourceInput(options: SourceInputOptions): TaskInput {
  const { format, segments, reading, meter } = options;
  const streamOf = streams(options);
  const blocks = (stream: SourceStream): AsyncIterable<LineBlock> =>
    inTurn(stream.reading, segments, sourceBlocks);
  const rows = (): AsyncIterable<readonly Row[]> => {
    const stream = streamOf();
    const rowsOf = (one: SourceReading, segment: SourceSegment): AsyncIterable<readonly Row[]> => {
      if (format === 'ndjson') return ndjsonRows(one, segment, stream.bad);
      if (format === 'csv') return inForm(stream, one, segment, (form) => csvRows(one, segment, form));
      throw new InvalidInputError(
        'the operator reads rows: its input must have the format "ndjson" or "csv"',
      );
    };
    return stream.metered(inTurn(stream.reading, segments, rowsOf), (batch) => batch.length);
  };
  return {
    kind: 'source',
    format,
    ...(options.onBadRecord === 'skip'
      ? {
          onBadValue: () => {
            meter.count(skippedRecords, 1);
          },
        }
      : {}),
    objects: segments.map(pieceOf),
    blocks: () => {
      const stream = streamOf();
      return stream.metered(blocks(stream), (block) => lineCount(block.bytes));
    },
    sampled: (places) => {
      const sample = planSample(segments, places);
      // What is not read is no work: progress must still come to its end.
      meter.bytesTotal -= unreadBytes(segments, sample);
      const sampled = sampledBlocks(reading, segments, sample);
      return metered(
        tallied(sampled, (block) => lineCount(block.bytes), into(meter)),
        meter,
      );
    },
    records: () => {
      const stream = streamOf();
      return stream.metered(linesAsRecords(blocks(stream)), (batch) => batch.length);
    },
    rows,
    located: () => locatedRows(rows()),
    ...(reading.reach === undefined ? {} : { endedEarly: () => reading.reach?.endedEarly === true }),
    placeAt: async (file, offset) => {
      const segment = segments.find(({ key }) => key === file);
      if (segment === undefined) return `${file}, byte ${String(offset)}`;
      return lineNameAt(reading, segment, { file: uriOf(segment), offset });
    },
    ...(format === 'parquet' ? { files: segments.map((one) => fileOf(streamOf().reading, one)) } : {}),
    ...(format === 'ndjson' ? { cells: (columns) => cellsOf(segments, streamOf(), columns) } : {}),
    ...(format === 'csv' ? { csv: (key, needed) => csvOf(options, streamOf(), { key, needed }) } : {}),
    ...ofFirst(options, streamOf),
  };
}

/** One way through the records of an input. */
interface SourceStream {
  readonly reading: SourceReading;
  readonly bad: BadRecords;
  /** How the CSV of a segment is read. */
  readonly formOf: (reading: SourceReading, segment: SourceSegment) => Promise<CsvForm>;
  /** Counts the records of what is read, and the time that it takes. */
  readonly metered: <T>(items: AsyncIterable<T>, countOf: (item: T) => number) => AsyncIterable<T>;
}

/**
 * Streams of one input. Whoever reads it again, since one way of working it out did not do, has read it once all the same: of bytes, records
 * and what is skipped each stream counts what goes beyond those before it.
 */
function streams(options: SourceInputOptions): () => SourceStream {
  const { header, multiline, onBadRecord, reading, segments, meter } = options;
  const asRead = { header, ...(multiline === undefined ? {} : { multiline }) };
  const headers = new PartHeaders(asRead);
  const expected = new Map(segments.map((segment) => [segment, segment.end - segment.start]));
  const onExpected = (segment: SourceSegment, bytes: number): void => {
    meter.bytesTotal += bytes - (expected.get(segment) ?? 0);
    expected.set(segment, bytes);
  };
  const once = (add: (count: number) => void): (() => (count: number) => void) => {
    let counted = 0;
    return () => {
      let passed = 0;
      return (count) => {
        passed += count;
        if (passed <= counted) return;
        add(passed - counted);
        counted = passed;
      };
    };
  };
  const bytes = once((count) => {
    reading.onBytes(count);
  });
  const records = once((count) => {
    meter.recordsIn += count;
  });
  const skips = once((count) => {
    meter.count(skippedRecords, count);
  });
  return () => {
    const onSkip = skips();
    const onRecords = records();
    const bad = {
      policy: onBadRecord,
      onSkip: () => {
        onSkip(1);
      },
    };
    return {
      reading: { ...reading, onBytes: bytes(), onExpected },
      bad,
      formOf: async (one, segment) => ({ ...asRead, bad, columns: await headers.of(one, segment) }),
      metered: (items, countOf) => metered(tallied(items, countOf, onRecords), meter),
    };
  };
}

export interface StageInputOptions {
  readonly stage: string;
  /** All-to-all: merged by key; else in order of segment. */
  readonly isMerged: boolean;
  readonly segments: readonly UpstreamSegment[];
  readonly reading: MergeReading;
  readonly meter: AttemptMeter;
}

/** An input from another stage. It has no rows: `rows` throws `InvalidInputError`. */
export function stageInput({ stage, isMerged, segments: all, reading, meter }: StageInputOptions): TaskInput {
  const segments = all.filter(({ isHead }) => isHead !== true);
  const heads = all.filter(({ isHead }) => isHead === true);
  const records = (): AsyncIterable<readonly KeyValue[]> =>
    tallied(
      isMerged ? recordsInOrder(reading, segments) : recordsInTurn(reading, segments),
      (batch) => batch.length,
      ofStage(meter),
    );
  return {
    kind: 'stage',
    format: 'text',
    stage,
    blocks: () => metered(recordsAsLines(records(), stage), meter),
    records: () => metered(records(), meter),
    ...(heads.length === 0 ? {} : { head: () => metered(headRecords(reading, heads), meter) }),
    ...(isMerged
      ? {
          recordLines: () =>
            metered(
              tallied(linesInOrder(reading, segments), (lines) => lines.records, ofStage(meter)),
              meter,
            ),
        }
      : {}),
    rows: () => {
      throw new InvalidInputError(`the operator reads rows, which stage ${stage} does not give`);
    },
  };
}

/** What `open` gives of each segment, one after the other; the small ones that follow are fetched meanwhile. */
async function* inTurn<T>(
  reading: SourceReading,
  segments: readonly SourceSegment[],
  open: (reading: SourceReading, segment: SourceSegment) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const { reach } = reading;
  const ahead = new ReadAhead(reading.objects, segments, reading.signal);
  reach?.begin();
  try {
    for (const [index, segment] of segments.entries()) {
      if (reach?.stopsBefore(index) === true) return;
      ahead.reach(index);
      yield* open({ ...reading, ahead, mark: reach?.markOf(index) }, segment);
      if (reach?.isStopped === true) return;
    }
    reach?.end();
  } finally {
    ahead.close();
  }
}

async function* tallied<T>(
  source: AsyncIterable<T>,
  countOf: (item: T) => number,
  add: (records: number) => void,
): AsyncGenerator<T> {
  for await (const item of source) {
    add(countOf(item));
    yield item;
  }
}

const into =
  (meter: AttemptMeter) =>
  (records: number): void => {
    meter.recordsIn += records;
  };

const ofStage =
  (meter: AttemptMeter) =>
  (records: number): void => {
    meter.recordsIn += records;
    meter.recordsOfStages += records;
  };

const pieceOf = (segment: SourceSegment): SourcePiece => ({
  uri: uriOf(segment),
  start: segment.start,
  end: segment.end,
  isPacked: codecOf(segment) !== undefined,
});

/** A file that is read by places. */
function fileOf(reading: SourceReading, segment: SourceSegment): SourceFile {
  return {
    ...pieceOf(segment),
    sizeBytes: segment.sizeBytes,
    async *read(from, until, isExpected = false) {
      for await (const chunk of rangeOf(reading, segment, { start: from, end: until })) {
        if (isExpected) reading.onBytes(chunk.length);
        yield chunk;
      }
    },
    expect: (bytes) => {
      reading.onExpected?.(segment, bytes);
    },
  };
}

/** The records of a segment of CSV, as it is read. */
async function* inForm<T>(
  { formOf }: SourceStream,
  reading: SourceReading,
  segment: SourceSegment,
  open: (form: CsvForm) => AsyncIterable<T>,
): AsyncGenerator<T> {
  yield* open(await formOf(reading, segment));
}

/** The records of CSV as bytes. */
function csvOf(
  { segments }: SourceInputOptions,
  stream: SourceStream,
  wanted: { readonly key: string | undefined; readonly needed: readonly string[] | undefined },
): AsyncIterable<CsvBlock> {
  const open = (one: SourceReading, segment: SourceSegment): AsyncIterable<CsvBlock> =>
    inForm(stream, one, segment, (form) => csvBlocks(one, segment, { ...form, ...wanted }));
  return stream.metered(inTurn(stream.reading, segments, open), recordCount);
}

/** What the first file of all tells of columns. */
function ofFirst(
  options: SourceInputOptions,
  streamOf: () => SourceStream,
): Pick<TaskInput, 'firstColumns' | 'firstFile' | 'firstRows'> {
  const { format, first, reading } = options;
  if (format === 'csv') return { firstColumns: () => firstColumnsOf(options, streamOf()) };
  if (first === undefined) return {};
  if (format === 'ndjson') return { firstRows: () => ndjsonHead(reading, first) };
  if (format !== 'parquet') return {};
  return { firstFile: fileOf(streamOf().reading, first) };
}

/** What is wrong with the header is told by the task that reads the file. */
async function firstColumnsOf(
  { first }: SourceInputOptions,
  { reading, formOf }: SourceStream,
): Promise<readonly string[] | undefined> {
  if (first === undefined) return undefined;
  try {
    return await columnsBefore(reading, { ...first, start: first.sizeBytes }, await formOf(reading, first));
  } catch (error) {
    if (error instanceof CsvProblem) return undefined;
    throw error;
  }
}

/** The values of columns of NDJSON. */
const cellsOf = (
  segments: readonly SourceSegment[],
  { reading, bad, metered }: SourceStream,
  columns: readonly string[],
): AsyncIterable<JsonCells> =>
  metered(
    inTurn(reading, segments, (one, segment) => ndjsonCells(one, segment, { bad, columns })),
    ({ count }) => count,
  );

const recordCount = ({ records }: CsvBlock): number => records.count;

/** Lines in a block; the last one may lack its end. */
function lineCount(bytes: Buffer): number {
  let count = bytes.length > 0 && bytes[bytes.length - 1] !== newline ? 1 : 0;
  for (let at = bytes.indexOf(newline); at >= 0; at = bytes.indexOf(newline, at + 1)) count++;
  return count;
}

async function* linesAsRecords(blocks: AsyncIterable<LineBlock>): AsyncGenerator<readonly KeyValue[]> {
  for await (const { bytes } of blocks) {
    let batch: KeyValue[] = [];
    for (let start = 0; start < bytes.length;) {
      const found = bytes.indexOf(newline, start);
      const end = found < 0 ? bytes.length : found;
      batch.push({ key: bytes.subarray(start, end), value: noValue });
      start = end + 1;
      if (batch.length === batchRecords) {
        yield batch;
        batch = [];
      }
    }
    if (batch.length > 0) yield batch;
  }
}

/** Each batch as a block of lines; offsets are of the text that comes of it. */
async function* recordsAsLines(
  batches: AsyncIterable<readonly KeyValue[]>,
  stage: string,
): AsyncGenerator<LineBlock> {
  let offset = 0;
  for await (const batch of batches) {
    const bytes = Buffer.allocUnsafe(batch.reduce((sum, { key, value }) => sum + lineBytes(key, value), 0));
    let at = 0;
    for (const { key, value } of batch) {
      bytes.set(key, at);
      at += key.length;
      if (value.length > 0) {
        bytes[at++] = tab;
        bytes.set(value, at);
        at += value.length;
      }
      bytes[at++] = newline;
    }
    yield { bytes, file: `stage ${stage}`, offset };
    offset += bytes.length;
  }
}

const lineBytes = (key: Buffer, value: Buffer): number =>
  key.length + 1 + (value.length > 0 ? value.length + 1 : 0);
