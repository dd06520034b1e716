import { badRequest } from './errors.ts';

/** Longest chunk header or trailer line that is read before the body counts as malformed. */
const MAX_LINE_BYTES = 4096;
const MAX_TRAILERS = 32;
const EMPTY = Buffer.alloc(0);

/**
 * Undoes the `aws-chunked` encoding as it streams by: yields the data, and puts the trailing
 * headers (names in lower case) into `trailers` before it ends.
 *
 * @throws {S3Error} IncompleteBody if the body ends early or is not in that encoding.
 */
export async function* decodeAwsChunked(
  source: AsyncIterable<Buffer>,
  trailers: Map<string, string>,
): AsyncGenerator<Buffer, void, undefined> {
  const reader = new ByteReader(source);
  try {
    // Ends with the body: each turn consumes at least one line of it.
    for (;;) {
      const [sizeText = ''] = (await reader.line()).split(';');
      if (!/^[0-9a-fA-F]{1,12}$/.test(sizeText)) throw malformed();
      let leftBytes = Number.parseInt(sizeText, 16);
      if (leftBytes === 0) break;
      while (leftBytes > 0) {
        const piece = await reader.atMost(leftBytes);
        leftBytes -= piece.length;
        yield piece;
      }
      if ((await reader.line()) !== '') throw malformed();
    }
    await readTrailers(reader, trailers);
  } finally {
    await reader.release();
  }
}

async function readTrailers(reader: ByteReader, trailers: Map<string, string>): Promise<void> {
  for (let count = 0; count <= MAX_TRAILERS; count++) {
    const line = await reader.lineOrEnd();
    if (line === undefined || line === '') return;
    const at = line.indexOf(':');
    if (at < 1) throw malformed();
    trailers.set(line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim());
  }
  throw malformed();
}

class ByteReader {
  private readonly source: AsyncIterator<Buffer>;
  private pending: Buffer = EMPTY;

  constructor(source: AsyncIterable<Buffer>) {
    this.source = source[Symbol.asyncIterator]();
  }

  /** Between 1 and `limitBytes` bytes, whatever is at hand first. */
  async atMost(limitBytes: number): Promise<Buffer> {
    if (this.pending.length === 0 && !(await this.more())) throw malformed();
    const piece = this.pending.subarray(0, limitBytes);
    this.pending = this.pending.subarray(piece.length);
    return piece;
  }

  /** The next line, without its end. */
  async line(): Promise<string> {
    const line = await this.lineOrEnd();
    if (line === undefined) throw malformed();
    return line;
  }

  /** As `line`, but `undefined` where the body ends with no byte left. */
  async lineOrEnd(): Promise<string | undefined> {
    for (;;) {
      const end = this.pending.indexOf('\r\n');
      if (end >= 0) {
        const line = this.pending.toString('latin1', 0, end);
        this.pending = this.pending.subarray(end + 2);
        return line;
      }
      if (this.pending.length > MAX_LINE_BYTES) throw malformed();
      if (!(await this.more())) {
        if (this.pending.length === 0) return undefined;
        throw malformed();
      }
    }
  }

  /** Lets go of the source, so that what is left of it can be drained by others. */
  async release(): Promise<void> {
    await this.source.return?.();
  }

  private async more(): Promise<boolean> {
    const next = await this.source.next();
    if (next.done === true) return false;
    this.pending = this.pending.length === 0 ? next.value : Buffer.concat([this.pending, next.value]);
    return true;
  }
}

function malformed(): Error {
  return badRequest('IncompleteBody', 'The request body terminated unexpectedly or is not aws-chunked.');
}
