import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createRng } from '../../src/lib/rng.ts';

const blockLines = 4_096;

async function write(path: string, sizeBytes: number, line: () => string, head = ''): Promise<void> {
  const blocks = function* (): Generator<Buffer> {
    let written = 0;
    if (head !== '') yield Buffer.from(head);
    while (written < sizeBytes) {
      const block = Buffer.from(Array.from({ length: blockLines }, line).join(''));
      written += block.length;
      yield block;
    }
  };
  await pipeline(Readable.from(blocks()), createWriteStream(path));
}

/** Words as a text has them: of 200,000, by Zipf's law, of 2 to 10 letters, twelve or so a line. Same seed, same text. */
export async function writeText(path: string, sizeBytes: number, seed = 'text'): Promise<void> {
  const rng = createRng(seed);
  const letters = 'etaoinshrdlcumwfgypbvk';
  const words = Array.from({ length: 200_000 }, (_, index) => {
    let word = '';
    for (let rest = index + 20; rest > 0; rest = Math.floor(rest / 22)) word += letters[rest % 22] ?? '';
    return word.repeat(1 + Math.floor(rng.next() * 2));
  });
  // The inverse of the distribution function of 1/rank: rank = size^u.
  const word = (): string => words[Math.floor(words.length ** rng.next()) - 1] ?? '';
  await write(path, sizeBytes, () => `${Array.from({ length: 12 }, word).join(' ')}\n`);
}

/** Lines of some 60 bytes that begin at random. */
export async function writeLines(path: string, sizeBytes: number): Promise<void> {
  const rng = createRng('lines');
  const piece = (): string => Math.floor(rng.next() * 2 ** 32).toString(36);
  await write(
    path,
    sizeBytes,
    () => `${piece()}${piece()} ${piece()} some words behind the key ${piece()}\n`,
  );
}

/** Sales: an id, a shop of 40, a customer of so many, an amount, a day; some 51 bytes a row. */
export async function writeSales(path: string, sizeBytes: number, customers: number): Promise<void> {
  const rng = createRng('sales');
  let id = 0;
  const below = (bound: number): number => Math.floor(rng.next() * bound);
  const line = (): string =>
    `${String(++id)},shop-${String(below(40))},${String(below(customers))},${String(below(100_000) / 100)},2026-${String(1 + below(12)).padStart(2, '0')}-${String(1 + below(28)).padStart(2, '0')},some note\n`;
  await write(path, sizeBytes, line, 'id,shop,customer,amount,day,note\n');
}

/** Customers, one a row. */
export async function writeCustomers(path: string, customers: number): Promise<void> {
  const rng = createRng('customers');
  let id = 0;
  const line = (): string =>
    id >= customers
      ? ''
      : `${String(id++)},name ${Math.floor(rng.next() * 1e9).toString(36)},city-${String(Math.floor(rng.next() * 500))}\n`;
  await write(path, customers * 22, line, 'customer,name,city\n');
}
