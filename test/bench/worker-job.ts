/**
 * Runs a job as one medium worker would run all its tasks, one after the other, over files for objects:
 * `worker-job.ts <directory> <spec as JSON>`. Prints JSON. S3's time is set apart: the store is the file system.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { JobSpecInput } from '../../src/contracts/job-spec.ts';
import { DirectoryStore } from '../support/directory-store.ts';
import { runInWorker } from '../support/run-in-worker.ts';

const [directory = '', spec = ''] = process.argv.slice(2);
const objects = new DirectoryStore(directory);
const scratch = await mkdtemp(join(directory, 'scratch-'));
const stages = await runInWorker(objects, JSON.parse(spec) as JobSpecInput, scratch);
await rm(scratch, { recursive: true });
console.log(
  JSON.stringify({
    stages,
    cpuMs: stages.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
    storeMs: objects.spentMicros / 1_000,
    requests: objects.requests,
    peakBytes: process.resourceUsage().maxRSS * 1024,
  }),
);
