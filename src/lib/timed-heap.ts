/**
 * A binary heap of numbered events by time, over typed arrays: no object per event. Events of one time come back in the
 * order of their numbers, so that equal inputs give equal orders.
 */
export class TimedHeap {
  #times: Float64Array;
  #ids: Int32Array;
  #size = 0;

  /** @param capacity - room made at first; it grows by itself. */
  constructor(capacity = 64) {
    this.#times = new Float64Array(Math.max(1, capacity));
    this.#ids = new Int32Array(Math.max(1, capacity));
  }

  get size(): number {
    return this.#size;
  }

  /** Time of the first event; Infinity where there is none. */
  get time(): number {
    return this.#size === 0 ? Infinity : (this.#times[0] ?? Infinity);
  }

  clear(): void {
    this.#size = 0;
  }

  push(time: number, id: number): void {
    if (this.#size === this.#times.length) this.#grow();
    const times = this.#times;
    const ids = this.#ids;
    let place = this.#size++;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const aboveTime = times[above] ?? 0;
      const aboveId = ids[above] ?? 0;
      if (time > aboveTime || (time === aboveTime && id > aboveId)) break;
      times[place] = aboveTime;
      ids[place] = aboveId;
      place = above;
    }
    times[place] = time;
    ids[place] = id;
  }

  /** Removes the first event and answers its number; -1 where there is none. */
  pop(): number {
    if (this.#size === 0) return -1;
    const first = this.#ids[0] ?? -1;
    this.#size--;
    this.#sink(this.#times[this.#size] ?? 0, this.#ids[this.#size] ?? 0);
    return first;
  }

  #sink(time: number, id: number): void {
    const times = this.#times;
    const ids = this.#ids;
    const end = this.#size;
    let place = 0;
    for (let child = 1; child < end; child = 2 * place + 1) {
      const right = child + 1;
      if (right < end && this.#isBefore(right, child)) child = right;
      const childTime = times[child] ?? 0;
      const childId = ids[child] ?? 0;
      if (time < childTime || (time === childTime && id < childId)) break;
      times[place] = childTime;
      ids[place] = childId;
      place = child;
    }
    times[place] = time;
    ids[place] = id;
  }

  #isBefore(a: number, b: number): boolean {
    const timeA = this.#times[a] ?? 0;
    const timeB = this.#times[b] ?? 0;
    return timeA < timeB || (timeA === timeB && (this.#ids[a] ?? 0) < (this.#ids[b] ?? 0));
  }

  #grow(): void {
    const times = new Float64Array(this.#times.length * 2);
    const ids = new Int32Array(this.#ids.length * 2);
    times.set(this.#times);
    ids.set(this.#ids);
    this.#times = times;
    this.#ids = ids;
  }
}
