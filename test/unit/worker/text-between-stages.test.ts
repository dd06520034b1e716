import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../../src/contracts/job-spec.ts';
import { DirectoryStore } from '../../support/directory-store.ts';
import { partsOf, runInWorker } from '../../support/run-in-worker.ts';

type Stages = JobSpecInput['stages'];

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'text-between-stages-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

/** What stages make of files, through a worker's own inputs, sorters, merges and outputs; each file is read by one task. */
async function run(
  files: readonly string[],
  stages: (files: readonly string[]) => Stages,
  sortBytes = 40 * 1024 * 1024,
): Promise<string> {
  const objects = new DirectoryStore(directory);
  const refs = files.map((_, index) => ({ bucket: 'input', key: `file-${String(index)}` }));
  for (const [index, ref] of refs.entries())
    await objects.write(ref, Buffer.from(files[index] ?? '', 'latin1'));
  const uris = refs.map(({ bucket, key }) => `s3://${bucket}/${key}`);
  const measured = await runInWorker(objects, { name: 'job', stages: stages(uris) }, directory, sortBytes);
  const paths = partsOf(measured.at(-1)?.tasks ?? 0).map((ref) => objects.pathOf(ref));
  return paths.map((path) => (existsSync(path) ? readFileSync(path, 'latin1') : '')).join('');
}

const cat = { operator: 'exec' as const, options: { command: ['/bin/cat'] } };
const all = { operator: 'grep' as const, options: { pattern: '^' } };

const text = [
  ...['id7\t', '\t', '', 'a\tb', 'a\t\t', '\tx', '\t\t', 'a\t\tb\t', 'plain', 'cr\r', '\xff\t', 'z'],
  '',
].join('\n');

describe('text that one stage writes and the next one reads', () => {
  it.each(['one-to-one', 'many-to-one'] as const)('comes byte for byte: %s', async (pattern) => {
    const output = await run([text], (s3) => [
      { name: 'first', ...cat, inputs: [{ s3: [...s3] }] },
      { name: 'second', ...cat, inputs: [{ stage: 'first', pattern }] },
      { name: 'third', ...all, inputs: [{ stage: 'second', pattern }] },
    ]);
    expect(output).toBe(text);
  });

  it('comes in order of keys all-to-all, where a key with and without a TAB behind it is one', async () => {
    const output = await run(['b\t1\na\t\nc\n', 'a\nc\t\nb\t\t\n\t\n'], (s3) => [
      { name: 'first', ...cat, inputs: [{ s3: [...s3] }], partitions: 1 },
      { name: 'second', ...cat, inputs: [{ stage: 'first', pattern: 'all-to-all' }] },
    ]);
    expect(output).toBe('\na\na\nb\t1\nb\t\t\nc\nc\n');
  });
});

describe('merge-lines of text that other stages write', () => {
  /** Lines with and without TABs, of values that are empty, short and longer than what is written at once. */
  const lines = Array.from({ length: 400 }, (_, at) => {
    const key = `key ${String((at * 7_919) % 97).padStart(3, '0')}${'y'.repeat(at % 9)}`;
    if (at % 5 === 0) return `${key}\n`;
    const value = at === 7 ? 'v'.repeat(300_000) : 'v'.repeat((at * 31) % 211);
    return `${key}\t${String(at)}\t${value}\n`;
  });
  const files = [lines.slice(0, 150).join(''), lines.slice(150).join('')];
  const keyOf = (line: string): string => line.slice(0, line.search(/[\t\n]/));
  /** By key; lines of one key as they came. */
  const expected = lines
    .map((line) => ({ line, key: keyOf(line) }))
    .toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
    .map(({ line }) => line)
    .join('');

  it.each([40 * 1024 * 1024, 20_000])(
    'writes whole lines of one stage, sorted in %i bytes',
    async (sortBytes) => {
      const stages = (s3: readonly string[]): Stages => [
        { name: 'find', ...all, inputs: [{ s3: [...s3] }], partitions: 1 },
        { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'find', pattern: 'all-to-all' }] },
      ];
      // Not by `toBe`, which would show all of it.
      expect((await run(files, stages, sortBytes)) === expected).toBe(true);
    },
  );

  it('writes whole lines of several stages', async () => {
    const names = ['one', 'two'];
    const output = await run(files, (s3) => [
      ...names.map((name, at) => ({
        ...{ name, ...all, partitions: 1 },
        inputs: [{ s3: s3.slice(at, at + 1) }],
      })),
      {
        name: 'merge',
        operator: 'merge-lines',
        inputs: names.map((stage) => ({ stage, pattern: 'all-to-all' as const })),
      },
    ]);
    expect(output === expected).toBe(true);
  });
});
