import { mkdir, readdir, rename, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { keepRun, keptJobs } from '../../../src/cli/run-records.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { jobRecord } from '../report/report-records.ts';
import { scratchDir } from './fixtures.ts';

const idOf = (number: number): JobId => `sort-${String(number).padStart(12, '0')}` as JobId;

/** Keeps the record of a job that began so many seconds after 1970, as its directory's time says, too. */
async function keep(stateDir: string, number: number): Promise<void> {
  const job = jobRecord({ jobId: idOf(number), state: 'succeeded', createdAt: epochMs(number * 1_000) });
  expect(await keepRun(stateDir, { job, attempts: { attempts: [] }, lines: [] })).toBe(stateDir);
  await utimes(join(stateDir, 'runs', idOf(number)), number, number);
}

describe('records of runs in a directory', () => {
  it('are twenty at the most, the newest', async () => {
    const stateDir = await scratchDir();
    for (let number = 1; number <= 22; number++) await keep(stateDir, number);
    const jobs = await keptJobs(stateDir);
    expect(jobs.map(({ jobId }) => jobId)).toEqual(
      Array.from({ length: 20 }, (_, place) => idOf(22 - place)),
    );
  });

  it('are kept, and the oldest dropped, also where one is gone as soon as its name was read', async () => {
    const stateDir = await scratchDir();
    await mkdir(join(stateDir, 'runs'));
    // Its name is there, and nothing behind it.
    await symlink('gone', join(stateDir, 'runs', idOf(99)));
    for (let number = 1; number <= 21; number++) await keep(stateDir, number);
    expect(await readdir(join(stateDir, 'runs'))).not.toContain(idOf(1));
    expect(await keptJobs(stateDir)).toHaveLength(20);
  });

  it('are listed without those that cannot be read', async () => {
    const stateDir = await scratchDir();
    for (const number of [1, 2, 3]) await keep(stateDir, number);
    const runs = join(stateDir, 'runs');
    // A link may lead to what is another user's.
    await rename(join(runs, idOf(2), 'job.json'), join(stateDir, 'elsewhere.json'));
    await symlink(join(stateDir, 'elsewhere.json'), join(runs, idOf(2), 'job.json'));
    await writeFile(join(runs, idOf(4)), 'no directory');
    await writeFile(join(runs, 'notes.txt'), 'no record');
    await mkdir(join(runs, idOf(5), 'job.json'), { recursive: true });
    expect((await keptJobs(stateDir)).map(({ jobId }) => jobId)).toEqual([idOf(3), idOf(1)]);
  });
});
