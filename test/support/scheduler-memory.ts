/**
 * What a scheduler needs to take over and open a shuffle of M × R segments: run by itself, so that its peak memory is
 * its own. Prints that, and what it wrote, as JSON. `node test/support/scheduler-memory.ts M R`
 */
import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import { decodeShardItem, encodeResult } from '../../src/adapters/aws/attempt-item.ts';
import { performDecisions } from '../../src/app/perform-decisions.ts';
import type { PerformDeps } from '../../src/app/perform-decisions.ts';
import { prepareStage, spansOf } from '../../src/app/open-stage.ts';
import { attemptIdOf, taskIdOf } from '../../src/contracts/ids.ts';
import type { JobId } from '../../src/contracts/ids.ts';
import { durationMs, epochMs } from '../../src/contracts/units.ts';
import type { JobSpec } from '../../src/contracts/job-spec.ts';
import { jobSpecSchema } from '../../src/contracts/job-spec.ts';
import { shapesOf } from '../../src/app/load-plan.ts';
import { takeOutputs } from '../../src/app/read-changes.ts';
import { createJobState } from '../../src/core/model/job-state.ts';
import { planStages } from '../../src/core/model/plan-stages.ts';
import { createRng } from '../../src/lib/rng.ts';

const [maps = 10_000, partitions = 100] = process.argv.slice(2).map(Number);
const jobId = 'shuffle-0123456789ab' as JobId;
const now = epochMs(1_700_000_000_000);
const spec: JobSpec = jobSpecSchema.parse({
  version: 1,
  name: 'shuffle',
  stages: [
    {
      name: 'map',
      operator: 'tokenize',
      inputs: [{ s3: ['s3://source/a/'], splitBytes: 1_000 }],
      partitions,
    },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
});
const source = { bucket: 'source', key: 'a/1', sizeBytes: maps * 1_000, etag: '"1"' };
const { plan } = planStages(spec, new Map([['stages[0].inputs[0]', [source]]]), {
  jobId,
  nonce: 'nonce',
  dataBucket: 'data',
  output: { bucket: 'out', key: 'o/' },
});
const rng = createRng('memory');
const random32 = (): number => Math.floor(rng.next() * 2 ** 32);
const state = createJobState(shapesOf(plan));
const space = { jobId, shards: plan.shards };

/** Results as a store gives them: all of them at once, decoded from their items. */
const results = Array.from({ length: maps }, (_, task) => {
  const item = encodeResult(space, {
    taskId: taskIdOf('map', task),
    attemptId: attemptIdOf('map', task, 0),
    committedAt: now,
    partitions: {
      lengths: Array.from({ length: partitions }, () => 100_000 + (random32() % 100_000)),
      crcs: Array.from({ length: partitions }, random32),
    },
    bytesIn: 1_000,
    bytesOut: 1_000,
    recordsIn: 10,
    recordsOut: 10,
    counters: {},
  });
  const decoded = decodeShardItem(item);
  if (decoded.kind !== 'result') throw new Error(`result ${String(task)} cannot be read`);
  return decoded.result;
});
takeOutputs({ state }, { results: results.splice(0), replicas: [] }, now);

let bytes = 0;
let requests = 0;
/** Takes what is written and keeps nothing of it. */
class Sink extends MemoryObjectStore {
  override write(_ref: unknown, body: Uint8Array): Promise<'written'> {
    requests++;
    bytes += body.length;
    return Promise.resolve('written');
  }
  override uploadPart(_upload: unknown, number: number, body: Uint8Array) {
    requests++;
    bytes += body.length;
    return Promise.resolve({ number, etag: '"1"' });
  }
  override completeUpload(): Promise<'completed'> {
    return Promise.resolve('completed');
  }
}
const open = prepareStage(state, plan, 1, now);
const deps = { objects: new Sink(), dataBucket: 'data' } as unknown as PerformDeps;
const job = { plan, state, openStages: new Map([[1, open]]), heartbeatMs: durationMs(10_000) };
await performDecisions(deps, job, [{ kind: 'open-stage', stage: 1 }], now);
const lines = Array.from({ length: partitions }, (_, task) => spansOf(open, task)[0]);
const peakBytes = process.resourceUsage().maxRSS * 1024;
console.log(JSON.stringify({ peakBytes, bytes, requests, lastByte: lines.at(-1)?.end }));
