import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';

const text = Buffer.from(
  Array.from({ length: 2_000 }, (_, line) => `${String(line).padStart(7)}\n`).join(''),
);
const worker = { kind: 'fargate' } as const;

let system: EmbeddedSystem;

beforeAll(async () => {
  const parameters = { [ParameterName.heartbeatMs]: '300', [ParameterName.tickMs]: '100' };
  // Room for four tasks.
  system = await EmbeddedSystem.start({ slots: 2, parameters });
}, 400_000);
afterAll(() => system.stop());

/** Two tasks whose workers stay for the one that reads them; the second waits for a file. */
const twoKept = (input: string, gate: string): JobSpecInput => ({
  name: 'kept',
  policy: 'none',
  storage: 'worker-local',
  stages: [
    {
      name: 'pass',
      operator: 'exec',
      worker,
      options: {
        command: ['sh', '-c', `while [ "$OUTRIDER_TASK" = 1 -a ! -e '${gate}' ]; do sleep 0.1; done; cat`],
      },
      inputs: [{ s3: [input], splitBytes: text.length / 2 }],
      partitions: 1,
    },
    { name: 'merge', operator: 'merge-lines', worker, inputs: [{ stage: 'pass', pattern: 'all-to-all' }] },
  ],
});

const resultsOf = (jobId: string, count: number): Promise<unknown> =>
  system.until(`${String(count)} outputs`, async () => {
    const { results } = await system.outcomes(jobId);
    return results.length >= count || undefined;
  });

it('two jobs go on whose workers that stay for readers have taken all room of Fargate', async () => {
  const input = await system.put('lines', text);
  const [gate, open] = [join(system.dir, 'gate'), join(system.dir, 'open')];
  await writeFile(open, '');
  const first = await system.submit(twoKept(input, gate));
  await resultsOf(first, 1);
  const second = await system.submit(twoKept(input, open));
  await resultsOf(second, 2);
  // Now three workers stay, and the fourth place is taken by the last task that is to stay.
  await writeFile(gate, '');
  for (const jobId of [first, second]) {
    const job = await system.ended(jobId, 240_000);
    expect(job.error).toBeUndefined();
    expect((await system.output(job)).equals(text)).toBe(true);
    const { attempts } = await system.outcomes(jobId);
    expect(attempts.flatMap(({ failure }) => failure?.cause ?? [])).toEqual([]);
  }
  await expectNothingLeft(system);
}, 400_000);
