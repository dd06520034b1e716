/** A seeded stream of random numbers: same seed, same numbers, on every machine. */
export interface Rng {
  /** Uniform in [0, 1). */
  next(): number;
  /** An independent stream, the same for the same name; reading from either does not move the other. */
  fork(name: string): Rng;
}

/** Four well-mixed words of a text (xmur3). */
function seedWords(text: string): [number, number, number, number] {
  let hash = 1779033703 ^ text.length;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 3432918353);
    hash = (hash << 13) | (hash >>> 19);
  }
  const word = (): number => {
    hash = Math.imul(hash ^ (hash >>> 16), 2246822507);
    hash = Math.imul(hash ^ (hash >>> 13), 3266489909);
    return (hash ^= hash >>> 16) >>> 0;
  };
  return [word(), word(), word(), word()];
}

/** The stream that `seed` names (sfc32). */
export function createRng(seed: string): Rng {
  let [a, b, c, counter] = seedWords(seed);
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4294967296;
  };
  for (let i = 0; i < 12; i++) next(); // The first outputs still resemble the seed.
  return { next, fork: (name) => createRng(`${seed}/${name}`) };
}
