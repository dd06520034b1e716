import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng } from '../../src/lib/rng.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

/** Set it to 20 for a measurement of what cloning gains: each run prints its time. */
const runs = Number(process.env['OUTRIDER_CLONE_RUNS'] ?? '2');

const rng = createRng('lines');
const text = Buffer.from(
  Array.from({ length: 600 }, (_, line) => `${rng.next().toString(36)} line ${line}\n`).join(''),
);
const expected = coreutils('sort', [], text);

let system: EmbeddedSystem;
let input: string;
let marks: string;

beforeAll(async () => {
  marks = await mkdtemp(join(tmpdir(), 'outrider-marks-'));
  system = await EmbeddedSystem.start({ slots: 24, parameters: { [ParameterName.heartbeatMs]: '300' } });
  input = await system.put('lines', text);
});

afterAll(async () => {
  await system.stop();
  await rm(marks, { recursive: true, force: true });
});

/** Six maps and two reducers. The first attempt of any map to start takes eight times as long as the others. */
const straggling = (name: string, policy: 'dolly' | 'none'): JobSpecInput => ({
  name,
  policy,
  // However many runs there are, p stays what it is at first: only the slot that the straggler takes is unlucky.
  policyConfig: { dolly: { budgetShare: 1, utilizationCeiling: 1, mostClones: 2, minAttempts: 1_000_000 } },
  stages: [
    {
      name: 'slow',
      operator: 'exec',
      options: {
        command: [
          'sh',
          '-c',
          `if mkdir ${join(marks, name)} 2>/dev/null; then sleep 8; else sleep 1; fi; cat`,
        ],
      },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / 6) }],
      partitions: 2,
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'slow', pattern: 'all-to-all' }] },
  ],
});

async function run(name: string, policy: 'dolly' | 'none') {
  const startedAt = Date.now();
  const jobId = await system.submit(straggling(name, policy));
  const job = await system.ended(jobId);
  if (runs > 2) console.log(`${policy} ${((Date.now() - startedAt) / 1_000).toFixed(1)} s`);
  expect(job.error).toBeUndefined();
  expect(coreutils('sort', [], await system.output(job)).equals(expected)).toBe(true);
  await expect.poll(() => system.leftovers(), { timeout: 15_000 }).toEqual([]);
  await expect
    .poll(() => system.capacity(), { timeout: 15_000 })
    .toMatchObject({ usedSlots: 0, cloneSlots: 0, grants: {} });
  return { job, attempts: (await system.api.attempts(jobId)).attempts };
}

describe('a job of eight tasks with one straggler', () => {
  it(
    'ends without it where its tasks are cloned, with exactly the right lines and nothing held',
    async () => {
      for (let count = 0; count < runs; count++) {
        const { job, attempts } = await run(`cloned-${count}`, 'dolly');
        expect(job.attempts).toMatchObject({ launched: 16, clones: 8, lost: 0 });
        const straggler = attempts.filter(({ progress }) => (progress?.phaseMs.compute ?? 0) >= 7_900);
        expect(straggler.filter(({ state }) => state === 'done')).toEqual([]);
      }
    },
    runs * 60_000,
  );

  it(
    'waits for it where they are not',
    async () => {
      for (let count = 0; count < runs; count++) {
        const { job } = await run(`plain-${count}`, 'none');
        expect(job.attempts).toMatchObject({ launched: 8, clones: 0, lost: 0 });
      }
    },
    runs * 60_000,
  );
});
