import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MemoryObjectStore } from '../../../src/adapters/memory/memory-object-store.ts';
import type { ApiClient } from '../../../src/cli/api-client.ts';
import { jobOptionsSchema } from '../../../src/cli/job-options.ts';
import type { RunOptions } from '../../../src/cli/run-command.ts';
import type { RunDeps } from '../../../src/cli/run-job.ts';
import type { SubmitRequest } from '../../../src/contracts/api.ts';
import type { JobRecord } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import { jobRecord } from '../report/report-records.ts';
import { memoryConsole, scratchDir } from './fixtures.ts';

export const bucket = 'data';
export const outputKey = 'output/wordcount-0123456789ab/';

/** A stack that plays back the states of a job; its objects are in memory. */
export async function fakeStack(states: readonly Partial<JobRecord>[], onPoll?: (poll: number) => void) {
  const cwd = await scratchDir();
  const store = new MemoryObjectStore();
  const { console, written } = memoryConsole(cwd);
  const log: string[] = [];
  const requests: SubmitRequest[] = [];
  let polls = 0;
  const answer = (): JobRecord => jobRecord(states[Math.min(polls, states.length - 1)]);
  const client: ApiClient = {
    apiUrl: 'http://127.0.0.1:1',
    submit: (request) => {
      requests.push(request);
      return Promise.resolve({ jobId: 'wordcount-0123456789ab', started: true });
    },
    job: (_jobId, signal) => {
      signal?.throwIfAborted();
      const job = answer();
      polls++;
      onPoll?.(polls - 1);
      return Promise.resolve(job);
    },
    allocations: () => Promise.reject(new Error('unused')),
    journal: () => Promise.resolve({ pieces: [] }),
    setDeadline: () => Promise.reject(new Error('unused')),
    plan: () => Promise.reject(new Error('unused')),
    cancel: () => {
      log.push('cancel');
      return Promise.resolve(jobRecord({ state: 'cancelled' }));
    },
    attempts: () => Promise.resolve({ attempts: [] }),
    list: () => Promise.resolve({ jobs: [] }),
  };
  const deps: RunDeps = {
    console,
    startStack: ({ stateDir }) => {
      log.push('start');
      return Promise.resolve({
        apiUrl: client.apiUrl,
        region: 'us-east-1',
        credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
        environment: { stateDir },
        outputs: { DataBucketName: bucket },
        injected: () => undefined,
        stop: () => {
          log.push('stop');
          return Promise.resolve();
        },
      });
    },
    storeOf: () => store,
    clientOf: () => client,
  };
  return { cwd, store, deps, written, log, requests };
}

/** Options of `run` as they are parsed, quiet and with JSON. */
export const options = (changes: Partial<RunOptions>): RunOptions => ({
  ...jobOptionsSchema.parse({ input: ['in'] }),
  output: 'out',
  slots: '2',
  stateDir: undefined,
  force: false,
  keepState: false,
  quiet: true,
  json: true,
  ...changes,
});

/** A job with two parts in its output, which {@link publish} writes. */
export const succeeded: Partial<JobRecord> = {
  state: 'succeeded',
  endedAt: epochMs(1_001_000),
  parts: [
    { key: `${outputKey}part-00000`, sizeBytes: 8 },
    { key: `${outputKey}part-00001`, sizeBytes: 0 },
  ],
};

export async function publish(store: MemoryObjectStore): Promise<void> {
  await store.write({ bucket, key: `${outputKey}part-00000` }, Buffer.from('a\t1\nb\t2\n'));
  await store.write({ bucket, key: `${outputKey}part-00001` }, Buffer.alloc(0));
  await store.write(
    { bucket, key: `${outputKey}_SUCCESS` },
    Buffer.from('{"jobId":"wordcount-0123456789ab","parts":[]}'),
  );
}

export async function writeInputs(cwd: string): Promise<void> {
  await mkdir(join(cwd, 'in'));
  await writeFile(join(cwd, 'in/b.txt.gz'), 'bbb');
  await writeFile(join(cwd, 'in/a b.txt'), 'aaa');
}

/** Nobody interrupts. */
export const never = new AbortController().signal;
