import type { Rng } from '../../lib/rng.ts';

/** What is left alone between two strikes: little, so that small jobs lose something too. */
const mostSpared = 2;

/** Draws which of all that passes is struck, in one of two ways, each as often as it may be, and a few between not at all. */
export class Strikes<Way extends string> {
  private readonly rng: Rng;
  private readonly ways: readonly [first: Way, second: Way];
  private readonly left: Record<Way, number>;
  private spared: number;

  constructor(rng: Rng, ways: readonly [first: Way, second: Way], most: Readonly<Record<Way, number>>) {
    this.rng = rng;
    this.ways = ways;
    this.left = { ...most };
    this.spared = this.drawSpared();
  }

  /** Whether nothing is struck any more. */
  get isOver(): boolean {
    const [first, second] = this.ways;
    return this.left[first] + this.left[second] === 0;
  }

  /** In which way what passes now is struck, which counts; undefined: it is spared. */
  next(): Way | undefined {
    if (this.isOver || this.spared-- > 0) return undefined;
    this.spared = this.drawSpared();
    const [first, second] = this.ways;
    const way = this.rng.next() * (this.left[first] + this.left[second]) < this.left[first] ? first : second;
    this.left[way] -= 1;
    return way;
  }

  private drawSpared(): number {
    return Math.floor(this.rng.next() * (mostSpared + 1));
  }
}
