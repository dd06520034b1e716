/**
 * What a shuffle moves and asks for, as ratios in one run: nothing of it is measured by the clock.
 * Run: `node test/bench/shuffle.ts [--json]`.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { joinRatio, sampledRatio } from '../support/shuffle-ratios.ts';

const round = (value: number): number => Math.round(value * 1_000) / 1_000;
const megabyte = 1024 * 1024;

/** Peak memory of a scheduler of 10,000 × 100, in a function of 512 MB, over the 300 MB that it may take. */
function schedulerRatio(): number {
  const script = fileURLToPath(new URL('../support/scheduler-memory.ts', import.meta.url));
  const bounds = ['--max-semi-space-size=25', '--max-old-space-size=460'];
  const printed = execFileSync(process.execPath, [...bounds, script, '10000', '100']).toString();
  return (JSON.parse(printed) as { peakBytes: number }).peakBytes / (300 * megabyte);
}

const rows = [
  { what: 'join of CSV, bytes shuffled over bytes of CSV', ratio: round(await joinRatio(20_000)) },
  {
    what: 'sort, bytes sampled over bytes of a split of 256 MiB',
    ratio: round(sampledRatio(256 * megabyte)),
  },
  { what: 'scheduler of 10,000 × 100 segments, peak memory over 300 MB', ratio: round(schedulerRatio()) },
];
if (process.argv.includes('--json')) console.log(JSON.stringify(rows));
else console.table(rows);
