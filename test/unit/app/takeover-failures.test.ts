import { beforeEach, describe, expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import type { JobState } from '../../../src/core/model/job-view.ts';
import { attempt, failure } from '../../support/job-states.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

let system: ScriptedSystem;
let jobId: JobId;

/** An attempt on a node that fails with this message, or is at work. */
type Ran = readonly [id: string, node: string, message?: string];

async function ran([id, node, message]: Ran): Promise<void> {
  const space = { jobId, shards: 1 };
  const attemptId = attempt(id);
  const now = system.clock.now();
  await system.attempts.create(space, attemptId, now);
  await system.attempts.claim(space, attemptId, { node, zone: 'z' }, now);
  if (message === undefined) return;
  const why = failure('user-code', message);
  await system.attempts.end(space, attemptId, { state: 'failed', progress: progress(10), failure: why }, now);
}

/** A scheduler takes the job over, whose records it finds in this order. */
async function takenOver(records: readonly Ran[]): Promise<JobState> {
  const decisions = ['map/0/0', 'map/0/1', 'map/0/2', 'map/1/0'].map((id) => {
    const reason = id.endsWith('/0') ? ('first' as const) : ('retry' as const);
    return { kind: 'launch' as const, attemptId: attempt(id), reason };
  });
  const entry = { version: 1, epoch: 1, at: system.clock.now() };
  const opened = [{ kind: 'open-stage' as const, stage: 0 }, ...decisions];
  expect(await system.decisions.append(jobId, { ...entry, decisions: opened })).toBe('appended');
  for (const each of records) await ran(each);
  const until = later(system.clock.now(), durationMs(600_000));
  return (await enterJob(system.deps, jobId, { owner: 'next', until })).state;
}

beforeEach(async () => {
  system = new ScriptedSystem();
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.alloc(3_000, 'word\n'));
  const input = { s3: ['s3://data/in/'], splitBytes: 1_000 };
  ({ jobId } = await submitJob(system, {
    spec: { name: 'words', stages: [{ name: 'map', operator: 'tokenize', inputs: [input] }] },
  }));
  await planJob(system.deps, jobId);
});

describe('a task that has failed alike twice on one node', () => {
  const failed: readonly Ran[] = [
    ['map/0/0', 'bad', 'x is not a function'],
    ['map/0/1', 'bad', 'x is not a function'],
  ];
  const others: readonly Ran[] = [
    ['map/0/2', 'good'],
    ['map/1/0', 'good'],
  ];

  it.each([
    ['before', [...failed, ...others]],
    ['after', [...others, ...failed]],
  ])('goes on after a takeover that reads of its failures %s other nodes', async (_, records) => {
    const state = await takenOver(records);
    expect(state.fatal).toBeUndefined();
    expect(state.stages[0]?.tasks[0]?.failures).toBe(2);
  });

  it('goes on where other nodes are known by other failures alone', async () => {
    expect((await takenOver([...failed, ['map/1/0', 'good', 'another']])).fatal).toBeUndefined();
  });

  it('ends its job where no other node is known', async () => {
    expect((await takenOver([...failed, ['map/1/0', 'bad']])).fatal).toMatchObject({
      ...{ stage: 'map', task: 0, alike: true },
    });
  });
});
