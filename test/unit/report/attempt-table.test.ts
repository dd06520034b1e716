import { describe, expect, it } from 'vitest';
import type { AttemptRecord } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { renderAttempts } from '../../../src/report/attempt-table.ts';
import { makeStyle } from '../../../src/report/style.ts';

const plain = makeStyle({ isTty: false, env: {} });

describe('attempts of a job', () => {
  const attempt = (attemptId: string, changes: Partial<AttemptRecord>): AttemptRecord => ({
    attemptId: attemptId as AttemptRecord['attemptId'],
    state: 'running',
    order: 'continue',
    launchedAt: epochMs(1_000),
    beat: 0,
    ...changes,
  });
  const progress = (compute: number) => ({
    bytesRead: 2_048,
    bytesTotal: 2_048,
    recordsIn: 1,
    recordsOut: 1,
    phase: 'compute' as const,
    phaseMs: { init: 100, read: 1_000, compute, write: 0 },
    peakMemoryBytes: 300 * 1_024 ** 2,
  });

  it('come longest first, with what they waited for, did, and ended of', () => {
    const lines = renderAttempts(
      [
        attempt('map/0/0', { state: 'launched' }),
        attempt('map/1/0', {
          state: 'done',
          claimedAt: epochMs(1_500),
          endedAt: epochMs(4_500),
          node: 'Worker/2026/01/31/[$LATEST]0123456789abcdef',
          zone: 'use1-az1',
          progress: progress(1_900),
        }),
        attempt('map/2/0', { order: 'cancel', claimedAt: epochMs(2_000), progress: progress(17_000) }),
        attempt('map/3/0', {
          state: 'failed',
          claimedAt: epochMs(1_000),
          endedAt: epochMs(2_000),
          failure: { cause: 'out-of-memory', message: 'its worker\nhad no more' },
        }),
      ],
      epochMs(20_100),
      plain,
    );
    expect(lines).toEqual([
      'ATTEMPT  STATE     WAITED   TIME  INIT READ COMPUTE WRITE  BYTES READ     MEMORY  NODE          ZONE      STARTED   WHY',
      'map/2/0  running     1.0s  18.1s     0.1s 1.0s 17.0s 0.0s     2.0 KiB  300.0 MiB  -             -         00:00:02  told to stop',
      'map/1/0  done        0.5s   3.0s      0.1s 1.0s 1.9s 0.0s     2.0 KiB  300.0 MiB  0123456789a…  use1-az1  00:00:01',
      'map/3/0  failed      0.0s   1.0s                        -           -          -  -             -         00:00:01  out-of-memory: its worker had no more',
      'map/0/0  launched       -      -                        -           -          -  -             -         -',
    ]);
  });

  it('tell of those that were given up why, and of their work no more than was heard', () => {
    const given = { state: 'lost', order: 'cancel', endedAt: epochMs(40_000) } as const;
    const lines = renderAttempts(
      [
        attempt('map/0/0', { ...given, claimedAt: epochMs(2_000), reportedAt: epochMs(3_400) }),
        attempt('map/1/0', given),
      ],
      epochMs(50_000),
      plain,
    );
    expect(lines[1]).toMatch(/^map\/0\/0  lost +1\.0s +1\.4s .* its worker stopped reporting$/);
    expect(lines[2]).toMatch(/^map\/1\/0  lost +- +- .* no worker took it up$/);
  });

  it('move no cursor by an id, which a record of the job itself may have made up', () => {
    const lines = renderAttempts(
      [attempt('\u001b]52;c;eA==\u0007/0/0', {}), attempt('a\nmap/1/0  done\u009b2J/1/0', {})],
      epochMs(1_000),
      plain,
    );
    expect(lines.slice(1).map((line) => line.split(' running')[0]?.trim())).toEqual([
      ']52;c;eA== /0/0',
      'a map/1/0  done 2J/1/0',
    ]);
  });

  it('fit a terminal of 80 columns, with all that is known of them', () => {
    const narrow = makeStyle({ isTty: true, env: { NO_COLOR: '1' }, columns: 80 });
    const failed = attempt('inverted-index/12/0', {
      state: 'failed',
      claimedAt: epochMs(1_000),
      endedAt: epochMs(62_000),
      node: 'Worker/2026/01/31/[$LATEST]0123456789abcdef',
      zone: 'use1-az1',
      progress: progress(17_000),
      failure: { cause: 'user-code', message: `TypeError: ${'no such word '.repeat(9)}` },
    });
    const lines = renderAttempts([failed], epochMs(70_000), narrow);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(lines).toEqual([
      'ATTEMPT              STATE   WAITED   TIME  INIT READ COMPUTE WRITE  BYTES READ',
      '       MEMORY  NODE          ZONE      STARTED',
      '    WHY',
      'inverted-index/12/0  failed    0.0s  1m01s     0.1s 1.0s 17.0s 0.0s     2.0 KiB',
      '    300.0 MiB  0123456789a…  use1-az1  00:00:01',
      '    user-code: TypeError: no such word no such word no such word no such word no',
      '    such word no such word no such word no such word no such word',
    ]);
  });
});
