import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { ParameterName } from '../../src/contracts/settings.ts';
import { createRng } from '../../src/lib/rng.ts';
import { coreutils } from '../support/coreutils.ts';
import { EmbeddedSystem } from '../support/embedded-system.ts';
import { expectNothingLeft } from '../support/nothing-left.ts';

/** 600 lines that all differ; any lost or doubled one shows. */
const rng = createRng('lines');
const text = Buffer.from(
  Array.from({ length: 600 }, (_, line) => `${rng.next().toString(36)} line ${line}\n`).join(''),
);
const expected = coreutils('sort', [], text);

let system: EmbeddedSystem;
let input: string;

beforeAll(async () => {
  // Losses are noticed after five heartbeats, a dead scheduler after a lease: short ones keep the tests short.
  system = await EmbeddedSystem.start({
    slots: 3,
    parameters: {
      [ParameterName.heartbeatMs]: '300',
      [ParameterName.leaseMs]: '1500',
      [ParameterName.claimLeaseMs]: '6000',
    },
  });
  input = await system.put('lines', text);
});

afterAll(async () => {
  await system.stop();
});

/** Every task of the first stage takes a while, so that it can be struck while it works. */
const slowSort = (name: string, kind: 'lambda' | 'fargate' = 'lambda'): JobSpecInput => ({
  name,
  policy: 'none',
  stages: [
    {
      name: 'slow',
      operator: 'exec',
      options: { command: ['sh', '-c', 'sleep 0.7; cat'] },
      worker: { kind },
      inputs: [{ s3: [input], splitBytes: Math.ceil(text.length / 6) }],
      partitions: 2,
    },
    {
      name: 'merge',
      operator: 'merge-lines',
      worker: { kind },
      inputs: [{ stage: 'slow', pattern: 'all-to-all' }],
    },
  ],
});

async function expectExactly(jobId: string): Promise<Awaited<ReturnType<EmbeddedSystem['ended']>>> {
  const job = await system.ended(jobId);
  expect(job.error).toBeUndefined();
  expect(coreutils('sort', [], await system.output(job)).equals(expected)).toBe(true);
  // The last loser may still be removing what it wrote, or the last write of Finish be under way.
  await expectNothingLeft(system);
  await expect.poll(() => system.usedSlots(), { timeout: 15_000 }).toBe(0);
  return job;
}

describe('a job whose processes are killed', () => {
  it.each(['lambda', 'fargate'] as const)(
    'ends with exactly the right lines when %s workers die at work',
    async (kind) => {
      const jobId = await system.submit(slowSort(`killed-${kind}`, kind));
      const killed = new Set<number>();
      while (killed.size < 3) {
        const victim = await system.until('a worker at work', async () => {
          const { attempts } = await system.api.attempts(jobId);
          if (!attempts.some(({ state }) => state === 'running')) return undefined;
          return system.processes('worker').find(({ pid, kind: each }) => each === kind && !killed.has(pid));
        });
        killed.add(victim.pid);
        process.kill(victim.pid, 'SIGKILL');
      }
      const job = await expectExactly(jobId);
      expect(job.attempts.lost).toBeGreaterThan(0);
    },
  );

  it('goes on when its scheduler is killed again and again', async () => {
    const jobId = await system.submit(slowSort('killed-scheduler'));
    const killed = new Set<number>();
    while (killed.size < 3) {
      const victim = await system.until('a scheduler at work', async () => {
        const { attempts } = await system.api.attempts(jobId);
        return attempts.length === 0
          ? undefined
          : system.processes('schedule').find(({ pid }) => !killed.has(pid));
      });
      killed.add(victim.pid);
      process.kill(victim.pid, 'SIGKILL');
    }
    const job = await expectExactly(jobId);
    expect(job.attempts).toMatchObject({ launched: 8, lost: 0 });
  });

  it('survives workers and scheduler dying together', async () => {
    const jobId = await system.submit(slowSort('killed-all'));
    await system.until('workers at work', async () => {
      const { attempts } = await system.api.attempts(jobId);
      return attempts.filter(({ state }) => state === 'running').length >= 2 || undefined;
    });
    for (const { pid } of [...system.processes('worker'), ...system.processes('schedule')])
      process.kill(pid, 'SIGKILL');
    await expectExactly(jobId);
  });
});

describe('submissions', () => {
  it('with one client token start one job, also at once', async () => {
    const request = { spec: slowSort('once'), clientToken: 'the-same' };
    const answers = await Promise.all([1, 2, 3].map(() => system.api.submit(request)));
    expect(new Set(answers.map(({ jobId }) => jobId)).size).toBe(1);
    expect(answers.filter(({ started }) => started)).toHaveLength(1);
    const job = await expectExactly(answers[0]?.jobId ?? '');
    expect(job.attempts.launched).toBe(8);
    expect(await system.api.submit(request)).toMatchObject({ started: false });
    const { jobs } = await system.api.list({ limit: 100 });
    expect(jobs.filter(({ name }) => name === 'once')).toHaveLength(1);
    await expect(system.api.submit({ ...request, spec: { ...request.spec, budget: 1 } })).rejects.toThrow(
      /clientToken/,
    );
  });

  it('that are cancelled leave nothing', async () => {
    const jobId = await system.submit(slowSort('cancelled'));
    await system.until('a worker at work', async () => {
      const { attempts } = await system.api.attempts(jobId);
      return attempts.some(({ state }) => state === 'running') || undefined;
    });
    await system.api.cancel(jobId);
    expect(await system.ended(jobId)).toMatchObject({ state: 'cancelled', parts: [] });
    await expectNothingLeft(system);
    await expect.poll(() => system.usedSlots(), { timeout: 15_000 }).toBe(0);
  });
});
