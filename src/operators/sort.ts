import { InvalidInputError } from '../contracts/errors.ts';
import { limits } from '../contracts/limits.ts';
import { recordsInKeyOrder } from '../worker/merged-inputs.ts';
import type { Operator, TaskContext, TaskInput, TaskOutput } from '../worker/operator.ts';
import { LineWriter } from './line-writer.ts';
import { onlyOptions, wholeOption } from './options.ts';
import { type Bound, boundOf, RangeSearch, sharesBytes } from './range-search.ts';
import { keptNumbers } from './kept-state.ts';
import { Thinned } from '../lib/thinned.ts';

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

interface LineBounds {
  readonly start: number;
  /** Where its "\n" is, or the bytes end. */
  readonly end: number;
}

/** The line that the byte at a place is of. */
function lineAt(bytes: Buffer, at: number): LineBounds {
  const start = at === 0 ? 0 : bytes.lastIndexOf(newline, at - 1) + 1;
  const found = bytes.indexOf(newline, at);
  return { start, end: found < 0 ? bytes.length : found };
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
        let line: LineBounds | undefined;
        for (; left < standsForBytes; left += everyBytes) {
          const at = Math.min(bytes.length - 1, Math.floor(left * scale));
          // Many samples of one very long line: to look for its ends for each would take the square of its length.
          if (line === undefined || at > line.end) line = lineAt(bytes, at);
          const end = Math.min(line.end, line.start + sampleBytes);
          const wait = output.emit(bytes.subarray(line.start, end), empty);
          if (wait !== undefined) await wait;
        }
        left -= standsForBytes;
      }
    }
  },
};

const partitionsOf = (options: TaskContext['options']): number =>
  wholeOption(options, 'partitions', { min: 1, max: limits.partitions });

/** Lines that are more than this share of a partition are spread where a cut falls among them. */
const manyOfPartition = 0.25;

/** Samples that equal the one at a place, as places from and until. */
function equalsOf(sorted: readonly Buffer[], at: number): { readonly from: number; readonly until: number } {
  const sample = sorted[at] ?? empty;
  let [from, until] = [at, at + 1];
  while (from > 0 && sorted[from - 1]?.equals(sample) === true) from--;
  while (until < sorted.length && sorted[until]?.equals(sample) === true) until++;
  return { from, until };
}

/**
 * The cuts of sorted samples into `partitions` equal shares: at most partitions − 1, each once. One that falls among very
 * many equal samples is there as often as it falls among them, with how many of these lie in each share.
 */
function cutsOf(sorted: readonly Buffer[], partitions: number): readonly Bound[] {
  const placeOf = (cut: number): number => Math.floor((cut * sorted.length) / partitions);
  const cuts: Bound[] = [];
  for (let cut = 1; cut < partitions && sorted.length > 0;) {
    const key = sorted[placeOf(cut)] ?? empty;
    const { from, until } = equalsOf(sorted, placeOf(cut));
    let next = cut + 1;
    while (next < partitions && placeOf(next) < until) next++;
    const isMany = (until - from) * partitions > manyOfPartition * sorted.length;
    const shares = Array.from({ length: isMany ? next - cut + 1 : 0 }, (_, share) => {
      const partition = cut - 1 + share;
      return Math.max(0, Math.min(until, placeOf(partition + 1)) - Math.max(from, placeOf(partition)));
    });
    // Of what is not many no second cut falls among them.
    for (; cut < next; cut++) cuts.push({ key, shares });
  }
  return cuts;
}

/**
 * Cuts the samples into `partitions` equal shares and emits the cuts in order, see `cutsOf`. Memory is bounded: of very many
 * samples every second, every fourth … is kept.
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
    for (const { key, shares } of cutsOf(sorted, partitions)) await output.emit(key, sharesBytes(shares));
  },
};

/**
 * Sends each line of its first input to the partition between the bounds that its second input brings: partition
 * i holds the lines from bound i − 1 (that one too) up to bound i. Equal lines meet in one partition, but those that are so
 * many that cuts fall among them: nobody can tell one of them from another, so that each may be in any of theirs.
 */
export const rangePartition: Operator = {
  // Of other stages it reads the bounds.
  resumes: () => true,
  check(options) {
    onlyOptions(options, []);
  },
  async run({ inputs: [lines, cuts], output, partitions, task, kept, keep }) {
    if (lines === undefined || cuts === undefined) {
      throw new InvalidInputError(
        'range-partition needs two inputs: the lines, and the bounds by broadcast',
        {
          field: 'inputs',
        },
      );
    }
    const sorted: Bound[] = [];
    for await (const batch of cuts.records()) {
      for (const { key, value } of batch) {
        // Each of several tasks cuts its own samples: their bounds overlap, and the sort would come out of order.
        if ((sorted.at(-1)?.key.compare(key) ?? 0) > 0)
          throw new InvalidInputError(
            'range-partition needs bounds in order, but several tasks wrote them: give the stage of "bounds" one task ("tasks": 1)',
            { field: 'inputs' },
          );
        sorted.push(boundOf(key, value));
      }
      if (sorted.length >= limits.partitions) {
        throw new InvalidInputError('range-partition got more bounds than a stage may have partitions', {
          field: 'inputs',
        });
      }
    }
    const ranges = new RangeSearch(sorted, { partitions, task, passed: keptNumbers(kept, 'passed') });
    const keys = new LineKeys(output);
    for await (const { bytes } of lines.blocks()) {
      for (let start = 0; start < bytes.length;) {
        start = keys.take(bytes, start, ranges);
        const emitted = keys.emit(bytes);
        if (emitted !== undefined) await emitted;
      }
    }
    keep?.({ passed: ranges.passed });
  },
};

/** Lines that are handed on at once. */
const batchLines = 8_192;

/** Lines of a block as keys without values, many at once. */
class LineKeys {
  readonly #starts = new Int32Array(batchLines);
  readonly #ends = new Int32Array(batchLines);
  readonly #partitions = new Uint16Array(batchLines);
  readonly #output: TaskOutput;
  #count = 0;

  constructor(output: TaskOutput) {
    this.#output = output;
  }

  /** Takes lines from `from` on, as many as there is room for; answers where the next one begins. */
  take(bytes: Buffer, from: number, ranges: RangeSearch): number {
    let count = 0;
    let start = from;
    for (; count < batchLines && start < bytes.length; count++) {
      const found = bytes.indexOf(newline, start);
      const end = found < 0 ? bytes.length : found;
      this.#starts[count] = start;
      this.#ends[count] = end;
      this.#partitions[count] = ranges.find(bytes, start, end);
      start = end + 1;
    }
    this.#count = count;
    return start;
  }

  /** Emits what was taken; await what is returned. */
  emit(bytes: Buffer): Promise<void> | undefined {
    const output = this.#output;
    const [starts, ends, partitions, count] = [this.#starts, this.#ends, this.#partitions, this.#count];
    if (output.emitKeys !== undefined) return output.emitKeys({ bytes, starts, ends, partitions, count });
    return this.#emitEach(bytes);
  }

  async #emitEach(bytes: Buffer): Promise<void> {
    for (let each = 0; each < this.#count; each++) {
      const key = bytes.subarray(this.#starts[each], this.#ends[each]);
      const emitted = this.#output.emit(key, empty, this.#partitions[each]);
      if (emitted !== undefined) await emitted;
    }
  }
}

/**
 * Writes its records as lines, in the order in which they come: merged by key, those of several inputs too. What a stage has
 * written as text comes in order of what stands before the first TAB of each line, and so all that has none in order of lines.
 */
export const mergeLines: Operator = {
  check(options) {
    onlyOptions(options, []);
  },
  async run({ inputs, output }) {
    const [only] = inputs;
    if (only?.recordLines !== undefined && inputs.length === 1) {
      for await (const { bytes } of only.recordLines()) {
        const written = output.write(bytes);
        if (written !== undefined) await written;
      }
      return;
    }
    const writer = new LineWriter(output);
    for await (const batch of recordsInKeyOrder(inputs)) {
      for (const record of batch) {
        const wait = writer.record(record);
        if (wait !== undefined) await wait;
      }
    }
    await writer.flush();
  },
};
