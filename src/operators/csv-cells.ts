const comma = 0x2c;
const newline = 0x0a;
const carriageReturn = 0x0d;
const quote = 0x22;

/** A call into native code costs more than to copy so many bytes. */
const shortBytes = 40;

/** Copies `[start, end)`; answers where what was copied ends. */
export function copyBytes(source: Buffer, start: number, end: number, target: Buffer, at: number): number {
  if (end - start > shortBytes) return at + source.copy(target, at, start, end);
  let to = at;
  for (let from = start; from < end; from++) target[to++] = source[from] ?? 0;
  return to;
}

/** Finds the cells of a well-formed record up to number `last`: number i is `bytes[places[i], places[i + 1] - 1)`. */
export function findCells(bytes: Buffer, start: number, end: number, places: Int32Array, last: number): void {
  let cell = 0;
  places[cell++] = start;
  for (let at = start; at < end; at++) {
    const byte = bytes[at];
    if (byte === comma) {
      places[cell++] = at + 1;
      if (cell > last + 1) return;
    }
    // Doubled quotes end a quoted stretch and begin another.
    else if (byte === quote) at = bytes.indexOf(quote, at + 1);
  }
  places[cell] = end + 1;
}

/** Copies a cell of a well-formed record, without quotes that it does not need, as `csvLine` writes its text. */
export function copyCell(bytes: Buffer, start: number, end: number, target: Buffer, at: number): number {
  if (start === end || bytes[start] !== quote || needsQuotes(bytes, start + 1, end - 1))
    return copyBytes(bytes, start, end, target, at);
  return copyBytes(bytes, start + 1, end - 1, target, at);
}

function needsQuotes(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    if (byte <= comma && (byte === comma || byte === quote || byte === newline || byte === carriageReturn))
      return true;
  }
  return false;
}

/** Whether a cell must be read by `textOfCell` to know its text. */
function hasDoubledQuotes(bytes: Buffer, start: number, end: number): boolean {
  if (start === end || bytes[start] !== quote) return false;
  return bytes.indexOf(quote, start + 1) < end - 1;
}

/** The text of a cell of well-formed CSV. */
export function textOfCell(bytes: Buffer, start: number, end: number): string {
  const cell = bytes.toString('utf8', start, end);
  return cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell;
}

/** The text of a cell as bytes [start, end), without quotes around it; good until the next is taken. */
export class CellBytes {
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  end = 0;

  take(bytes: Buffer, start: number, end: number): void {
    if (hasDoubledQuotes(bytes, start, end)) {
      this.bytes = Buffer.from(textOfCell(bytes, start, end));
      this.start = 0;
      this.end = this.bytes.length;
      return;
    }
    const quotes = start < end && bytes[start] === quote ? 1 : 0;
    this.bytes = bytes;
    this.start = start + quotes;
    this.end = end - quotes;
  }

  /** Makes room for so many bytes of one's own, and keeps what there is. */
  grow(size: number): void {
    const grown = Buffer.alloc(2 * size);
    this.bytes.copy(grown);
    this.bytes = grown;
  }
}
