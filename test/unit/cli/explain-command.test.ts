import { describe, expect, it } from 'vitest';
import { explanationSchema } from '../../../src/contracts/explanation.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { jobRecord, stageSummary } from '../report/report-records.ts';
import { FakeService, jobId } from './fake-service.ts';

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
  });
});
