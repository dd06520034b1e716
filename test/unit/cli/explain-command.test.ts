import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { execute } from '../../../src/cli/main.ts';
import { keepRun } from '../../../src/cli/run-records.ts';
import { explanationSchema } from '../../../src/contracts/explanation.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { jobRecord, stageSummary } from '../report/report-records.ts';
import { attempt } from '../report/explain/explained-attempts.ts';
import { FakeService, jobId } from './fake-service.ts';
import { memoryConsole, scratchDir } from './fixtures.ts';

describe('explain', () => {
  it('explains a job as far as its records tell where nobody gives its log group, and says so', async () => {
    const service = new FakeService();
    await service.start();
    service.jobs.set(
      jobId,
      jobRecord({
        state: 'succeeded',
        endedAt: epochMs(1_002_000),
        stages: [stageSummary({ tasks: 1, done: 1 })],
      }),
    );
    service.attempts = [
      {
        attemptId: 'tokenize/0/0',
        state: 'done',
        order: 'continue',
        launchedAt: 1_000_100,
        claimedAt: 1_000_400,
        endedAt: 1_001_900,
        beat: 1,
      },
    ];
    const { exitCode, out, err } = await service.run('explain', jobId, '--json');
    expect([exitCode, err]).toEqual([0, '']);
    const told = explanationSchema.parse(JSON.parse(out));
    expect(told.log).toEqual({ state: 'unread', why: expect.stringContaining('--log-group is needed') });
    expect(told.path.map(({ kind, ms }) => [kind, ms])).toEqual([
      ['plan', 100],
      ['host-wait', 300],
      ['run', 1_500],
      ['end', 100],
    ]);
    expect((await service.run('explain', jobId)).out).toContain('is not told here: --log-group is needed');
    expect((await service.run('explain', jobId, 'tokenise')).err).toBe(
      `outrider: job ${jobId} has no stage "tokenise": its stages are tokenize; did you mean "tokenize"?\n`,
    );
    service.jobs.set(jobId, jobRecord());
    expect((await service.run('explain', jobId, 'tokenize')).err).toBe(
      `outrider: job ${jobId} is not planned yet: it has no stages to explain\n`,
    );
    service.jobs.set(jobId, { ...jobRecord(), state: 'failed' });
    expect((await service.run('explain', jobId, 'tokenize')).err).toBe(
      `outrider: job ${jobId} ended before it was planned: it has no stages to explain\n`,
    );
    expect((await service.run('status', jobId)).out).toContain('\nit ended before it was planned\n');
  });

  it('counts no time of a job that no stack goes on with beyond what is kept of it', async () => {
    const cwd = await scratchDir();
    const job = jobRecord({ state: 'running', stages: [stageSummary({ tasks: 1 })] });
    const lines = [
      {
        ...{ at: epochMs(1_003_000), source: 's' },
        text: JSON.stringify({ event: 'stage-opened', jobId, stage: 'tokenize' }),
      },
    ];
    const running = attempt('tokenize/0/0', { launched: 3_500, reported: 9_000, state: 'running' });
    await keepRun(join(cwd, '.outrider'), { job, attempts: { attempts: [running] }, lines });
    const { console, written } = memoryConsole(cwd);
    expect(await execute(['explain', jobId, '--json'], console)).toBe(0);
    const told = explanationSchema.parse(JSON.parse(written.out));
    expect(told.wallMs).toBe(9_000);
    expect(told.stages[0]?.told[0]?.attempts[0]).toMatchObject({ end: 'open', runMs: 5_400 });
    written.out = '';
    expect(await execute(['attempts', jobId], console)).toBe(0);
    expect(written.out).toMatch(/^tokenize\/0\/0 +running +0\.1s +5\.4s /m);
  });

  it('reads all decisions of a job whose code has printed a great deal', async () => {
    const cwd = await scratchDir();
    const job = jobRecord({ state: 'succeeded', endedAt: epochMs(1_002_000), stages: [stageSummary()] });
    const line = (ms: number, event: object) => {
      const at = epochMs(1_000_000 + ms);
      return { at, source: 's', text: JSON.stringify({ at: new Date(at), level: 'info', jobId, ...event }) };
    };
    const attemptId = 'tokenize/0/0';
    const lines = [
      line(0, { event: 'planned' }),
      ...Array.from({ length: 100_000 }, (_, index) =>
        line(1, { event: 'user-output', attemptId, stream: 'stdout', text: String(index) }),
      ),
      line(2, { event: 'given-up', attemptId, reason: 'silent' }),
    ];
    await keepRun(join(cwd, '.outrider'), { job, attempts: { attempts: [] }, lines });
    const { console, written } = memoryConsole(cwd);
    expect(await execute(['explain', jobId, '--json'], console)).toBe(0);
    const told = explanationSchema.parse(JSON.parse(written.out));
    expect(told.log).toEqual({ state: 'whole' });
    expect(told.actions).toMatchObject([{ kind: 'give-up', of: attemptId }]);
  });
});
