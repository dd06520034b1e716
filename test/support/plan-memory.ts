/**
 * What Plan needs for a job over N small objects: run by itself, so that its peak memory is its own. Prints that, and
 * what it planned, as JSON. `node test/support/plan-memory.ts N`
 */
import { MemoryJobStore } from '../../src/adapters/memory/memory-job-store.ts';
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { planJob } from '../../src/app/plan-job.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { jobSpecSchema } from '../../src/contracts/job-spec.ts';
import { noAttempts, nothingYet } from '../../src/contracts/records.ts';
import { epochMs } from '../../src/contracts/units.ts';

const [count = 100_000] = process.argv.slice(2).map(Number);
const jobId = 'many-0123456789ab' as JobId;
const written: { key: string; bytes: number }[] = [];

/** A bucket of many small objects, which takes what is written and keeps nothing of it. */
class ManyObjects extends MemoryObjectStore {
  override async *list({ key }: { readonly key: string }) {
    if (key !== 'logs/') return;
    for (let index = 0; index < count; index++) {
      if (index % 1_000 === 0) await Promise.resolve();
      const name = `logs/2026/11/22/part-${String(index).padStart(8, '0')}.txt`;
      yield { key: name, sizeBytes: 1_000, etag: `"${String(index).padStart(32, '0')}"` };
    }
  }
  override write({ key }: { readonly key: string }, body: Uint8Array): Promise<'written'> {
    written.push({ key, bytes: body.length });
    return Promise.resolve('written');
  }
  override uploadPart(upload: { readonly key: string }, number: number, body: Uint8Array) {
    written.push({ key: upload.key, bytes: body.length });
    return Promise.resolve({ number, etag: '"1"' });
  }
  override completeUpload(): Promise<'completed'> {
    return Promise.resolve('completed');
  }
}

const jobs = new MemoryJobStore();
await jobs.create({
  ...nothingYet,
  jobId,
  name: 'many',
  spec: jobSpecSchema.parse({
    version: 1,
    name: 'many',
    stages: [
      { name: 'grep', operator: 'grep', options: { pattern: 'x' }, inputs: [{ s3: ['s3://source/logs/'] }] },
    ],
  }),
  specDigest: '',
  state: 'submitted',
  createdAt: epochMs(1_700_000_000_000),
  output: 's3://out/o/',
  attempts: noAttempts,
});
await planJob(
  {
    jobs,
    objects: new ManyObjects(),
    clock: { now: () => epochMs(1_700_000_000_000), sleep: () => Promise.resolve() },
    ids: { token: () => 'nonce', jobId: () => jobId } as never,
    log: { info: () => undefined, warn: () => undefined },
    dataBucket: 'data',
  },
  jobId,
);
const tasks = (await jobs.load(jobId))?.stages[0]?.tasks;
const bytes = written.reduce((sum, each) => sum + each.bytes, 0);
const largestBytes = Math.max(...written.map((each) => each.bytes));
console.log(JSON.stringify({ peakBytes: process.resourceUsage().maxRSS * 1024, tasks, bytes, largestBytes }));
