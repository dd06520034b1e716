/** An evenly thinned copy of a stream of unknown length: every 1st, 2nd, 4th … item, at most `max` of them. */
export class Thinned<T> {
  /** What is kept, in order. */
  items: T[] = [];
  private seen = 0;
  private stride = 1;
  private readonly max: number;

  /** `max` must be at least 1. */
  constructor(max: number) {
    this.max = max;
  }

  /** Offers the next item; `make` is called only if it is kept. */
  add(make: () => T): void {
    if (this.seen++ % this.stride !== 0) return;
    if (this.items.length === this.max) {
      this.items = this.items.filter((_, at) => at % 2 === 0);
      this.stride *= 2;
      if ((this.seen - 1) % this.stride !== 0) return;
    }
    this.items.push(make());
  }
}
