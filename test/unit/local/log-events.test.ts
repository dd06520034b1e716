import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LogPlace, readLogEvents } from '../../../src/local/logs/log-events.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'outrider-logs-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const at = (second: number): string =>
  `{"at":"2026-01-01T00:00:0${String(second)}.000Z","n":${String(second)}}`;
const all = (): boolean => true;

describe('readLogEvents', () => {
  it('merges streams by time, and gives lines without a time that of the line before', async () => {
    await writeFile(join(directory, 'one.log'), `${at(1)}\nEND RequestId: x\n${at(4)}\n`);
    await writeFile(join(directory, 'two.log'), `${at(2)}\n`);
    const events = (await readLogEvents([directory], 0, all)).map(({ event }) => event);
    expect(events.map(({ logStreamName, message }) => [logStreamName, message])).toEqual([
      ['one', at(1)],
      ['one', 'END RequestId: x'],
      ['two', at(2)],
      ['one', at(4)],
    ]);
    expect(events[1]?.timestamp).toBe(Date.parse('2026-01-01T00:00:01Z'));
  });

  it('cuts at line feeds alone, wherever the bytes of a file are cut as it is read', async () => {
    const separators = ['\u2028', '\u2029', '\r', '\v', '\u0085'].map((each) => `before${each}after`);
    const lines = [at(1), ...separators, '', 'é'.repeat(100_000), 'with no end'];
    await writeFile(join(directory, 'one.log'), lines.join('\n'));
    await writeFile(join(directory, 'two.log'), `${at(2)}\r\nlast\r\n`);
    const events = await readLogEvents([directory], 0, all);
    expect(events.map(({ event: { message } }) => message)).toEqual([...lines, at(2), 'last']);
  });

  it('does not read files that were last written to before the time asked for', async () => {
    await writeFile(join(directory, 'old.log'), `${at(1)}\n`);
    await utimes(join(directory, 'old.log'), 1_000, 1_000);
    expect(await readLogEvents([directory], 2_000_000, all)).toEqual([]);
  });

  it('has nothing to tell of directories that are not there', async () => {
    expect(await readLogEvents([join(directory, 'none')], 0, all)).toEqual([]);
  });

  it('reads the oldest of all streams, so many at a time, in whichever files they lie', async () => {
    await writeFile(join(directory, 'one.log'), [at(2), at(2), at(5)].map((line) => `${line}\n`).join(''));
    await writeFile(join(directory, 'two.log'), [at(1), at(2), at(4)].map((line) => `${line}\n`).join(''));
    const pages: number[][] = [];
    let after: LogPlace | undefined;
    do {
      const page = await readLogEvents([directory], 0, all, { limit: 2, ...(after && { after }) });
      pages.push(page.map(({ event }) => new Date(event.timestamp).getUTCSeconds()));
      after = page.at(-1)?.place;
    } while (after !== undefined);
    expect(pages).toEqual([[1, 2], [2, 2], [4, 5], []]);
  });

  it('holds no more than it was asked for of files with many lines', async () => {
    const lines = Array.from({ length: 12_000 }, (_, index) => {
      const time = new Date(Date.UTC(2026, 0, 1) + 12_000 - index).toISOString();
      return `{"at":"${time}"}\n`;
    });
    await writeFile(join(directory, 'newest-first.log'), lines.join(''));
    const found = await readLogEvents([directory], 0, all, { limit: 3 });
    expect(found.map(({ event }) => event.timestamp - Date.UTC(2026, 0, 1))).toEqual([1, 2, 3]);
  });
});
