import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { makeApiClient } from '../../src/cli/api-client.ts';
import { dataBucketOf, objectStoreOf, type StackConnection } from '../../src/cli/embedded-stack.ts';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { finalJobStates, type JobRecord } from '../../src/contracts/records.ts';
import { createRng } from '../../src/lib/rng.ts';
import { coreutils } from '../support/coreutils.ts';
import { type Started, Workplace } from './command.ts';

/** 600 lines that all differ; any lost or doubled one shows. */
const rng = createRng('resumed');
const text = Array.from({ length: 600 }, (_, line) => `${rng.next().toString(36)} line ${line}\n`).join('');
const expected = coreutils('sort', [], Buffer.from(text));

/** Six tasks of a second and more each, two at a time, then two that merge. */
const spec: JobSpecInput = {
  name: 'lasting',
  stages: [
    {
      name: 'slow',
      operator: 'exec',
      options: { command: ['sh', '-c', 'sleep 1; cat'] },
      inputs: [{ s3: ['lines.txt'], splitBytes: Math.ceil(text.length / 6) }],
      partitions: 2,
    },
    {
      name: 'merge',
      operator: 'merge-lines',
      inputs: [{ stage: 'slow', pattern: 'all-to-all' }],
    },
  ],
};

const limitMs = 90_000;
/** The first stack of a fresh checkout synthesizes the app, and a busy machine takes its time. */
const testLimitMs = 240_000;
const submitted = z.object({ jobId: z.string() });

/** A place with a stack that is up and the job's files; and what it takes to watch the job over its restarts. */
class Desk {
  readonly place: Workplace;
  private local: Started;
  private connection: StackConnection;

  private constructor(place: Workplace, local: Started, connection: StackConnection) {
    this.place = place;
    this.local = local;
    this.connection = connection;
  }

  static async open(): Promise<Desk> {
    const place = await Workplace.make();
    await writeFile(place.path('lines.txt'), text);
    await writeFile(place.path('job.json'), JSON.stringify(spec));
    return new Desk(place, ...(await start(place)));
  }

  async submit(): Promise<string> {
    const { exitCode, out, err } = await this.place.run('submit', 'job.json', '--json');
    expect([exitCode, err]).toEqual([0, '']);
    return submitted.parse(JSON.parse(out)).jobId;
  }

  /** Ends the stack by a signal, or all its processes outright, and starts it again over the same directory. */
  async restart(how: 'SIGTERM' | 'SIGINT' | 'SIGKILL'): Promise<void> {
    if (how === 'SIGKILL') {
      await this.place.killAll();
    } else {
      this.local.process.kill(how);
      await this.local.finished;
      await this.place.expectNoProcesses();
    }
    [this.local, this.connection] = await start(this.place);
  }

  async until(jobId: string, what: string, holds: (job: JobRecord) => boolean): Promise<JobRecord> {
    const api = makeApiClient(this.connection);
    for (let waited = 0; waited < limitMs; waited += 50) {
      const job = await api.job(jobId);
      if (holds(job)) return job;
      await delay(50);
    }
    throw new Error(`waited in vain for ${what}`);
  }

  async expectExactEnd(jobId: string): Promise<JobRecord> {
    const job = await this.until(jobId, 'its end', ({ state }) => finalJobStates.includes(state));
    expect(job.error).toBeUndefined();
    expect(job.state).toBe('succeeded');
    const bucket = dataBucketOf(this.connection);
    const objects = objectStoreOf(this.connection);
    const parts = [];
    for (const { key } of job.parts) parts.push(await objects.readAll({ bucket, key }));
    expect(coreutils('sort', [], Buffer.concat(parts)).equals(expected)).toBe(true);
    await expect
      .poll(
        async () => {
          const left: string[] = [];
          for await (const { key } of objects.list({ bucket, key: `jobs/${jobId}/` })) left.push(key);
          for await (const { key } of objects.listUploads({ bucket, key: '' })) left.push(`upload of ${key}`);
          return left;
        },
        { timeout: 20_000 },
      )
      .toEqual([]);
    return job;
  }

  async close(): Promise<void> {
    this.local.process.kill('SIGTERM');
    await this.local.finished;
    await this.place.expectNoProcesses();
  }
}

async function start(place: Workplace): Promise<[Started, StackConnection]> {
  const local = place.start('local', '--slots', '2');
  await local.saying('Ctrl-C ends it.');
  const document = await readFile(place.path('.outrider', 'connection.json'), 'utf8');
  return [local, JSON.parse(document) as StackConnection];
}

describe('a job of a local stack that is ended and started again', () => {
  it.each(['SIGKILL', 'SIGTERM', 'SIGINT'] as const)(
    'goes on after %s in the middle of it, and ends with exactly the right lines',
    async (how) => {
      const desk = await Desk.open();
      const jobId = await desk.submit();
      await desk.until(jobId, 'work', ({ stages }) => (stages[0]?.done ?? 0) >= 1);
      await desk.restart(how);
      const job = await desk.expectExactEnd(jobId);
      expect(job.stages.map(({ done }) => done)).toEqual([6, 2]);
      await desk.close();
    },
    testLimitMs,
  );

  it(
    'goes on after being killed as soon as it was submitted, and once more while it is resumed',
    async () => {
      const desk = await Desk.open();
      const jobId = await desk.submit();
      await desk.restart('SIGKILL');
      await desk.until(jobId, 'a plan', ({ state }) => state !== 'submitted');
      await desk.restart('SIGKILL');
      await desk.expectExactEnd(jobId);
      await desk.close();
    },
    testLimitMs,
  );
});
