import { partitionOfRange } from '../worker/partition-of.ts';
import type { GroupForm } from './group-lines.ts';
import { OpenPiece, pieceBytesOf } from './open-piece.ts';

const newline = 0x0a;
const tab = 0x09;

/** What a cutter hands over. The bytes are good until the call that takes them has ended. */
export interface GroupTaker {
  /** Lines of groups of one partition. */
  piece(partition: number, lines: Buffer, rows: number): Promise<void> | undefined;
  /** A line, with its end, of a group that has texts to be looked at. */
  odd(line: Buffer): Promise<void> | undefined;
}

/** Cuts the lines of groups into pieces, by the hash of their keys. */
export class GroupCutter {
  readonly #partitions: number;
  readonly #lists: number;
  readonly #taker: GroupTaker;
  readonly #pieces: (OpenPiece | undefined)[] = [];
  readonly #pieceBytes: number;

  constructor(partitions: number, form: GroupForm, taker: GroupTaker) {
    this.#partitions = partitions;
    this.#lists = form.lists;
    this.#taker = taker;
    this.#pieceBytes = pieceBytesOf(partitions);
  }

  /** Takes whole lines. */
  async add(lines: Buffer): Promise<void> {
    for (let start = 0; start < lines.length;) {
      const keyEnd = lines.indexOf(tab, start);
      const next = lines.indexOf(newline, keyEnd) + 1;
      const wait = this.#hasLists(lines, next)
        ? this.#taker.odd(lines.subarray(start, next))
        : this.#keep(partitionOfRange(lines, start, keyEnd, this.#partitions), lines, start, next);
      if (wait !== undefined) await wait;
      start = next;
    }
  }

  /** Hands over what is left. */
  async flush(): Promise<void> {
    for (const [partition, piece] of this.#pieces.entries()) await this.#hand(partition, piece);
    this.#pieces.length = 0;
  }

  /** Whether a list at the end of the line before `next` has something in it. */
  #hasLists(lines: Buffer, next: number): boolean {
    for (let list = 1; list <= this.#lists; list++) if (lines[next - 1 - list] !== tab) return true;
    return false;
  }

  #keep(partition: number, lines: Buffer, start: number, next: number): Promise<void> | undefined {
    const piece = (this.#pieces[partition] ??= new OpenPiece());
    const wait =
      piece.used > 0 && piece.used + next - start > this.#pieceBytes
        ? this.#hand(partition, piece)
        : undefined;
    if (wait === undefined) piece.add(lines, start, next);
    else
      return wait.then(() => {
        piece.add(lines, start, next);
      });
    return undefined;
  }

  #hand(partition: number, piece: OpenPiece | undefined): Promise<void> | undefined {
    if (piece === undefined || piece.used === 0) return undefined;
    const bytes = piece.bytes.subarray(0, piece.used);
    const { rows } = piece;
    piece.empty(this.#pieceBytes);
    return this.#taker.piece(partition, bytes, rows);
  }
}
