import { crc32 } from 'node:zlib';
import { limits } from '../contracts/limits.ts';
import type { SourceSegment } from '../contracts/plan.ts';
import { gzipCandidate, gzipHeadBytes, gzipMagicBytes } from '../core/model/gzip-header.ts';
import { checkSums, gzipMembers, inflateSome, type MemberText } from './gzip-members.ts';
import { LineCutter, pieces } from './line-cutter.ts';
import { rangeOf, rangesFrom, type SourceReading } from './object-ranges.ts';
import { BadInputError } from './operator.ts';
import type { LineBlock } from './operator.ts';

const newline = 10;
/** Deflate packs so much at most: places in the file times this grow faster than places in its text. */
const mostDeflated = 1_032;
/** What is read of what may be a member, to see whether it is one: its head, and some of its data. */
const trialBytes = 96 * 1024;
const trialDataBytes = 32 * 1024;
/** First look for the begin of a member; each further one is four times as long. */
const firstBytes = 128 * 1024;
/** First read past the end of a piece. */
const tailBytes = 256 * 1024;

/** Whether a segment of a compressed file is less than all of it. */
export const isPiece = ({ start, end, sizeBytes }: SourceSegment): boolean => start > 0 || end < sizeBytes;

/** The offset that stands for the text of the member that begins at a byte of the file. */
const offsetAt = (place: number): number => place * mostDeflated;

/**
 * The lines of a piece of a gzip file of several members, in blocks: those that begin in the text of the members that
 * begin in [start, end), but for the first of it where it is not the file's, and with the first that ends behind it. The
 * pieces of a file together give each of its lines once, or one of them throws.
 *
 * Where members begin is told by their first bytes and some of their data, which might lie within a member, too: so each
 * reader, who knows for certain where its last member ends, looks whether the next reader will begin there.
 *
 * Offsets of the first piece are of the text; of the others they only put lines in order (see `lineNumberAt`).
 *
 * Throws `BadInputError` where the file is not whole, cannot be cut, or a line is too long.
 */
export async function* memberBlocks(
  reading: SourceReading,
  segment: SourceSegment,
): AsyncGenerator<LineBlock> {
  const begin = segment.start === 0 ? 0 : await firstMember(reading, segment);
  if (begin === undefined) {
    reading.onExpected?.(segment, 0);
    return;
  }
  const tally = new MemberTally(reading, segment, begin);
  const cutter = new LineCutter(segment.key, reading.lineBytes ?? limits.recordBytes, offsetAt(begin));
  const watch = new Watch(segment.end);
  let isSkipping = segment.start > 0;
  let isPast = false;
  let offset = offsetAt(begin);
  const members = membersFrom(reading, segment, begin, (chunk) => {
    watch.push(chunk, begin);
    tally.fetched(chunk.length);
  });
  for await (const { bytes, memberEnd } of members) {
    if (memberEnd !== undefined) tally.ended(memberEnd);
    for (const piece of pieces(bytes)) {
      const line = isSkipping || isPast ? piece.indexOf(newline) : -1;
      const cut = line < 0 ? piece.length : line + 1;
      if (!isSkipping) yield* cutter.push(isPast ? piece.subarray(0, cut) : piece);
      if (isSkipping && line >= 0) {
        isSkipping = false;
        cutter.begin(offset + cut);
        yield* cutter.push(piece.subarray(cut));
      } else if (isPast && line >= 0) {
        const rest = cutter.rest();
        if (rest !== undefined) yield rest;
        return;
      }
      offset += piece.length;
    }
    if (memberEnd === undefined || isPast || memberEnd < segment.end) continue;
    await checkCut(reading, segment, memberEnd, watch);
    // No line begins in it: the next piece that has one begins behind the same line end.
    if (isSkipping) return;
    isPast = true;
  }
  const rest = cutter.rest();
  if (rest !== undefined) yield rest;
}

/**
 * The text of the file's members from the one that begins at a byte of it. Throws `BadInputError` that names the file
 * where they are not whole, and what reading throws.
 */
async function* membersFrom(
  reading: SourceReading,
  segment: SourceSegment,
  begin: number,
  onChunk?: (chunk: Uint8Array) => void,
): AsyncGenerator<MemberText> {
  const source: { error?: Error } = {};
  const watched = (async function* () {
    try {
      const place = { begin, until: segment.end, tailBytes };
      for await (const chunk of rangesFrom(quietly(reading), segment, place)) {
        onChunk?.(chunk);
        yield chunk;
      }
    } catch (error) {
      source.error = error instanceof Error ? error : new Error(String(error));
      throw source.error;
    }
  })();
  try {
    yield* gzipMembers(watched, begin);
  } catch (cause) {
    if (source.error !== undefined) throw source.error;
    const what = cause instanceof Error ? cause.message : String(cause);
    throw new BadInputError(`${segment.key}: not whole gzip data: ${what}`, { cause });
  }
}

/** Where the first member that begins in the segment does; undefined where none does. */
async function firstMember(reading: SourceReading, segment: SourceSegment): Promise<number | undefined> {
  const { start, end, sizeBytes } = segment;
  for (let at = start, size = firstBytes; at < end; at += size, size *= 4) {
    const until = Math.min(end, at + size);
    // With what a place before its end needs to be judged.
    const range = { start: at, end: Math.min(sizeBytes, until + gzipMagicBytes - 1) };
    const bytes = await allOf(reading, segment, range);
    for (
      let found = gzipCandidate(bytes, 0, until - at);
      found >= 0;
      found = gzipCandidate(bytes, found + 1, until - at)
    )
      if (await isMember(reading, segment, at + found)) return at + found;
  }
  return undefined;
}

async function allOf(
  reading: SourceReading,
  segment: SourceSegment,
  range: { readonly start: number; readonly end: number },
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of rangeOf(reading, segment, range)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Whether a member seems to begin at a byte of the file: all readers judge it alike. */
async function isMember(reading: SourceReading, segment: SourceSegment, place: number): Promise<boolean> {
  const range = { start: place, end: Math.min(segment.sizeBytes, place + trialBytes) };
  const bytes = await allOf(reading, segment, range);
  const head = gzipHeadBytes(bytes);
  if (typeof head !== 'number') return false;
  const data = bytes.subarray(head, head + trialDataBytes);
  try {
    const unpacked = inflateSome(data, trialDataBytes * mostDeflated + trialDataBytes);
    if (unpacked === undefined) return false;
    const { text, taken } = unpacked;
    const isAllData = taken === data.length;
    const isAtEnd = head + data.length === bytes.length && range.end === segment.sizeBytes;
    // It goes on behind what was looked at, where there is something.
    if (isAllData) return !isAtEnd;
    const trailer = bytes.subarray(head + taken, head + taken + 8);
    checkSums(trailer, crc32(text), text.length);
    const next = bytes[head + taken + 8];
    return next === undefined || next === 0 || next === 0x1f;
  } catch {
    return false;
  }
}

/** Reads without a word of it. */
const quietly = (reading: SourceReading): SourceReading => ({
  ...reading,
  onBytes: () => undefined,
  onExpected: undefined,
});

/**
 * Tells what a piece takes: the members that begin in it, whole, and nothing of what comes before the first. The plan counts
 * its bytes of the file; but of a file with one member the first piece takes all, and the others have nothing to do.
 */
class MemberTally {
  readonly #reading: SourceReading;
  readonly #segment: SourceSegment;
  readonly #begin: number;
  /** Up to where the file was fetched, and how many bytes were told as read. */
  #at: number;
  #told = 0;
  #hasAnyEnded = false;
  #isLong = false;
  #isDone = false;

  constructor(reading: SourceReading, segment: SourceSegment, begin: number) {
    this.#reading = reading;
    this.#segment = segment;
    this.#begin = begin;
    this.#at = begin;
    reading.onExpected?.(segment, segment.end - begin);
  }

  fetched(bytes: number): void {
    if (this.#isDone) return;
    this.#at += bytes;
    this.#tell();
  }

  /** A member has ended here; behind the piece's end it is the last. */
  ended(place: number): void {
    if (this.#isDone) return;
    this.#hasAnyEnded = true;
    if (place < this.#segment.end) {
      this.#tell();
      return;
    }
    this.#isDone = true;
    this.#tellUpTo(place);
    this.#reading.onExpected?.(this.#segment, this.#told);
  }

  /**
   * The first look behind the end is made in any case; whoever reads on has a long last member. Where none has ended before the
   * end, the file is most likely one member. That is told before any look behind it: whoever has read all that the plan
   * says would else look done, and slow.
   */
  #tell(): void {
    const { end, sizeBytes } = this.#segment;
    const readsOn = this.#at > end + tailBytes;
    const isLong = readsOn || (this.#at > end && !this.#hasAnyEnded);
    if (isLong !== this.#isLong) {
      this.#isLong = isLong;
      this.#reading.onExpected?.(this.#segment, (isLong ? sizeBytes : end) - this.#begin);
    }
    this.#tellUpTo(readsOn ? this.#at : Math.min(this.#at, end));
  }

  #tellUpTo(place: number): void {
    const more = place - this.#begin - this.#told;
    if (more <= 0) return;
    this.#told += more;
    this.#reading.onBytes(more);
  }
}

/** Holds that whoever reads what follows begins at `place`, where a member has ended. */
async function checkCut(
  reading: SourceReading,
  segment: SourceSegment,
  place: number,
  watch: Watch,
): Promise<void> {
  const { key, sizeBytes } = segment;
  for (const found of watch.before(place))
    if (await isMember(reading, segment, found))
      throw new BadInputError(
        `${key}: what begins at byte ${String(found)} looks like a member of gzip and lies within one, so that the file cannot be cut: have it read whole, by "splitBytes" (--split-size) beyond what it unpacks to`,
      );
  if (place >= sizeBytes) return;
  const [next] = await allOf(reading, segment, { start: place, end: place + 1 });
  // Zeros may follow the last member; whoever reads on looks at all of them.
  if (next === 0 || (await isMember(reading, segment, place))) return;
  throw new BadInputError(`${key}: not whole gzip data: what follows byte ${String(place)} is no member`);
}

/** Notes where in what was read behind a place something looks like the begin of a member. */
class Watch {
  readonly #from: number;
  readonly #found: number[] = [];
  #at: number | undefined;
  /** The last bytes, which may begin one. */
  #open: Uint8Array = new Uint8Array();

  constructor(from: number) {
    this.#from = from;
  }

  push(chunk: Uint8Array, begin: number): void {
    const chunkAt = this.#at ?? begin;
    const end = chunkAt + chunk.length;
    this.#at = end;
    if (end <= this.#from) return;
    const bytes = this.#open.length === 0 ? chunk : Buffer.concat([this.#open, chunk]);
    const at = end - bytes.length;
    let from = Math.max(0, this.#from - at);
    for (let found = gzipCandidate(bytes, from); found >= 0; found = gzipCandidate(bytes, from)) {
      this.#found.push(at + found);
      from = found + 1;
    }
    const kept = Math.max(from, bytes.length - gzipMagicBytes + 1);
    this.#open = Uint8Array.from(bytes.subarray(Math.min(kept, bytes.length)));
  }

  /** Those that were found, before a place. */
  before(place: number): readonly number[] {
    return this.#found.filter((found) => found < place);
  }
}

/**
 * How many line ends come in a gzip file before an offset that `memberBlocks` has given for a piece of it that is not the
 * first.
 */
export async function lineEndsBefore(
  reading: SourceReading,
  segment: SourceSegment,
  offset: number,
): Promise<number> {
  const quiet = quietly(reading);
  let lineEnds = 0;
  let begin: number | undefined;
  let position = 0;
  for await (const { bytes, memberEnd } of membersFrom(quiet, segment, 0)) {
    const wanted = begin === undefined ? bytes.length : offset - offsetAt(begin) - position;
    for (let at = bytes.indexOf(newline); at >= 0 && at < wanted; at = bytes.indexOf(newline, at + 1))
      lineEnds++;
    if (begin !== undefined) {
      position += bytes.length;
      if (offsetAt(begin) + position >= offset) return lineEnds;
    } else if (memberEnd !== undefined && memberEnd >= segment.start) begin = memberEnd;
  }
  return lineEnds;
}
