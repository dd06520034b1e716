import { InvalidInputError } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import type { Operator, TaskContext, TaskInput } from '../worker/operator.ts';
import { LineWriter, eachLine } from './line-writer.ts';
import { onlyOptions, wholeOption } from './options.ts';
import { Thinned } from './thinned.ts';

const newline = 0x0a;
const empty = Buffer.alloc(0);

/** Bytes of a sampled line that are kept. A cut line still is a bound: it sorts somewhere. */
const sampleBytes = 1_024;
const defaultEveryBytes = 32 * 1024;
/** What `bounds` holds at most, in samples: at 1 KiB each some 64 MiB. */
const maxSamples = 1 << 16;

const everyBytesOf = (options: TaskContext['options']): number =>
  wholeOption(options, 'everyBytes', { min: 1, max: limits.maxSplitBytes, fallback: defaultEveryBytes });

/** Places that all tasks of a stage look at together; and each of them, at least and at most. */
const placesOf = (options: TaskContext['options']): number =>
  wholeOption(options, 'places', { min: 1, max: limits.partitions * 64, fallback: 1_024 });
const leastPlaces = 8;
const mostPlaces = 256;

/** All lines of an input, each block for itself. */
async function* whole(
  input: TaskInput,
): AsyncGenerator<{ readonly bytes: Buffer; readonly standsForBytes: number }> {
  for await (const { bytes } of input.blocks()) yield { bytes, standsForBytes: bytes.length };
}

/**
 * One line for about every `everyBytes` bytes of the input, from end to end of it, so that input that is sorted
 * already is sampled as well as any other. Of large plain objects only some places are read, about `places` over all
 * tasks, and each gives the lines of the stretch that it stands for. Empty input: nothing.
 */
export const sample: Operator = {
  check(options) {
    onlyOptions(options, ['everyBytes', 'places']);
    everyBytesOf(options);
    placesOf(options);
  },
  async run({ inputs, output, options, tasks = 1 }) {
    const everyBytes = everyBytesOf(options);
    const places = Math.min(mostPlaces, Math.max(leastPlaces, Math.ceil(placesOf(options) / tasks)));
    for (const input of inputs) {
      // Bytes still to pass before the next sample; half a step, so that a tiny split counts for little.
      let left = Math.floor(everyBytes / 2);
      for await (const { bytes, standsForBytes } of input.sampled?.(places) ?? whole(input)) {
        const scale = bytes.length / standsForBytes;
        for (; left < standsForBytes; left += everyBytes) {
          const at = Math.min(bytes.length - 1, Math.floor(left * scale));
          const start = at === 0 ? 0 : bytes.lastIndexOf(newline, at - 1) + 1;
          const found = bytes.indexOf(newline, at);
          const end = Math.min(found < 0 ? bytes.length : found, start + sampleBytes);
          const wait = output.emit(bytes.subarray(start, end), empty);
          if (wait !== undefined) await wait;
        }
        left -= standsForBytes;
      }
    }
  },
};

const partitionsOf = (options: TaskContext['options']): number =>
  wholeOption(options, 'partitions', { min: 1, max: limits.partitions });

/**
 * Cuts the samples into `partitions` equal shares and emits the cuts in order: at most partitions − 1, each once.
 * Memory is bounded: of very many samples every second, every fourth … is kept.
 */
export const bounds: Operator = {
  check(options) {
    onlyOptions(options, ['partitions']);
    partitionsOf(options);
  },
  async run({ inputs, output, options }) {
    const partitions = partitionsOf(options);
    const samples = new Thinned<Buffer>(maxSamples);
    for (const input of inputs) {
      for await (const batch of input.records()) {
        for (const { key } of batch) samples.add(() => Buffer.from(key));
      }
    }
    const sorted = samples.items.sort((left, right) => left.compare(right));
    let last: Buffer | undefined;
    for (let cut = 1; cut < partitions; cut++) {
      const bound = sorted[Math.floor((cut * sorted.length) / partitions)];
      if (bound === undefined || last?.equals(bound) === true) continue;
      await output.emit(bound, empty);
      last = bound;
    }
  },
};

/**
 * Sends each line of its first input to the partition between the bounds that its second input brings: partition
 * i holds the lines from bound i − 1 (that one too) up to bound i. Equal lines meet in one partition.
 */
export const rangePartition: Operator = {
  check(options) {
    onlyOptions(options, []);
  },
  async run({ inputs: [lines, cuts], output, partitions }) {
    if (lines === undefined || cuts === undefined) {
      throw new InvalidInputError(
        'range-partition needs two inputs: the lines, and the bounds by broadcast',
        {
          field: 'inputs',
        },
      );
    }
    const sorted: Buffer[] = [];
    for await (const batch of cuts.records()) {
      for (const { key } of batch) sorted.push(Buffer.from(key));
      if (sorted.length >= limits.partitions) {
        throw new InvalidInputError('range-partition got more bounds than a stage may have partitions', {
          field: 'inputs',
        });
      }
    }
    for await (const { bytes } of lines.blocks()) {
      await eachLine(bytes, (start, end) => {
        const at = countUpTo(sorted, bytes, start, end);
        return output.emit(bytes.subarray(start, end), empty, Math.min(at, partitions - 1));
      });
    }
  },
};

/** How many of the sorted bounds are not above the line: between 0 and all of them. */
function countUpTo(sorted: readonly Buffer[], bytes: Buffer, start: number, end: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const bound = sorted[middle] ?? empty;
    if (bound.compare(bytes, start, end) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Writes the keys of its records as lines, in the order in which they come: merged by key. */
export const mergeLines: Operator = {
  check(options) {
    onlyOptions(options, []);
  },
  async run({ inputs, output }) {
    const writer = new LineWriter(output);
    for (const input of inputs) {
      for await (const batch of input.records()) {
        for (const { key } of batch) {
          const wait = writer.line(key);
          if (wait !== undefined) await wait;
        }
      }
    }
    await writer.flush();
  },
};
