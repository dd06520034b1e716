import { NotFoundError } from '../contracts/errors.ts';
import type { Codec } from '../contracts/plan.ts';
import { gzipLookRange, gzipShape, tellingRange, unpackedSize } from '../core/model/packed-size.ts';
import { codecOfKey, type SourceObject } from '../core/model/splits.ts';
import { forEachBounded } from '../lib/bounded.ts';
import type { ObjectStore } from '../ports/object-store.ts';

/** Compressed objects of an input that are asked; those beyond are taken to be like them. */
const mostAsked = 1_000;
const atOnce = 16;

/** What a look at a compressed object tells. */
interface Shape {
  readonly unpackedBytes: number;
  readonly isSeveral: boolean;
}

/**
 * The objects, with about what the compressed ones among them hold, and which of gzip seem to be several members: a few
 * bytes of each are read, and of larger gzip files the beginning. Without it six files that hold a gigabyte between them
 * would look like work for one task.
 */
export async function withUnpackedSizes(
  store: ObjectStore,
  objects: readonly SourceObject[],
): Promise<SourceObject[]> {
  const packed = objects.flatMap((object, index) => {
    const codec = codecOfKey(object.key);
    return codec === undefined || object.sizeBytes === 0 ? [] : [{ object, index, codec }];
  });
  if (packed.length === 0) return [...objects];
  const shapes = new Map<number, Shape>();
  await forEachBounded(spread(packed, mostAsked), atOnce, async ({ object, index, codec }) => {
    const shape = await shapeOf(store, object, codec);
    if (shape !== undefined) shapes.set(index, shape);
  });
  const ratio = meanRatio(objects, shapes);
  const told = new Map(
    packed.map(({ object, index }) => [index, shapes.get(index) ?? likeOthers(object, ratio)]),
  );
  return objects.map((object, index) => {
    const shape = told.get(index);
    if (shape === undefined) return object;
    const { unpackedBytes, isSeveral } = shape;
    return { ...object, unpackedBytes, ...(isSeveral ? { hasMembers: true } : {}) };
  });
}

const likeOthers = ({ sizeBytes }: SourceObject, ratio: number): Shape => ({
  unpackedBytes: Math.ceil(sizeBytes * ratio),
  isSeveral: false,
});

/** At most so many of some, evenly spread over all of them. */
function spread<T>(all: readonly T[], most: number): T[] {
  if (all.length <= most) return [...all];
  return Array.from({ length: most }, (_, index) => all[Math.floor((index * all.length) / most)]).filter(
    (one) => one !== undefined,
  );
}

/** Undefined where the object has gone since it was listed: whoever reads it will say so. */
async function shapeOf(store: ObjectStore, object: SourceObject, codec: Codec): Promise<Shape | undefined> {
  try {
    const telling = await store.readAll(object, tellingRange(object, codec));
    if (codec !== 'gzip') return { unpackedBytes: unpackedSize(object, codec, telling), isSeveral: false };
    const range = gzipLookRange(object);
    const look = range.end === 0 ? new Uint8Array() : await store.readAll(object, range);
    return gzipShape(object, look, telling);
  } catch (cause) {
    if (cause instanceof NotFoundError) return undefined;
    throw cause;
  }
}

function meanRatio(objects: readonly SourceObject[], shapes: ReadonlyMap<number, Shape>): number {
  let stored = 0;
  let held = 0;
  for (const [index, { unpackedBytes }] of shapes) {
    stored += objects[index]?.sizeBytes ?? 0;
    held += unpackedBytes;
  }
  return stored === 0 ? 1 : Math.max(1, held / stored);
}
