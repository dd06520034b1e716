import { describe, expect, it } from 'vitest';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { attemptDataKey, jobDataPrefix, jobPrefix } from '../../../src/contracts/keys.ts';

const jobId = 'words-0123456789ab' as JobId;

describe('keys of intermediate data', () => {
  it('spread the tasks of a stage evenly over 256 prefixes that S3 can part', () => {
    const counts = new Map<string, number>();
    for (let task = 0; task < 10_000; task++) {
      const key = attemptDataKey(jobId, attemptIdOf('map', task, 0));
      const prefix = /^jobs\/words-0123456789ab\/data\/([0-9a-f]{2})\//.exec(key)?.[1] ?? 'none';
      counts.set(prefix, (counts.get(prefix) ?? 0) + 1);
    }
    expect(counts.size).toBe(256);
    expect(Math.max(...counts.values())).toBeLessThan(80); // 39 each on average.
    expect(Math.min(...counts.values())).toBeGreaterThan(10);
  });

  it('part attempts of one task too, and no two attempts share one', () => {
    const keys = Array.from({ length: 64 }, (_, attempt) =>
      attemptDataKey(jobId, attemptIdOf('map', 7, attempt)),
    );
    expect(new Set(keys).size).toBe(64);
    expect(new Set(keys.map((key) => key.split('/')[3])).size).toBeGreaterThan(16);
  });

  it('lie under the prefix that rights, clean-up and the sweep go by', () => {
    const key = attemptDataKey(jobId, attemptIdOf('map', 3, 1));
    expect(key.startsWith(jobDataPrefix(jobId))).toBe(true);
    expect(jobDataPrefix(jobId).startsWith(jobPrefix(jobId))).toBe(true);
    expect(key.endsWith('/map/3/1')).toBe(true);
  });
});
