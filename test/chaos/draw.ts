import { createRng, type Rng } from '../../src/lib/rng.ts';

/** Choices that a seed makes: the same name, the same choices, on every machine. */
export class Draw {
  readonly name: string;
  private readonly rng: Rng;

  constructor(name: string) {
    this.name = name;
    this.rng = createRng(name);
  }

  /** Choices of its own, which neither move these nor are moved by them. */
  fork(name: string): Draw {
    return new Draw(`${this.name}/${name}`);
  }

  /** Uniform in [0, 1). */
  next(): number {
    return this.rng.next();
  }

  /** A whole number from `least` to `most`. */
  int(least: number, most: number): number {
    return least + Math.floor(this.rng.next() * (most - least + 1));
  }

  /** Whether something of this probability happens. */
  chance(probability: number): boolean {
    return this.rng.next() < probability;
  }

  /** One of a list, which must not be empty. */
  pick<T>(values: readonly T[]): T {
    const value = values[this.int(0, values.length - 1)];
    if (value === undefined && values.length === 0) throw new Error('nothing to pick from');
    return value as T;
  }

  /** One of several, each as likely as its weight says. */
  weighted<T>(choices: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.rng.next() * choices.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, value] of choices) {
      left -= weight;
      if (left < 0) return value;
    }
    return this.pick(choices.map(([, value]) => value));
  }

  /** So many things, made one after another. */
  times<T>(count: number, make: (index: number) => T): T[] {
    return Array.from({ length: count }, (_, index) => make(index));
  }
}
