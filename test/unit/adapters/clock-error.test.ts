import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { jobSession } from '../../../functions/shared/job-session.ts';
import { clockAheadMs } from '../../../src/adapters/aws/clock-error.ts';
import { SystemClock } from '../../../src/adapters/node/system-clock.ts';
import { listen } from '../../../src/local/http/listen.ts';

const server = Date.UTC(2030, 0, 1, 12);

describe('the error of a clock', () => {
  it.each([
    // Whole seconds: the server may have answered at 12:00:00.999.
    ['none, as far as the date tells', { sentAtMs: 900, receivedAtMs: 990 }, 0],
    ['none, before a second as seen by ours', { sentAtMs: -20, receivedAtMs: 0 }, 0],
    ['none that a slow answer would not explain', { sentAtMs: -3_000, receivedAtMs: 60_000 }, 0],
    ['ahead by a second and a half at least', { sentAtMs: 2_500, receivedAtMs: 2_700 }, 2_100],
    ['behind by a minute', { sentAtMs: -60_040, receivedAtMs: -60_000 }, -60_520],
    ['ahead by two hours', { sentAtMs: 7_200_000, receivedAtMs: 7_200_100 }, 7_199_550],
  ])('is %s', (_, { sentAtMs, receivedAtMs }, ms) => {
    const answer = { sentAtMs: server + sentAtMs, receivedAtMs: server + receivedAtMs, dateMs: server };
    expect(clockAheadMs(answer)).toBe(ms);
  });

  it('is taken from what the clock says', () => {
    vi.useFakeTimers({ toFake: ['Date'], now: server });
    onTestFinished(() => void vi.useRealTimers());
    expect(new SystemClock().now()).toBe(server);
    expect(new SystemClock(90_000).now()).toBe(server - 90_000);
  });
});

/** A table that holds one session, on a machine whose clock is behind ours by so much. */
async function sessionBehind(offMs: number) {
  let asked = 0;
  const table = await listen((_request, response) => {
    asked++;
    const date = new Date(Date.now() - offMs).toUTCString();
    response.writeHead(200, { 'content-type': 'application/x-amz-json-1.0', date });
    const keys = { accessKeyId: { S: 'id' }, secretAccessKey: { S: 'key' }, sessionToken: { S: 'token' } };
    response.end(JSON.stringify({ Item: keys }));
    return Promise.resolve();
  });
  onTestFinished(() => table.close());
  vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', table.endpoint);
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'own');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'own');
  onTestFinished(() => void vi.unstubAllEnvs());
  const session = jobSession({ region: 'us-east-1', env: process.env }, 'table', 'word');
  return { session, asked: () => asked, close: () => table.close() };
}

describe('the session of a job', () => {
  it.each([-7_200_000, -60_000, 60_000, 7_200_000])(
    'tells that our clock is ahead by %i ms, with the one read that all clients share',
    async (offMs) => {
      const { session, asked } = await sessionBehind(offMs);
      const aheadMs = await session.aheadMs();
      // The date is of whole seconds.
      expect(Math.abs(aheadMs - offMs)).toBeLessThanOrEqual(1_000);
      const all = await Promise.all([session.credentials(), session.credentials(), session.aheadMs()]);
      expect(all).toMatchObject([{ accessKeyId: 'id' }, { sessionToken: 'token' }, aheadMs]);
      expect(asked()).toBe(1);
      await session.fresh();
      expect(asked()).toBe(2);
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10 * 60_000 });
      onTestFinished(() => void vi.useRealTimers());
      await session.credentials();
      expect(asked()).toBe(3);
    },
  );

  it('tells of no error where the clocks agree, or where there is no session, which whoever needs it hears', async () => {
    const { session, close } = await sessionBehind(0);
    expect(await session.aheadMs()).toBe(0);
    await close();
    const none = jobSession({ region: 'us-east-1', env: process.env }, 'table', 'word');
    expect(await none.aheadMs()).toBe(0);
    await expect(none.credentials()).rejects.toMatchObject({ name: 'StoreUnavailable' });
  }, 120_000);
});
