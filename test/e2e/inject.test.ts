import { execFileSync } from 'node:child_process';
import { readdir, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng } from '../../src/lib/rng.ts';
import { parseInjection } from '../../src/local/inject/injection.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';
import { Workplace } from './command.ts';

const tasks = 8;
/** Far more than pipes hold, so that what a task has read tells how far it is. */
const taskBytes = 1024 * 1024;

/** Lines that all differ; any lost or doubled one shows. */
const rng = createRng('lines');
const text = Buffer.from(
  Array.from({ length: 500_000 }, (_, line) => `${rng.next().toString(36)} ${line}\n`)
    .join('')
    .slice(0, tasks * taskBytes - 1)
    .concat('\n'),
);
const expected = coreutils('sort', [], text);

/** Passes its input on bit by bit, with short pauses, so that it can be struck, and be slow, at any point. */
const program = `
  for await (const chunk of process.stdin) {
    for (let at = 0; at < chunk.length; at += 4096) {
      process.stdout.write(chunk.subarray(at, at + 4096));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }`;

const unhurried = (input: string, kind: 'lambda' | 'fargate' = 'lambda'): JobSpecInput => ({
  name: 'unhurried',
  policy: 'none',
  stages: [
    {
      name: 'slow',
      operator: 'exec',
      options: { command: [process.execPath, '--input-type=module', '--eval', program] },
      worker: { kind },
      inputs: [{ s3: [input], splitBytes: taskBytes }],
      partitions: 2,
    },
    { name: 'merge', operator: 'merge-lines', inputs: [{ stage: 'slow', pattern: 'all-to-all' }] },
  ],
});

async function workplace(): Promise<Workplace> {
  const place = await Workplace.make();
  await writeFile(place.path('lines.txt'), text);
  await writeFile(place.path('job.json'), JSON.stringify(unhurried('lines.txt')));
  return place;
}

const run = ['run', 'job.json', '--output', 'out', '--slots', '8'] as const;

/** Whether any child of a process stands still. */
function hasStoppedChild(pid: number | undefined): boolean {
  const states = execFileSync('ps', ['-A', '-o', 'ppid=,stat='], { encoding: 'utf8' }).split('\n');
  return states.some((line) => line.trim().startsWith(`${pid} `) && line.includes(' T'));
}

describe('a job with lost workers and refused launches', () => {
  it('gives exactly the right lines, and tells what was injected', async () => {
    const place = await workplace();
    const result = await place.run(...run, '--inject', 'kill=2,throttle=0.3', '--json');
    expect(result.exitCode).toBe(0);
    expect(coreutils('sort', [], await place.parts('out')).equals(expected)).toBe(true);
    expect(JSON.parse(result.out)).toMatchObject({
      state: 'succeeded',
      attempts: { lost: 2 },
      injected: { slow: 0, killed: 2, throttled: expect.any(Number) },
    });
    await place.expectNoProcesses();
  }, 180_000);

  it('gives exactly the right lines on Fargate, and holds nothing in the end', async () => {
    const system = await EmbeddedSystem.start({
      slots: 4,
      parameters: { [ParameterName.heartbeatMs]: '300', [ParameterName.claimLeaseMs]: '6000' },
      // Of this seed the first launch is refused: a call starts several tasks, so that there are few.
      injection: parseInjection('kill=1,spot=1,throttle=0.3,seed=3'),
    });
    try {
      const job = await system.ended(
        await system.submit(unhurried(await system.put('lines', text), 'fargate')),
        240_000,
      );
      expect(job.error).toBeUndefined();
      expect(coreutils('sort', [], await system.output(job)).equals(expected)).toBe(true);
      expect(system.stack.injected()).toMatchObject({ slow: 0, killed: 1, interrupted: 1 });
      // Nothing else is blamed for what befell those.
      const taken = new Set(system.stack.injected()?.places.interrupted);
      const { attempts } = await system.api.attempts(job.jobId);
      const blamed = attempts.flatMap(({ node = '', failure }) => (taken.has(node) ? (failure ?? []) : []));
      expect(blamed.filter(({ cause }) => cause !== 'interrupted')).toEqual([]);
      expect(system.stack.injected()?.throttled).toBeGreaterThan(0);
      await expectNothingLeft(system);
      await expect.poll(() => system.usedSlots(), { timeout: 15_000 }).toBe(0);
    } finally {
      await system.stop();
    }
  }, 300_000);
});

describe('a job with a slow node', () => {
  it.each(['none', 'outrider'] as const)(
    'gives exactly the right lines under %s',
    async (policy) => {
      const system = await EmbeddedSystem.start({
        slots: 8,
        parameters: { [ParameterName.heartbeatMs]: '300' },
        injection: parseInjection('slow=8x1'),
      });
      try {
        const spec = unhurried(await system.put('lines', text));
        const job = await system.ended(await system.submit({ ...spec, policy }));
        expect(job.error).toBeUndefined();
        expect(coreutils('sort', [], await system.output(job)).equals(expected)).toBe(true);
        expect(system.stack.injected()).toMatchObject({ slow: 1, killed: 0, throttled: 0, lostObjects: 0 });
        const copies = job.attempts.backups + job.attempts.restarts;
        if (policy === 'none') expect(copies).toBe(0);
        else expect(copies).toBeGreaterThan(0);
      } finally {
        await system.stop();
      }
    },
    180_000,
  );

  it.each(['SIGINT', 'SIGKILL'] as const)(
    'leaves no process behind, stopped or not, when %s ends the command',
    async (signal) => {
      const place = await workplace();
      const started = place.start(...run, '--inject', 'slow=20x8', '--quiet');
      await expect
        .poll(() => hasStoppedChild(started.process.pid), { timeout: 60_000, interval: 20 })
        .toBe(true);
      started.process.kill(signal);
      await started.finished;
      await place.expectNoProcesses();
      if (signal === 'SIGINT') expect(await readdir(place.temporary)).toEqual([]);
    },
    180_000,
  );
});
