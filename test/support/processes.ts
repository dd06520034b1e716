import { readdir, readFile } from 'node:fs/promises';
import { expect } from 'vitest';

/** Living processes (no zombies) whose command line holds `text`. */
export async function processesWith(text: string): Promise<readonly number[]> {
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const line = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '');
    if (line.includes(text)) found.push(Number(name));
  }
  return found;
}

/** None is left, or will be in a moment: a process that was killed takes a while to go. */
export const expectNoProcessWith = (text: string): Promise<void> =>
  expect.poll(() => processesWith(text), { timeout: 10_000 }).toEqual([]);
