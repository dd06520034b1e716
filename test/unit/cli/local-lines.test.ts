import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { localLines } from '../../../src/cli/local-lines.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { scratchDir } from './fixtures.ts';

const jobId = 'count-0123456789ab' as JobId;

describe('what a local stack has logged of a job', () => {
  it('is all of its lines; of more than can be held the oldest, and what was decided of it besides', async () => {
    const stateDir = await scratchDir();
    await mkdir(join(stateDir, 'logs/workers'), { recursive: true });
    await mkdir(join(stateDir, 'logs/scheduler'));
    const line = (second: number, event: string, of: string = jobId): string =>
      `{"at":"2026-01-01T00:00:0${String(second)}.000Z","event":"${event}","jobId":"${of}"}\n`;
    await writeFile(
      join(stateDir, 'logs/workers/a.log'),
      [1, 2, 3, 4].map((second) => line(second, 'user-output')).join('') + line(5, 'claimed'),
    );
    await writeFile(
      join(stateDir, 'logs/scheduler/b.log'),
      `${line(0, 'planned')}${line(1, 'planned', 'other-0123456789ab')}${line(6, 'launched')}`,
    );
    const told = async (limit?: number): Promise<readonly string[]> =>
      (await localLines(stateDir, jobId, limit)).map(
        ({ at, text }) =>
          `${String(new Date(at).getUTCSeconds())} ${/"event":"(.*?)"/.exec(text)?.[1] ?? ''}`,
      );
    const printed = ['1 user-output', '2 user-output', '3 user-output', '4 user-output'];
    expect(await told()).toEqual(['0 planned', ...printed, '5 claimed', '6 launched']);
    expect(await told(3)).toEqual(['0 planned', ...printed.slice(0, 2), '5 claimed', '6 launched']);
  });

  it('is nothing that another job says of it, as one that reads its output', async () => {
    const stateDir = await scratchDir();
    await mkdir(join(stateDir, 'logs/workers'), { recursive: true });
    const output = `s3://data/output/${jobId}/part-00000`;
    const reader = { jobId: 'second-ba9876543210', attemptId: 'map/0/0' };
    const lines = [
      { event: 'succeeded', jobId, parts: 4 },
      { event: 'user-output', ...reader, stream: 'stdout', text: `reading ${output}` },
      { event: 'attempt-ended', ...reader, failure: { cause: 'user-code', message: `boom (${output})` } },
      // As Lambda itself and Node write.
      `REPORT of ${jobId}`,
      `{ jobId: '${jobId}' }`,
    ];
    await writeFile(
      join(stateDir, 'logs/workers/a.log'),
      lines.map((each) => `${typeof each === 'string' ? each : JSON.stringify(each)}\n`).join(''),
    );
    expect((await localLines(stateDir, jobId)).map(({ text }) => text)).toEqual([
      `{"event":"succeeded","jobId":"${jobId}","parts":4}`,
      `REPORT of ${jobId}`,
      `{ jobId: '${jobId}' }`,
    ]);
  });
});
