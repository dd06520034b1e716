import { beforeEach, expect, it } from 'vitest';
import { enterJob } from '../../../src/app/enter-job.ts';
import { planJob } from '../../../src/app/plan-job.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import type { Session } from '../../../src/app/scheduler-session.ts';
import { type JobId, taskOf } from '../../../src/contracts/ids.ts';
import { durationMs, type EpochMs, later } from '../../../src/contracts/units.ts';
import type { Decision } from '../../../src/core/model/decision.ts';
import { stageAt } from '../../../src/core/model/job-state.ts';
import { attempt } from '../../support/job-states.ts';
import { progress, ScriptedSystem } from '../../support/scripted-job.ts';

let system: ScriptedSystem;
let jobId: JobId;
let version: number;
let begin: EpochMs;

const at = (ms: number): EpochMs => later(begin, durationMs(ms));
const space = () => ({ jobId, shards: 1 });

/** What the scheduler before has decided, at a ms of the job. */
async function decided(ms: number, ...decisions: readonly Decision[]): Promise<void> {
  version += 1;
  const entry = { version, epoch: 1, at: at(ms), decisions };
  expect(await system.decisions.append(jobId, entry)).toBe('appended');
}

const launch = (id: string, reason: 'first' | 'backup'): Decision => ({
  kind: 'launch',
  attemptId: attempt(id),
  reason,
});
const cancel = (id: string, reason: 'sibling-won' | 'pruned'): Decision => ({
  kind: 'cancel',
  attemptId: attempt(id),
  reason,
});

/** An attempt whose launch was made and that was claimed and has ended at these ms of the job; a winner leaves a result. */
async function ran(
  id: string,
  [madeMs, claimedMs, endedMs]: readonly [number, number, number],
  state: 'done' | 'cancelled',
): Promise<void> {
  const attemptId = attempt(id);
  const { attempts } = system;
  await attempts.create(space(), attemptId, at(madeMs));
  await attempts.claim(space(), attemptId, { node: `node of ${id}`, zone: 'z' }, at(claimedMs));
  if (state === 'done')
    await attempts.commit(space(), {
      ...{ taskId: taskOf(attemptId), attemptId, committedAt: at(endedMs), bytesIn: 100, bytesOut: 10 },
      ...{ partitions: { lengths: [10, 0], crcs: [1, 0] }, recordsIn: 2, recordsOut: 1, counters: {} },
    });
  await attempts.end(space(), attemptId, { state, progress: progress(100) }, at(endedMs));
}

/** A scheduler takes the job over, two minutes after it began. */
async function takeOver(): Promise<Session> {
  await system.clock.advance(120_000);
  const until = later(system.clock.now(), durationMs(600_000));
  return enterJob(system.deps, jobId, { owner: 'next', until });
}

beforeEach(async () => {
  system = new ScriptedSystem();
  version = 0;
  await system.objects.write({ bucket: 'data', key: 'in/a' }, Buffer.alloc(3_000, 'word\n'));
  ({ jobId } = await submitJob(system, {
    spec: {
      name: 'words',
      policy: 'late',
      stages: [
        { name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'], splitBytes: 1_000 }] },
        { name: 'reduce', operator: 'sum-counts', inputs: [{ stage: 'map', pattern: 'all-to-all' }] },
      ],
    },
  }));
  await planJob(system.deps, jobId);
  begin = system.clock.now();
  await decided(0, { kind: 'open-stage', stage: 0 });
  await decided(0, launch('map/0/0', 'first'), launch('map/1/0', 'first'));
});

it('counts what losers took of tasks that had ended before a takeover, whichever of their attempts has won', async () => {
  await decided(5_000, launch('map/0/1', 'backup'), launch('map/1/1', 'backup'));
  await ran('map/0/0', [400, 1_000, 11_000], 'done');
  await ran('map/1/0', [400, 1_000, 18_000], 'cancelled');
  await decided(11_500, cancel('map/0/1', 'sibling-won'));
  await ran('map/0/1', [5_400, 6_000, 13_000], 'cancelled');
  await decided(16_500, cancel('map/1/0', 'sibling-won'));
  await ran('map/1/1', [5_400, 6_000, 16_000], 'done');
  const { state } = await takeOver();
  // 10 s and 7 s of the first task, 17 s and 10 s of the second.
  expect(stageAt(state, 0).statistics.slotTime).toEqual({ ownMs: 27_000, othersMs: 17_000 });
});

it('counts losers that were told to stop when their task was won as little against their nodes as who saw it', async () => {
  await decided(5_000, launch('map/0/1', 'backup'), launch('map/1/1', 'backup'));
  await ran('map/0/0', [400, 1_000, 18_000], 'cancelled');
  await ran('map/0/1', [5_400, 6_000, 16_000], 'done');
  await decided(16_500, cancel('map/0/0', 'sibling-won'));
  // This one had been stopped for being slow, before its task was won.
  await ran('map/1/0', [400, 1_000, 13_000], 'cancelled');
  await decided(12_000, cancel('map/1/0', 'pruned'));
  await ran('map/1/1', [5_400, 6_000, 16_000], 'done');
  const { state } = await takeOver();
  const told = (id: string): number | undefined => state.nodes.get(`node of ${id}`)?.finished;
  expect(['map/0/1', 'map/1/1', 'map/1/0'].map(told)).toEqual([1, 1, 2]);
  expect(told('map/0/0') ?? 0).toBe(0);
});

it('counts a launch from when it was made, and not the wait for its turn before', async () => {
  await ran('map/0/0', [400, 1_000, 11_000], 'done');
  await ran('map/1/0', [700, 1_000, 11_000], 'done');
  const { state } = await takeOver();
  expect(stageAt(state, 0).statistics.lag).toEqual({ sumMs: 900, count: 2 });
});

it('knows how tasks got on, those that have ended and those that run, by what their records tell once more', async () => {
  await ran('map/0/0', [400, 1_000, 41_000], 'done');
  const id = attempt('map/1/0');
  await system.attempts.create(space(), id, at(400));
  await system.attempts.claim(space(), id, { node: 'n', zone: 'z' }, at(1_000));
  // A tenth after 20 s, and half after 30.
  const history = `${(20_000).toString(36)}.${(4_666).toString(36)} ${(30_000).toString(36)}.${(23_328).toString(36)}`;
  const looks = `${(10_000).toString(36)}.0 ${history} ${(40_000).toString(36)}.${(27_993).toString(36)}`;
  await system.attempts.report(space(), id, { ...progress(60), history, looks }, at(41_000));
  const { state } = await takeOver();
  const [first, second, last, ...others] = state.attempts.get(id)?.reports ?? [];
  expect(others).toEqual([]);
  expect([first?.workedMs, second?.workedMs, last?.workedMs]).toEqual([20_000, 30_000, 40_000]);
  expect(first?.bytesRead).toBeCloseTo(10, 2);
  expect(second?.bytesRead).toBeCloseTo(50, 2);
  expect(last?.bytesRead).toBe(60);
  // Read by nobody any more: it is kept in the record alone.
  expect(state.attempts.get(id)?.progress?.history).toBeUndefined();
  expect(state.attempts.get(id)?.progress?.looks).toBeUndefined();
  const looked = state.attempts.get(id)?.looks ?? [];
  expect(looked.map(({ workedMs, bytesRead }) => [workedMs, Math.round(bytesRead)])).toEqual([
    [10_000, 0],
    [20_000, 10],
    [30_000, 50],
    [40_000, 60],
  ]);
});
