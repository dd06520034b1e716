const frameMagic = 0xfd2fb528;
/** Skippable frames have any of sixteen magic numbers from this one on. */
const skippableMagic = 0x184d2a50;
const skippableMask = 0xfffffff0;
const magicBytes = 4;
const blockHeadBytes = 3;
const checksumBytes = 4;
const rleBlock = 1;

/** What a reader of frames waits for: so many bytes to look at, or so many to pass over. */
type Step =
  | { readonly kind: 'magic' | 'descriptor' | 'skippable-size' | 'block'; readonly bytes: number }
  | { readonly kind: 'pass'; readonly bytes: number; readonly then: Step };

const atMagic: Step = { kind: 'magic', bytes: magicBytes };
const atBlock: Step = { kind: 'block', bytes: blockHeadBytes };

/**
 * Cuts chunks of zstd data so that none holds bytes of two frames: Node's decompressor goes on with a frame that begins
 * with a chunk, and stops without a word where one begins within it. Throws an Error where something else follows a frame, and where the
 * bytes end within one: many versions of Node take such data for whole.
 *
 * Source: RFC 8878, section 3.1.
 */
export async function* zstdFrames(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const frames = new FrameReader();
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length;) {
      const end = frames.advance(chunk, at);
      yield chunk.subarray(at, end);
      at = end;
    }
  }
  if (!frames.isBetween) throw new Error('it ends too soon');
}

/** Follows the frames of a stream by the sizes that their heads and blocks tell. */
class FrameReader {
  #step: Step = atMagic;
  /** Bytes of the present step that came before: some of a head, or how many were passed. */
  #head: number[] = [];
  #passed = 0;
  #hasChecksum = false;

  /** Whether what was read ends with a frame, or nothing was. */
  get isBetween(): boolean {
    return this.#step === atMagic && this.#head.length === 0;
  }

  /** Reads on from `start`; answers where the chunk, or the frame, ends. */
  advance(chunk: Uint8Array, start: number): number {
    let at = start;
    while (at < chunk.length) {
      const step = this.#step;
      if (step.kind === 'pass') {
        const taken = Math.min(step.bytes - this.#passed, chunk.length - at);
        at += taken;
        this.#passed += taken;
        if (this.#passed < step.bytes) return at;
        this.#begin(step.then);
      } else {
        this.#head.push(chunk[at] ?? 0);
        at++;
        if (this.#head.length < step.bytes) continue;
        this.#begin(this.#after(step.kind));
      }
      if (this.#step === atMagic) return at;
    }
    return at;
  }

  #begin(step: Step): void {
    this.#head = [];
    this.#passed = 0;
    // Nothing to pass is passed at once.
    this.#step = step.kind === 'pass' && step.bytes === 0 ? step.then : step;
  }

  #after(kind: Exclude<Step['kind'], 'pass'>): Step {
    const value = this.#head.reduce((sum, byte, index) => sum + byte * 2 ** (8 * index), 0);
    if (kind === 'magic') {
      if (value === frameMagic) return { kind: 'descriptor', bytes: 1 };
      if ((value & skippableMask) >>> 0 === skippableMagic) return { kind: 'skippable-size', bytes: 4 };
      throw new Error('what follows is no frame');
    }
    if (kind === 'skippable-size') return { kind: 'pass', bytes: value, then: atMagic };
    if (kind === 'descriptor') {
      this.#hasChecksum = (value & 0x04) !== 0;
      return { kind: 'pass', bytes: restOfHead(value), then: atBlock };
    }
    const size = ((value >>> 1) & 3) === rleBlock ? 1 : value >>> 3;
    const isLast = (value & 1) === 1;
    const end: Step = this.#hasChecksum ? { kind: 'pass', bytes: checksumBytes, then: atMagic } : atMagic;
    const next = isLast ? end : atBlock;
    return size === 0 ? next : { kind: 'pass', bytes: size, then: next };
  }
}

/** Bytes of a frame's head behind its descriptor: of window, dictionary and content size. */
function restOfHead(descriptor: number): number {
  const isSingle = (descriptor & 0x20) !== 0;
  const dictionary = [0, 1, 2, 4][descriptor & 3] ?? 0;
  const content = [isSingle ? 1 : 0, 2, 4, 8][descriptor >>> 6] ?? 0;
  return (isSingle ? 0 : 1) + dictionary + content;
}
