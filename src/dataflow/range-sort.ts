import { Thinned } from '../lib/thinned.ts';
import type { TaskContext } from '../worker/operator.ts';
import { BadInputError } from '../worker/operator.ts';

/*
 * How a sort finds bounds between its parts: each task samples the keys of its records, one task cuts all samples into
 * even shares, and records go to the share that holds their key. Keys are bytes whose order is that of the sort.
 */

/** Keys that one task samples at most, and that the cutting task keeps. */
const samplesPerTask = 2_000;
const mostSamples = 200_000;
const noBytes = Buffer.alloc(0);

/** Emits a sample of the keys, each with the number of records that it stands for. */
export async function sampleKeys({ inputs, output }: TaskContext): Promise<void> {
  const samples = new Thinned<Buffer>(samplesPerTask);
  let records = 0;
  for (const input of inputs) {
    for await (const batch of input.records()) {
      for (const { key } of batch) samples.add(() => Buffer.from(key));
      records += batch.length;
    }
  }
  const weight = Buffer.alloc(8);
  weight.writeDoubleLE(records / Math.max(1, samples.items.length));
  for (const key of samples.items) await output.emit(key, weight);
}

/** Emits the keys at which `parts` even shares of the records begin: at most `parts` − 1, in order, each once. */
export async function emitBounds({ inputs, output }: TaskContext, parts: number): Promise<void> {
  const samples = new Thinned<{ readonly key: Buffer; readonly weight: number }>(mostSamples);
  for (const input of inputs) {
    for await (const batch of input.records()) {
      for (const { key, value } of batch)
        samples.add(() => ({ key: Buffer.from(key), weight: value.readDoubleLE(0) }));
    }
  }
  const sorted = samples.items.sort((left, right) => left.key.compare(right.key));
  const total = sorted.reduce((sum, { weight }) => sum + weight, 0);
  let passed = 0;
  let cut = 1;
  let last: Buffer | undefined;
  for (const { key, weight } of sorted) {
    if (cut < parts && passed >= (cut * total) / parts) {
      while (cut < parts && passed >= (cut * total) / parts) cut++;
      if (last?.equals(key) !== true) await output.emit(key, noBytes);
      last = key;
    }
    passed += weight;
  }
}

/** Sends each record of the first input to the share between the bounds that the second brings. */
export async function sendToShares({ inputs, output, partitions }: TaskContext): Promise<void> {
  const [records, cuts] = inputs;
  if (records === undefined || cuts === undefined)
    throw new BadInputError('a sort reads its records and their bounds');
  const bounds: Buffer[] = [];
  for await (const batch of cuts.records()) for (const { key } of batch) bounds.push(Buffer.from(key));
  for await (const batch of records.records()) {
    for (const { key, value } of batch) {
      const wait = output.emit(key, value, Math.min(countUpTo(bounds, key), partitions - 1));
      if (wait !== undefined) await wait;
    }
  }
}

/** How many of the sorted bounds are not above the key. */
function countUpTo(bounds: readonly Buffer[], key: Buffer): number {
  let low = 0;
  let high = bounds.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((bounds[middle] ?? noBytes).compare(key) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
