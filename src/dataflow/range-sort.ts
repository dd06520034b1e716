import { Thinned } from '../lib/thinned.ts';
import type { TaskContext } from '../worker/operator.ts';
import { BadInputError } from '../worker/operator.ts';

/*
 * How a sort finds bounds between its parts: each task samples its records, one task cuts all samples into even shares, and
 * records go to the share that holds them. Keys are bytes whose order is that of the sort; records of one key go by their
 * place, so that they stay in order, and a key that very many have may lie in several parts.
 */

/** Records that one task samples at most, and that the cutting task keeps. */
const samplesPerTask = 2_000;
const mostSamples = 200_000;

/** A record's place in the order of the sort: by key, then by task, then by its number within that, from 0. */
interface Place {
  readonly key: Buffer;
  readonly task: number;
  readonly number: number;
}

const placeBytes = 16;

const comparePlaces = (left: Place, right: Place): number =>
  left.key.compare(right.key) || left.task - right.task || left.number - right.number;

/** Task and number as bytes; `weight`, where there is one, behind them. */
function bytesOf({ task, number }: Place, weight?: number): Buffer {
  const bytes = Buffer.alloc(placeBytes + (weight === undefined ? 0 : 8));
  bytes.writeDoubleLE(task, 0);
  bytes.writeDoubleLE(number, 8);
  if (weight !== undefined) bytes.writeDoubleLE(weight, placeBytes);
  return bytes;
}

const placeOf = (key: Buffer, bytes: Buffer): Place => ({
  key: Buffer.from(key),
  task: bytes.readDoubleLE(0),
  number: bytes.readDoubleLE(8),
});

/** Emits a sample of the records: keys and places, each with the number of records that it stands for. */
export async function sampleKeys({ inputs, output, task }: TaskContext): Promise<void> {
  const samples = new Thinned<Place>(samplesPerTask);
  let records = 0;
  for (const input of inputs) {
    for await (const batch of input.records()) {
      for (const { key } of batch) {
        const number = records++;
        samples.add(() => ({ key: Buffer.from(key), task, number }));
      }
    }
  }
  const weight = records / Math.max(1, samples.items.length);
  for (const place of samples.items) await output.emit(place.key, bytesOf(place, weight));
}

/** Emits the places at which `parts` even shares of the records begin: at most `parts` − 1, in order, each once. */
export async function emitBounds({ inputs, output }: TaskContext, parts: number): Promise<void> {
  const samples = new Thinned<Place & { readonly weight: number }>(mostSamples);
  for (const input of inputs) {
    for await (const batch of input.records()) {
      for (const { key, value } of batch)
        samples.add(() => ({ ...placeOf(key, value), weight: value.readDoubleLE(placeBytes) }));
    }
  }
  const sorted = samples.items.sort(comparePlaces);
  const total = sorted.reduce((sum, { weight }) => sum + weight, 0);
  let passed = 0;
  let cut = 1;
  for (const place of sorted) {
    if (cut < parts && passed >= (cut * total) / parts) {
      while (cut < parts && passed >= (cut * total) / parts) cut++;
      await output.emit(place.key, bytesOf(place));
    }
    passed += place.weight;
  }
}

/** Sends each record of the first input to the share between the bounds that the second brings. */
export async function sendToShares({ inputs, output, partitions, task }: TaskContext): Promise<void> {
  const [records, cuts] = inputs;
  if (records === undefined || cuts === undefined)
    throw new BadInputError('a sort reads its records and their bounds');
  const bounds: Place[] = [];
  for await (const batch of cuts.records())
    for (const { key, value } of batch) bounds.push(placeOf(key, value));
  let number = 0;
  for await (const batch of records.records()) {
    for (const { key, value } of batch) {
      const share = countUpTo(bounds, { key, task, number: number++ });
      const wait = output.emit(key, value, Math.min(share, partitions - 1));
      if (wait !== undefined) await wait;
    }
  }
}

/** How many of the sorted bounds are not above the place. */
function countUpTo(bounds: readonly Place[], place: Place): number {
  let low = 0;
  let high = bounds.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const bound = bounds[middle];
    if (bound !== undefined && comparePlaces(bound, place) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
