/**
 * How fast and how lean the data path is, as ratios in one run: against coreutils on the same bytes, and against
 * itself on four times the input (memory must not grow with it). Run by `npm run bench`.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRng } from '../../src/lib/rng.ts';

const megabyte = 1024 * 1024;
const task = fileURLToPath(new URL('sort-task.ts', import.meta.url));
const jobTask = fileURLToPath(new URL('job-task.ts', import.meta.url));

/** Lines of about 60 bytes: a random key, then words. */
function makeText(sizeBytes: number): Buffer {
  const rng = createRng('bench');
  const words = Array.from({ length: 5_000 }, (_, index) => `w${index.toString(36)}${'x'.repeat(index % 7)}`);
  const pieces: string[] = [];
  for (let size = 0; size < sizeBytes;) {
    const line = `${rng.next().toString(36).slice(2, 12)} ${Array.from({ length: 7 }, () => words[Math.floor(rng.next() ** 3 * 5_000)]).join(' ')}\n`;
    pieces.push(line);
    size += line.length;
  }
  return Buffer.from(pieces.join(''));
}

interface TaskReport {
  readonly ms: number;
  readonly peakBytes: number;
}

/** Runs one task in a process of its own, so that its peak memory is its own. */
const runTask = (what: string, path: string, program = task): TaskReport =>
  JSON.parse(
    execFileSync(process.execPath, ['--max-semi-space-size=4', program, what, path]).toString(),
  ) as TaskReport;

function shellMs(script: string, path: string): number {
  const began = performance.now();
  const { status } = spawnSync('sh', ['-c', script, 'sh', path], { env: { ...process.env, LC_ALL: 'C' } });
  if (status !== 0) throw new Error(`${script} failed`);
  return performance.now() - began;
}

const dir = await mkdtemp(join(tmpdir(), 'outrider-bench-'));
try {
  const small = join(dir, 'small');
  const large = join(dir, 'large');
  await writeFile(small, makeText(32 * megabyte));
  await writeFile(large, makeText(128 * megabyte));
  const sorted = runTask('sort', small);
  const sortedLarge = runTask('sort', large);
  const counted = runTask('tokenize', small);
  const mapped = runTask('map-filter', small, jobTask);
  const reduced = runTask('reduce-by-key', small, jobTask);
  const speed = ({ ms }: TaskReport): string => `${String(Math.round(32 / (ms / 1_000)))} MB/s of one core`;
  const round = (value: number): number => Math.round(value * 100) / 100;
  const rows = [
    {
      what: 'sort 128 MB, time over that of coreutils sort --parallel=1',
      ratio: round(sortedLarge.ms / shellMs('sort --parallel=1 -S 64M "$1" > /dev/null', large)),
    },
    {
      what: 'sort, time of 128 MB over that of 32 MB (4 is linear)',
      ratio: round(sortedLarge.ms / sorted.ms),
    },
    {
      what: 'sort, peak memory of 128 MB over that of 32 MB (1 is bounded)',
      ratio: round(sortedLarge.peakBytes / sorted.peakBytes),
    },
    {
      what: `job in TypeScript, map and filter of 32 MB, time over that of cut | grep (${speed(mapped)})`,
      ratio: round(mapped.ms / shellMs('cut -b1-40 "$1" | grep w1 > /dev/null', small)),
    },
    {
      what: `job in TypeScript, words reduced by key of 32 MB, time over that of awk (${speed(reduced)})`,
      ratio: round(
        reduced.ms /
          shellMs(
            `awk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print w, n[w] }' "$1" > /dev/null`,
            small,
          ),
      ),
    },
    {
      what: 'word count of 32 MB, time over that of tr | sort | uniq -c',
      ratio: round(
        counted.ms / shellMs(String.raw`tr -s '[:space:]' '\n' < "$1" | sort | uniq -c > /dev/null`, small),
      ),
    },
  ];
  if (process.argv.includes('--json')) console.log(JSON.stringify(rows));
  else console.table(rows);
} finally {
  await rm(dir, { recursive: true });
}
