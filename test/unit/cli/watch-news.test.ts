import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ApiClient } from '../../../src/cli/api-client.ts';
import { ServiceUnavailableError } from '../../../src/cli/failures.ts';
import { watchJob } from '../../../src/cli/watch-job.ts';
import { InvalidInputError } from '../../../src/contracts/errors.ts';
import type { JobRecord } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { jobRecord } from '../report/report-records.ts';
import { memoryConsole } from './fixtures.ts';

const hour = 3_600_000;

/** A job that has ended at the third question. */
function clientOf(asked: { count: number }): ApiClient {
  const unused = (): never => {
    throw new Error('only the job is asked for');
  };
  return {
    apiUrl: 'http://127.0.0.1',
    submit: unused,
    plan: unused,
    cancel: unused,
    setDeadline: unused,
    allocations: unused,
    journal: unused,
    list: unused,
    attempts: unused,
    job: () => {
      asked.count += 1;
      const ended = { state: 'succeeded', endedAt: epochMs(1_001_000) } as const;
      return Promise.resolve(jobRecord(asked.count < 3 ? { state: 'running' } : ended));
    },
  };
}

it('asks again as soon as there may be news, however long the pause', async () => {
  const asked = { count: 0 };
  const left: boolean[] = [];
  const { state } = await watchJob(clientOf(asked), 'job', memoryConsole('/').console, {
    quiet: true,
    signal: new AbortController().signal,
    pollMs: () => hour,
    news: async (signal) => {
      await Promise.resolve();
      signal.addEventListener('abort', () => left.push(true));
    },
  });
  expect(state).toBe('succeeded');
  expect(asked.count).toBe(3);
  // Each wait for news is let go with its pause.
  expect(left).toEqual([true, true]);
});

describe('a service that gives no answer', () => {
  const outage = new ServiceUnavailableError('no answer');
  /** Which questions are answered, from the first on; the last one for ever. */
  const answering = (answers: readonly boolean[]): { client: ApiClient; asked: { count: number } } => {
    const asked = { count: 0 };
    const client = clientOf({ count: 0 });
    const job = (): Promise<JobRecord> =>
      (answers[asked.count++] ?? answers.at(-1)) === true ? client.job('job') : Promise.reject(outage);
    return { client: { ...client, job }, asked };
  };
  const options = { quiet: true, signal: new AbortController().signal, pollMs: () => 1 };
  const { console } = memoryConsole('/');

  it('is asked again, as the job goes on meanwhile', async () => {
    const { client, asked } = answering([true, ...Array.from({ length: 20 }, () => false), true, true]);
    expect((await watchJob(client, 'job', console, options)).state).toBe('succeeded');
    expect(asked.count).toBe(23);
  });

  it('is told of once', async () => {
    const { client } = answering([true, false, false, true, true]);
    const { console: shown, written } = memoryConsole('/');
    await watchJob(client, 'job', shown, { ...options, quiet: false });
    expect(written.err).toBe('job running\nno answer: asked again for up to 10m00s\njob succeeded\n');
  });

  it('is not asked for ever', async () => {
    const { client, asked } = answering([true, false]);
    // Each question takes ten seconds, whatever else this machine does.
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => asked.count * 10_000);
    onTestFinished(() => {
      clock.mockRestore();
    });
    await expect(watchJob(client, 'job', console, { ...options, outageMs: 30_000 })).rejects.toBe(outage);
    expect(asked.count).toBe(4);
  });

  it('is given up at once where it has never given one', async () => {
    const { client, asked } = answering([false, true]);
    await expect(watchJob(client, 'job', console, options)).rejects.toBe(outage);
    expect(asked.count).toBe(1);
  });

  it('is asked again where it has answered the submission, though it has never given one since', async () => {
    const { client, asked } = answering([false, false, true, true, true]);
    const submitted = { ...options, hasAnswered: true };
    expect((await watchJob(client, 'job', console, submitted)).state).toBe('succeeded');
    expect(asked.count).toBe(5);
  });

  it.each([429, 503])('is asked again where all that it has said is that it is busy: %d', async (status) => {
    const { client } = answering([true]);
    const busy = new ServiceUnavailableError('cannot serve now', { status });
    const job = vi
      .fn<ApiClient['job']>((id) => client.job(id))
      .mockRejectedValueOnce(busy)
      .mockRejectedValueOnce(outage);
    expect((await watchJob({ ...client, job }, 'job', console, options)).state).toBe('succeeded');
    expect(job).toHaveBeenCalledTimes(5);
  });

  it('is not asked for ever that is busy all the time', async () => {
    const { client } = answering([true]);
    const busy = new ServiceUnavailableError('cannot serve now', { status: 503 });
    const job = vi.fn<ApiClient['job']>().mockRejectedValue(busy);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => job.mock.calls.length * 10_000);
    onTestFinished(() => {
      clock.mockRestore();
    });
    const bounded = { ...options, outageMs: 30_000 };
    await expect(watchJob({ ...client, job }, 'job', console, bounded)).rejects.toBe(busy);
    expect(job).toHaveBeenCalledTimes(4);
  });

  it('is not asked again where it has refused', async () => {
    const { client } = answering([true]);
    const refusal = new InvalidInputError('refuses these AWS credentials');
    const answer = await client.job('job');
    const job = vi.fn<ApiClient['job']>().mockRejectedValue(refusal).mockResolvedValueOnce(answer);
    await expect(watchJob({ ...client, job }, 'job', console, options)).rejects.toBe(refusal);
    expect(job).toHaveBeenCalledTimes(2);
  });
});

it('asks at its pace where news never come, and ends by its signal', async () => {
  const asked = { count: 0 };
  const never = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        resolve();
      });
    });
  const options = { quiet: true, news: never, console: memoryConsole('/').console };
  const running = new AbortController();
  const job = await watchJob(clientOf(asked), 'job', options.console, {
    ...options,
    signal: running.signal,
    pollMs: () => 1,
  });
  expect(job.state).toBe('succeeded');

  const reason = new Error('interrupted');
  const interrupted = watchJob(clientOf({ count: 0 }), 'job', options.console, {
    ...options,
    signal: running.signal,
    pollMs: () => hour,
  });
  running.abort(reason);
  await expect(interrupted).rejects.toBe(reason);
});
