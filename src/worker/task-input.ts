import { InvalidInputError } from '../contracts/errors.ts';
import type { SourceFormat } from '../contracts/job-spec.ts';
import type { SourceSegment } from '../contracts/plan.ts';
import { metered } from './attempt-meter.ts';
import type { AttemptMeter } from './attempt-meter.ts';
import { csvRows } from './csv-rows.ts';
import { ndjsonRows } from './ndjson-rows.ts';
import type { BadRecords } from './ndjson-rows.ts';
import type { KeyValue, LineBlock, Row, TaskInput } from './operator.ts';
import type { UpstreamSegment } from './segment-chunks.ts';
import { ReadAhead } from './read-ahead.ts';
import { sourceBlocks } from './source-blocks.ts';
import type { SourceReading } from './source-blocks.ts';
import { planSample, sampledBlocks, unreadBytes } from './sampled-blocks.ts';
import { recordsInOrder, recordsInTurn } from './stage-records.ts';
import type { MergeReading } from './stage-records.ts';

const newline = 10;
const tab = 9;
const noValue = Buffer.alloc(0);
const batchRecords = 1_000;
/** The counter of records that were skipped. */
const skippedRecords = 'skippedRecords';

export interface SourceInputOptions {
  readonly format: SourceFormat;
  readonly header: boolean;
  readonly onBadRecord: 'fail' | 'skip';
  readonly segments: readonly SourceSegment[];
  readonly reading: SourceReading;
  readonly meter: AttemptMeter;
}

/** An input from S3 objects. `rows` throws `InvalidInputError` where the format is text. */
export function sourceInput(options: SourceInputOptions): TaskInput {
  const { format, segments, reading, meter } = options;
  const bad: BadRecords = {
    policy: options.onBadRecord,
    onSkip: () => {
      meter.count(skippedRecords, 1);
    },
  };
  const rowsOf = (reading: SourceReading, segment: SourceSegment): AsyncIterable<readonly Row[]> => {
    if (format === 'ndjson') return ndjsonRows(reading, segment, bad);
    if (format === 'csv') return csvRows(reading, segment, { header: options.header, bad });
    throw new InvalidInputError('the operator reads rows: its input must have the format "ndjson" or "csv"');
  };
  const blocks = (): AsyncIterable<LineBlock> => inTurn(reading, segments, sourceBlocks);
  return {
    kind: 'source',
    format,
    blocks: () =>
      metered(
        tallied(blocks(), (block) => lineCount(block.bytes), meter),
        meter,
      ),
    sampled: (places) => {
      const sample = planSample(segments, places);
      // What is not read is no work: progress must still come to its end.
      meter.bytesTotal -= unreadBytes(segments, sample);
      const sampled = sampledBlocks(reading, segments, sample);
      return metered(
        tallied(sampled, (block) => lineCount(block.bytes), meter),
        meter,
      );
    },
    records: () =>
      metered(
        tallied(linesAsRecords(blocks()), (batch) => batch.length, meter),
        meter,
      ),
    rows: () =>
      metered(
        tallied(inTurn(reading, segments, rowsOf), (batch) => batch.length, meter),
        meter,
      ),
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
export function stageInput({ stage, isMerged, segments, reading, meter }: StageInputOptions): TaskInput {
  const records = (): AsyncIterable<readonly KeyValue[]> =>
    tallied(
      isMerged ? recordsInOrder(reading, segments) : recordsInTurn(reading, segments),
      (batch) => batch.length,
      meter,
    );
  return {
    kind: 'stage',
    format: 'text',
    stage,
    blocks: () => metered(recordsAsLines(records(), stage), meter),
    records: () => metered(records(), meter),
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
  const ahead = new ReadAhead(reading.objects, segments, reading.signal);
  try {
    for (const [index, segment] of segments.entries()) {
      ahead.reach(index);
      yield* open({ ...reading, ahead }, segment);
    }
  } finally {
    ahead.close();
  }
}

async function* tallied<T>(
  source: AsyncIterable<T>,
  countOf: (item: T) => number,
  meter: AttemptMeter,
): AsyncGenerator<T> {
  for await (const item of source) {
    meter.recordsIn += countOf(item);
    yield item;
  }
}

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
