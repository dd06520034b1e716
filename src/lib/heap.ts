/** A binary heap: takes items in any order and gives back the first by `isBefore`. */
export class Heap<T> {
  private readonly items: T[] = [];
  private readonly isBefore: (a: T, b: T) => boolean;

  /** @param isBefore - a strict order; items that it does not order come back in no particular order. */
  constructor(isBefore: (a: T, b: T) => boolean) {
    this.isBefore = isBefore;
  }

  get size(): number {
    return this.items.length;
  }

  /** The first item, left where it is; undefined when empty. */
  peek(): T | undefined {
    return this.items[0];
  }

  push(item: T): void {
    let place = this.items.length;
    this.items.push(item);
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = this.items[above];
      if (parent === undefined || !this.isBefore(item, parent)) break;
      this.items[place] = parent;
      place = above;
    }
    this.items[place] = item;
  }

  /** Removes the first item; undefined when empty. */
  pop(): T | undefined {
    const first = this.items[0];
    const last = this.items.pop();
    if (last !== undefined && this.items.length > 0) this.sink(last);
    return first;
  }

  private sink(item: T): void {
    const end = this.items.length;
    let place = 0;
    for (let below = 1; below < end; below = 2 * place + 1) {
      let child = this.items[below];
      const right = this.items[below + 1];
      if (child === undefined) break;
      if (right !== undefined && this.isBefore(right, child)) {
        child = right;
        below += 1;
      }
      if (!this.isBefore(child, item)) break;
      this.items[place] = child;
      place = below;
    }
    this.items[place] = item;
  }
}
