import { expect, it } from 'vitest';
import type { ApiClient } from '../../../src/cli/api-client.ts';
import { watchJob } from '../../../src/cli/watch-job.ts';
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
