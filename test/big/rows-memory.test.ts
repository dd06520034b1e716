import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { builtinJob } from '../../src/operators/builtin-jobs.ts';
import { writeCustomers, writeSales } from '../bench/inputs.ts';
import { bigGib, bigPartitions, isBig, runBelow512Mb, staged } from '../support/big-job.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

const customers = bigGib * 1_000_000;

async function sales(): Promise<{ dir: string; system: EmbeddedSystem }> {
  const dir = await mkdtemp(join(tmpdir(), 'outrider-big-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeSales(join(dir, 'sales'), bigGib * 1024 ** 3, customers);
  const system = await EmbeddedSystem.start({ slots: 2 });
  onTestFinished(() => system.stop());
  return { dir, system };
}

const run = (cwd: string, script: string): string =>
  execFileSync(
    'bash',
    ['-c', `set -o pipefail; export LC_ALL=C; sort() { command sort -S 256M -T . "$@"; }; ${script}`],
    {
      cwd,
      encoding: 'utf8',
    },
  );

// Some minutes, and 8 GB of disk for 1 GB.
describe.skipIf(!isBig)(`${bigGib} GB of rows, by workers below 512 MB`, () => {
  it(`are joined with ${customers} others`, { timeout: 1_800_000 }, async () => {
    const { dir, system } = await sales();
    await writeCustomers(join(dir, 'customers'), customers);
    const spec = builtinJob('join', {
      inputs: [await staged(system, join(dir, 'sales'))],
      right: [await staged(system, join(dir, 'customers'))],
      leftKey: 'customer',
      partitions: bigPartitions,
    });
    await runBelow512Mb(system, spec, join(dir, 'joined'));
    run(
      dir,
      `tail -n +2 customers | sort -t, -k1,1 > right
      tail -n +2 sales | sort -t, -k3,3 | join -t, -1 3 -2 1 -o 1.1,1.2,1.3,1.4,1.5,1.6,2.2,2.3 - right | sort > expected
      tail -n +2 joined | sort | cmp - expected`,
    );
    expect(run(dir, 'head -1 joined')).toBe('id,shop,customer,amount,day,note,name,city\n');
    expect(Number(run(dir, 'wc -l < expected'))).toBeGreaterThan(bigGib * 15_000_000);
  });
});
