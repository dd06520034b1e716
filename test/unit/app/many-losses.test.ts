import { expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { runTick } from '../../../src/app/tick-job.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import { attempt, failure } from '../../support/job-states.ts';
import { launch, Predecessor } from '../../support/predecessor.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

const maps = 1_200;
const ids = Array.from({ length: maps }, (_, index) => attempt(`map/${String(index)}/0`));

const spec = {
  name: 'words',
  policy: 'none',
  stages: [
    {
      ...{ name: 'map', operator: 'tokenize', partitions: 1 },
      inputs: [{ s3: ['s3://data/in/'], splitBytes: 1_000 }],
    },
    { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
  ],
};

/** All maps are done, and none of their outputs is where it was: the only reader has missed the first, and says so. */
async function afterLoss(system: ScriptedSystem): Promise<Predecessor> {
  const before = await Predecessor.of(system, spec, Buffer.alloc(1_000 * maps, 'word\n'));
  const space = { jobId: before.jobId, shards: 1 };
  const { attempts, clock } = system;
  await before.decide({ kind: 'open-stage', stage: 0 });
  await before.decide(...ids.map(launch));
  for (const id of ids) {
    await attempts.create(space, id, clock.now());
    await attempts.claim(space, id, { node: 'n', zone: 'z' }, clock.now());
    await before.commit(id, 1);
    await attempts.end(space, id, { state: 'done', progress: progress(100) }, clock.now());
  }
  await before.decide({ kind: 'open-stage', stage: 1 });
  await before.decide(launch('reduce/0/0'));
  const reader = attempt('reduce/0/0');
  await attempts.create(space, reader, clock.now());
  await attempts.claim(space, reader, { node: 'n', zone: 'z' }, clock.now());
  const lost = [{ attemptId: attempt('map/0/0'), how: 'missing' as const, offset: 0, length: 10, crc: 1 }];
  const why = { ...failure('input-lost'), lost };
  await attempts.end(space, reader, { state: 'failed', progress: progress(0), failure: why }, clock.now());
  return before;
}

it('has all outputs made again that one look has found lost, before anything is launched', async () => {
  const system = new ScriptedSystem();
  const { jobId } = await afterLoss(system);
  const until = later(system.clock.now(), durationMs(600_000));
  const session = await enterJob(system.deps, jobId, { owner: 'next', until });
  const decided: Decision[][] = [];
  for (let ticks = 0; ticks < 4; ticks++) decided.push([...(await runTick(system.deps, session)).decisions]);

  const kinds = decided.map((each) => [...new Set(each.map(({ kind }) => kind))]);
  expect(kinds).toEqual([['lose-output'], ['lose-output'], ['lose-output'], ['launch']]);
  const lost = decided.flat().flatMap((each) => (each.kind === 'lose-output' ? [each.attemptId] : []));
  expect(lost.toSorted()).toEqual(ids.toSorted());
  // Each is known to be lost once.
  expect(session.protection.seen.losses).toBe(maps);
});
