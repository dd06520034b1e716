/** What one task reads through one input, as it is written: pieces of objects, gone through more than once. */
export interface ManifestLine {
  readonly segments: Iterable<object>;
}

/** An object of JSON lines, one per task. */
export interface Manifest {
  readonly key: string;
  /** Its text in pieces, made anew each time: the whole may be far more than memory should hold. */
  readonly texts: () => Iterable<string>;
}

/** Segments that are made into text at once: a line of ten thousand would be a megabyte. */
const segmentsAtOnce = 500;
const scratchBytes = 64 * 1024;

/** `{"segments":[…]}` and a line end, in pieces. */
function* textsOf({ segments }: ManifestLine): Generator<string> {
  yield '{"segments":[';
  let isFirst = true;
  let some: object[] = [];
  const flush = (): string => {
    const text = `${isFirst ? '' : ','}${JSON.stringify(some).slice(1, -1)}`;
    isFirst = false;
    some = [];
    return text;
  };
  for (const segment of segments) {
    some.push(segment);
    if (some.length === segmentsAtOnce) yield flush();
  }
  if (some.length > 0) yield flush();
  yield ']}\n';
}

/**
 * Encodes texts into buffers that `next` gives, and tells it of each how much is in it; the last one perhaps empty.
 * Nothing but the buffers is allocated: garbage outside of the heap is collected late.
 */
export function* encoded(
  texts: Iterable<string>,
  next: () => Uint8Array<ArrayBuffer>,
): Generator<{ readonly buffer: Uint8Array<ArrayBuffer>; readonly usedBytes: number }> {
  const encoder = new TextEncoder();
  let buffer = next();
  let used = 0;
  for (const text of texts) {
    for (let at = 0; at < text.length;) {
      const { read, written } = encoder.encodeInto(at === 0 ? text : text.slice(at), buffer.subarray(used));
      at += read;
      used += written;
      if (at === text.length) break;
      // Full, or too full for the next character.
      yield { buffer, usedBytes: used };
      buffer = next();
      used = 0;
    }
  }
  yield { buffer, usedBytes: used };
}

/**
 * The manifest of these lines, and their offsets in bytes: one more than there are lines. Each line is asked for when
 * it is its turn, and let go at once.
 */
export function manifestOf(
  key: string,
  lines: readonly ManifestLine[],
): { readonly manifest: Manifest; readonly offsets: readonly number[] } {
  const scratch = new Uint8Array(scratchBytes);
  const offsets = [0];
  let end = 0;
  for (const line of lines) {
    for (const { usedBytes } of encoded(textsOf(line), () => scratch)) end += usedBytes;
    offsets.push(end);
  }
  const texts = function* (): Generator<string> {
    for (const line of lines) yield* textsOf(line);
  };
  return { manifest: { key, texts }, offsets };
}
