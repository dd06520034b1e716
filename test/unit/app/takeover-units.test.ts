import { expect, it } from 'vitest';
import { DynamoAttemptStore } from '../../../src/adapters/aws/dynamo-attempt-store.ts';
import type { DynamoTable, Item } from '../../../src/adapters/aws/dynamo-table.ts';
import { attemptKey } from '../../../src/adapters/aws/attempt-item.ts';
import { enterJob } from '../../../src/app/enter-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const tasks = 10_000;

it('a takeover of 10,000 running tasks reads each of their 626 keys twice, 16 at a time, for less than a key gives', async () => {
  const system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.alloc(tasks * 1_000, 'word\n'));
  const { jobId } = await submitJob(system, {
    spec: {
      name: 'words',
      policy: 'none',
      stages: [
        { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 1_000 }] },
        { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
      ],
    },
  });
  await planJob(system.deps, jobId);
  const space = { jobId, shards: (await system.jobs.load(jobId))?.shards ?? 0 };
  expect(space.shards).toBe(626);
  // As the last scheduler has left it: all launched, by 20 entries of 500, and running.
  const ids = Array.from({ length: tasks }, (_, task) => attemptIdOf('map', task, 0));
  const at = system.clock.now();
  const open = { version: 1, epoch: 1, at, decisions: [{ kind: 'open-stage', stage: 0 }] };
  expect(await system.decisions.append(jobId, open)).toBe('appended');
  for (let entry = 0; entry < tasks / 500; entry++) {
    const launched = ids.slice(entry * 500, (entry + 1) * 500);
    const decisions = launched.map((attemptId) => ({
      kind: 'launch',
      attemptId,
      reason: 'first',
      avoid: [],
    }));
    await system.decisions.append(jobId, { version: entry + 2, epoch: 1, at, decisions });
  }
  const items = new Map<string, Item[]>();
  for (const attemptId of ids) {
    const key = attemptKey(space, attemptId);
    const item = {
      ...key,
      attemptId,
      state: 'running',
      order: 'continue',
      launchedAt: at,
      claimedAt: at,
      beat: 1,
    };
    items.set(key.pk, [...(items.get(key.pk) ?? []), { ...item, node: 'n', zone: 'z', reportedAt: at }]);
  }
  const reads = new Map<string, number>();
  const watch = { underWay: 0, most: 0, others: 0 };
  const table = {
    async *query({ values }: { values: Item }): AsyncGenerator<Item> {
      const pk = String(values['pk']);
      reads.set(pk, (reads.get(pk) ?? 0) + 1);
      watch.underWay += 1;
      watch.most = Math.max(watch.most, watch.underWay);
      await Promise.resolve();
      watch.underWay -= 1;
      yield* items.get(pk) ?? [];
    },
    update: () => Promise.resolve((watch.others += 1)),
    putNew: () => Promise.resolve((watch.others += 1)),
  } as unknown as DynamoTable;
  const deps = { ...system.deps, attempts: new DynamoAttemptStore(table) };
  const residency = { owner: 'next', until: later(at, durationMs(600_000)) };
  const session = await enterJob(deps, jobId, residency);
  expect(session.state.live.size).toBe(tasks);
  expect([...session.state.live].every(({ state }) => state === 'running')).toBe(true);
  expect([...reads.values()].every((times) => times === 2)).toBe(true);
  expect(reads.size).toBe(626);
  expect(watch.most).toBe(16);
  // It writes nothing of what runs: its own entry in the log is all.
  expect(watch.others).toBe(0);
  const keyBytes = Math.max(...[...items.values()].map((held) => JSON.stringify(held).length));
  // A consistent read unit is 4 KB; of a key 3,000 a second are to be had.
  expect((2 * keyBytes) / 4_096).toBeLessThan(30);
}, 60_000);
