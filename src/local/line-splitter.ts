const newline = 0x0a;

/** Lines of bytes that come in chunks. They end at a line feed and nowhere else: Node's readline cuts at U+2028 and U+2029, too. */
export class LineSplitter {
  #open: Buffer[] = [];

  /** The lines that end in a chunk, without their line feeds. */
  *push(chunk: Buffer): Generator<Buffer> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      this.#open.push(chunk.subarray(start, end));
      start = end + 1;
      yield this.#take();
    }
    if (start < chunk.length) this.#open.push(chunk.subarray(start));
  }

  /** What follows the last line feed; undefined where nothing does. */
  rest(): Buffer | undefined {
    return this.#open.length === 0 ? undefined : this.#take();
  }

  #take(): Buffer {
    const [first] = this.#open;
    const line = first !== undefined && this.#open.length === 1 ? first : Buffer.concat(this.#open);
    this.#open = [];
    return line;
  }
}
