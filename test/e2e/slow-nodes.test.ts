import { expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import type { AttemptRecord } from '../../src/contracts/records.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { parseInjection } from '../../src/local/inject/injection.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';

/** Passes its input on bit by bit, with short pauses: most of a second for each task. */
const program = `
  for await (const chunk of process.stdin)
    for (let at = 0; at < chunk.length; at += 4096) {
      process.stdout.write(chunk.subarray(at, at + 4096));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }`;
const taskBytes = 640 * 1024;
const mostJobs = 5;

const unhurried = (input: string): JobSpecInput => ({
  name: 'unhurried',
  policy: 'outrider',
  stages: [
    {
      name: 'slow',
      operator: 'exec',
      options: { command: [process.execPath, '--input-type=module', '--eval', program] },
      inputs: [{ s3: [input], splitBytes: taskBytes }],
    },
  ],
});

const linesOf = (tasks: number): Buffer => Buffer.alloc(tasks * taskBytes, `${'x'.repeat(63)}\n`);

// Tried again, since no job of ours decides which environment is handed a launch.
const byLuck = { timeout: 400_000, retry: 2 };

it(
  'is known to the next job, whose launches a worker there declines: they run elsewhere, and nothing has failed',
  byLuck,
  async () => {
    const system = await EmbeddedSystem.start({
      slots: 8,
      parameters: { [ParameterName.heartbeatMs]: '300' },
      injection: parseInjection('slow=8x1'),
    });
    try {
      const first = await system.ended(await system.submit(unhurried(await system.put('eight', linesOf(8)))));
      expect(first.error).toBeUndefined();
      const [slow] = system.stack.injected()?.places.slow ?? [];
      if (slow === undefined) throw new Error('no worker was slowed');
      const attemptsOf = async (jobId: string): Promise<readonly AttemptRecord[]> =>
        (await system.outcomes(jobId)).attempts;
      await system.until('the end of the attempt that was overtaken', async () =>
        (await attemptsOf(first.jobId)).every(({ state }) => state !== 'running') ? true : undefined,
      );
      const lines = linesOf(8);
      const input = await system.put('lines', lines);
      let declined: readonly AttemptRecord[] = [];
      // Whether the book knows enough yet, whether its node is idle, and which of several that are is handed a launch, is the host's to say.
      for (let jobs = 0; declined.length === 0 && jobs < mostJobs; jobs++) {
        const job = await system.ended(await system.submit(unhurried(input)));
        expect((await system.output(job)).equals(lines)).toBe(true);
        const attempts = await attemptsOf(job.jobId);
        declined = attempts.filter(({ failure }) => failure?.cause === 'declined');
        expect(job.attempts).toMatchObject({ declined: declined.length, lost: 0 });
        expect(job.stages[0]).toMatchObject({ failed: 0 });
      }
      expect(declined.length).toBeGreaterThan(0);
      expect(declined.every(({ failure }) => failure?.message.endsWith(slow))).toBe(true);
      expect(
        declined.every(({ claimedAt, progress }) => claimedAt === undefined && progress === undefined),
      ).toBe(true);
    } finally {
      await system.stop();
    }
  },
);
