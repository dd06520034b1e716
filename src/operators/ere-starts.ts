import type { Backward, Line } from './ere-automaton.ts';
import { edge } from './ere-program.ts';
import type { Work } from './ere-work.ts';

/** Tells at which places of a line matches begin, after one reading of it from its end. */
export class Starts {
  private marks = new Uint8Array(4_096);
  private readonly backward: Backward;
  private line: Line = { bytes: Buffer.alloc(0), start: 0, end: 0 };
  private state = 0;
  private at = 0;

  constructor(backward: Backward) {
    this.backward = backward;
  }

  open(line: Line): void {
    const { start, end } = line;
    this.line = line;
    if (this.marks.length <= end - start) this.marks = new Uint8Array(2 * (end - start));
    this.at = end;
    this.state = this.backward.begin();
  }

  /** Whether all is known; if not, others should have their turn before this is called again. */
  scan({ bytes, start }: Line, work: Work): boolean {
    const { backward, marks } = this;
    let { at, state } = this;
    let { table } = backward;
    const from = at;
    for (; at >= start; at--) {
      const symbol = at > start ? (bytes[at - 1] ?? edge) : edge;
      let step = table[state + symbol] ?? -1;
      if (step < 0) {
        if (work.wantsRest()) break;
        step = backward.makeStep(state, symbol);
        table = backward.table;
      }
      marks[at - start] = step & 1;
      state = step >> 1;
    }
    work.steps += from - at;
    this.at = at;
    this.state = state;
    return at < start;
  }

  /** The first place of the line at or after `from` where a match begins; −1 where none does. */
  next(from: number): number {
    const { marks, line } = this;
    const size = line.end - line.start;
    for (let at = from - line.start; at <= size; at++) if (marks[at] === 1) return line.start + at;
    return -1;
  }
}
