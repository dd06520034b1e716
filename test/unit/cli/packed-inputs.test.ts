import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createZstdCompress, gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { jobOptionsSchema } from '../../../src/cli/job-options.ts';
import { withHeldBytes } from '../../../src/cli/packed-inputs.ts';
import { prepareJob } from '../../../src/cli/prepare-job.ts';
import { scratchDir } from './fixtures.ts';

const mb = 1024 * 1024;
/** A table of so many bytes as text, whose rows are much alike. */
const table = (bytes: number): Buffer => Buffer.alloc(bytes, 'id,name\n1000,a name that all have\n');
const mixed = Buffer.from(
  Array.from({ length: 100_000 }, (_, at) => `${String(at)},${String((at * 7919) % 99_991)}\n`).join(''),
);

async function streamed(body: Uint8Array): Promise<Buffer> {
  const packing = createZstdCompress();
  packing.end(body);
  const chunks: Buffer[] = [];
  for await (const chunk of packing) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** What is told of a file of such a name and content; `read` has it as an object of S3. */
async function held(name: string, body: Buffer, isOnS3 = false): Promise<number | undefined> {
  const path = join(await scratchDir(), name);
  await writeFile(path, body);
  const read = ({ start, end }: { start: number; end: number }) => Promise.resolve(body.subarray(start, end));
  const file = { path, sizeBytes: body.length, ...(isOnS3 ? { read } : {}) };
  const [told] = await withHeldBytes('--right', [file], 32 * mb);
  return told?.heldBytes;
}

describe('what compressed files hold', () => {
  it.each([false, true])(
    'is told by their ends, however well they are packed (on S3: %s)',
    async (isOnS3) => {
      expect(await held('t.csv', table(1000), isOnS3)).toBe(1000);
      expect(await held('t.csv.gz', gzipSync(table(40 * mb)), isOnS3)).toBe(40 * mb);
      expect(await held('t.csv.zst', zstdCompressSync(table(40 * mb)), isOnS3)).toBe(40 * mb);
      expect(await held('t.csv.gz', gzipSync('id\n1\n'), isOnS3)).toBe(5);
      expect(await held('t.csv.gz', Buffer.alloc(0), isOnS3)).toBe(0);
    },
  );

  it('is about that of the members that are seen', async () => {
    const members = Buffer.concat(
      [table(20 * mb), table(20 * mb), table(2000)].map((part) => gzipSync(part)),
    );
    const told = (await held('t.csv.gz', members)) ?? 0;
    expect(told / (40 * mb)).toBeGreaterThan(0.9);
    expect(told / (40 * mb)).toBeLessThan(1.2);
  });

  it('is about that of the blocks of bzip2', async () => {
    const told = (await held('t.csv.bz2', execFileSync('bzip2', ['-1'], { input: mixed }))) ?? 0;
    expect(told / mixed.length).toBeGreaterThan(0.8);
    expect(told / mixed.length).toBeLessThan(1.3);
  });

  it('is not told where nothing but what is usual could be said', async () => {
    expect(await held('t.csv.zst', await streamed(mixed))).toBeUndefined();
    // Members of more than what is looked at, of which the last is small.
    const members = [gzipSync(mixed), gzipSync('1,2\n')];
    expect(members[0]?.length).toBeGreaterThan(128 * 1024);
    expect(await held('t.csv.gz', Buffer.concat(members))).toBeUndefined();
    expect(await held('t.csv.gz', Buffer.from('torn'))).toBeUndefined();
    const many = Array.from({ length: 1001 }, () => ({ path: '/gone.csv.gz', sizeBytes: 10 }));
    expect(new Set(await withHeldBytes('--right', many, 32 * mb))).toEqual(new Set(many));
    const large = [{ path: '/gone.csv.gz', sizeBytes: 33 * mb }];
    expect(await withHeldBytes('--right', large, 32 * mb)).toEqual(large);
  });
});

describe('a join', () => {
  it('broadcasts a compressed right-hand side by what it holds, and not one that is large', async () => {
    const cwd = await scratchDir();
    await writeFile(join(cwd, 'left.csv'), 'id\n1000\n');
    const stagesWith = async (bytes: number): Promise<string[]> => {
      await writeFile(join(cwd, 'right.csv.gz'), gzipSync(table(bytes)));
      const sides = { input: ['left.csv'], right: ['right.csv.gz'], leftKey: 'id', rightKey: 'id' };
      const job = await prepareJob('join', jobOptionsSchema.parse(sides), { cwd, inputs: 'any' });
      return job.specWith([]).stages.map(({ operator }) => operator ?? '');
    };
    expect(await stagesWith(20 * mb)).toContain('join-probe');
    expect(await stagesWith(40 * mb)).not.toContain('join-probe');
  });
});
