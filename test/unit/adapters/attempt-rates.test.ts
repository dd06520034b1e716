import { describe, expect, it } from 'vitest';
import { DynamoAttemptStore } from '../../../src/adapters/aws/dynamo-attempt-store.ts';
import { shardOf } from '../../../src/adapters/aws/attempt-item.ts';
import { taskOf } from '../../../src/contracts/ids.ts';
import { durationMs } from '../../../src/contracts/units.ts';
import { firstReportMs, nextReportMs } from '../../../src/core/model/report-cadence.ts';
import { at, attempt, freshJobId, progress, resultOf } from '../../contract/ports/builders.ts';
import { CountingTable } from '../../support/counting-table.ts';

const heartbeatMs = 10_000;
const runMs = 60_000;

/** 10,000 attempts that are launched, begin, report and end all together, as their workers do it. */
async function tenThousand(counting: CountingTable): Promise<void> {
  const store = new DynamoAttemptStore(counting.table);
  const space = { jobId: freshJobId(), shards: 625 };
  const place = { node: 'n', zone: 'z' };
  for (let task = 0; task < 10_000; task++) {
    const id = attempt(task);
    counting.second = 0;
    await store.create(space, id, at(0));
    await store.claim(space, id, place, at(0));
    for (let ms: number = firstReportMs(id, heartbeatMs); ms < runMs; ms += nextReportMs(ms, heartbeatMs)) {
      counting.second = Math.floor(ms / 1_000);
      await store.report(space, id, progress(ms), at(ms / 1_000), durationMs(heartbeatMs));
    }
    counting.second = runMs / 1_000;
    await store.commit(space, { ...resultOf(id, at(60)), progress: progress(1_000) });
    await store.tell(space, { attemptId: id, kind: 'end' }, at(60));
  }
}

describe('the keys of attempts', () => {
  it('are asked for 300 units a second at most by 10,000 attempts that do all at once', async () => {
    const counting = new CountingTable();
    await tenThousand(counting);
    // Of a key 1,000 units a second are to be had; 3,000 were asked of one for 500 tasks.
    expect(counting.mostPerSecond).toBeLessThanOrEqual(300);
    expect(new Set([...counting.writes.keys()].map((place) => place.split('@')[0])).size).toBe(725);
  });

  it('hold 16 tasks each', () => {
    const space = { jobId: freshJobId(), shards: 625 };
    const held = new Map<number, number>();
    for (let task = 0; task < 10_000; task++) {
      const shard = shardOf(space, taskOf(attempt(task)));
      held.set(shard, (held.get(shard) ?? 0) + 1);
    }
    expect([...new Set(held.values())]).toEqual([16]);
  });

  it('are read once each to know all of a job, and 100 records at a time where they are known', async () => {
    const counting = new CountingTable();
    const store = new DynamoAttemptStore(counting.table);
    const space = { jobId: freshJobId(), shards: 625 };
    await store.all(space);
    expect(counting.queries).toHaveLength(625);
    expect(new Set(counting.queries).size).toBe(625);
    const ids = Array.from({ length: 10_000 }, (_, task) => attempt(task));
    await store.read(space, ids, 'records');
    expect(counting.batches).toBe(100);
    await store.told(space);
    expect(counting.batches).toBe(101);
  });
});
