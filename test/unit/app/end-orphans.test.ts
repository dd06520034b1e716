import { beforeEach, describe, expect, it } from 'vitest';
import { cancelJob } from '../../../src/app/change-job.ts';
import { reconcileJob, settleExecution } from '../../../src/app/end-orphans.ts';
import { submitJob } from '../../../src/app/submit-job.ts';
import { StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { JobId } from '../../../src/contracts/ids.ts';
import type { JobRecord } from '../../../src/contracts/records.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import type { ExecutionState } from '../../../src/ports/coordinator.ts';
import { ScriptedSystem } from '../../support/scripted-job.ts';

const spec = {
  name: 'words',
  stages: [{ name: 'map', operator: 'tokenize', inputs: [{ s3: ['s3://data/in/'] }] }],
};
const patienceMs = durationMs(0);

let system: ScriptedSystem;
let jobId: JobId;
let asked: number;

beforeEach(async () => {
  system = new ScriptedSystem();
  ({ jobId } = await submitJob(system, { spec }));
  asked = 0;
});

/** The system whose Step Functions answers as told, and counts the questions. */
function answering(state: () => ExecutionState | Error): ScriptedSystem {
  const coordinator = Object.assign(Object.create(system.coordinator) as object, {
    status: () => {
      asked += 1;
      const answer = state();
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
  });
  return Object.assign(Object.create(system) as ScriptedSystem, { coordinator });
}

const job = async (): Promise<JobRecord> => {
  const found = await system.jobs.load(jobId);
  if (found === undefined) throw new Error('the job is gone');
  return found;
};

describe('a job that is read', () => {
  it('is not asked about while it shows signs of life, and then once a minute at most', async () => {
    const deps = answering(() => 'running');
    for (let polls = 0; polls < 300; polls++) {
      expect((await reconcileJob(deps, await job())).state).toBe('submitted');
      await system.clock.advance(1_000);
    }
    expect(asked).toBe(4);
  });

  it.each([
    ['aborted', 'its execution was aborted'],
    ['failed', 'its execution failed, or ran for longer than 8 days, and could not say so'],
    ['succeeded', 'its execution ended without its output'],
  ] as const)('is ended there and then where its execution is %s', async (state, message) => {
    await system.clock.advance(5 * 60_000);
    const found = await reconcileJob(
      answering(() => state),
      await job(),
    );
    expect(found).toMatchObject({ state: 'failed', error: { name: 'ExecutionEnded', message } });
    expect(await job()).toEqual(found);
    expect([...system.coordinator.endings]).toEqual([jobId]);
  });

  const isReadAs = async (state: ExecutionState): Promise<string> =>
    (
      await reconcileJob(
        answering(() => state),
        await job(),
      )
    ).state;

  it('is ended where its execution is not found, and was not found five minutes ago either', async () => {
    await system.clock.advance(5 * 60_000 - 1);
    expect(await isReadAs('missing')).toBe('submitted');
    // Its submission is over by now: from here on it counts.
    await system.clock.advance(60_000);
    expect(await isReadAs('missing')).toBe('submitted');
    await system.clock.advance(5 * 60_000 - 1);
    expect(await isReadAs('missing')).toBe('submitted');
    await system.clock.advance(60_000);
    expect(await isReadAs('missing')).toBe('failed');
    expect((await job()).error?.message).toBe('its execution was never started, or is forgotten');
    expect([...system.coordinator.endings]).toEqual([jobId]);
  });

  it('that has just begun goes on, though its execution is not told of yet and a reader has a clock that is ahead', async () => {
    const ahead = Object.assign(
      answering(() => 'missing'),
      { clock: { now: () => later(system.clock.now(), durationMs(6 * 60_000)) } },
    );
    expect((await reconcileJob(ahead, await job())).state).toBe('submitted');
    // Those who look later find it, or by a clock of their own a job that is young.
    expect(await isReadAs('missing')).toBe('submitted');
    await system.clock.advance(60_000);
    expect(await isReadAs('running')).toBe('submitted');
  });

  it('goes on where its execution was not found once as it began, and is not for a moment long after', async () => {
    await system.clock.advance(6 * 60_000);
    expect(await isReadAs('missing')).toBe('submitted');
    await system.clock.advance(60_000);
    expect(await isReadAs('running')).toBe('submitted');
    await system.clock.advance(24 * 3_600_000);
    expect(await isReadAs('missing')).toBe('submitted');
    await system.clock.advance(60_000);
    expect(await isReadAs('running')).toBe('submitted');
  });

  it('is ended in time where a clock that is hours ahead was the first to find no execution', async () => {
    const ahead = Object.assign(
      answering(() => 'missing'),
      { clock: { now: () => later(system.clock.now(), durationMs(6 * 3_600_000)) } },
    );
    expect((await reconcileJob(ahead, await job())).state).toBe('submitted');
    await system.clock.advance(5 * 60_000);
    expect(await isReadAs('missing')).toBe('submitted');
    await system.clock.advance(5 * 60_000);
    expect(await isReadAs('missing')).toBe('failed');
  });

  it('keeps an end that was written between the two readings', async () => {
    await system.clock.advance(60_000);
    const stale = await job();
    await system.jobs.update(jobId, ['submitted'], { state: 'succeeded', endedAt: system.clock.now() });
    expect(
      (
        await reconcileJob(
          answering(() => 'succeeded'),
          stale,
        )
      ).state,
    ).toBe('succeeded');
    expect(system.coordinator.endings.size).toBe(0);
  });

  it('is answered as recorded where Step Functions cannot be asked, or its ending not be started', async () => {
    await system.clock.advance(60_000);
    const away = answering(() => new StoreUnavailableError('away'));
    expect(await reconcileJob(away, await job())).toEqual(await job());
    const half = answering(() => 'aborted');
    Object.assign(half.coordinator, { startEnding: () => Promise.reject(new StoreUnavailableError('away')) });
    expect((await reconcileJob(half, await job())).state).toBe('failed');
  });
});

describe('a job that is cancelled', () => {
  it('ends at once where its execution was never started', async () => {
    await system.clock.advance(5 * 60_000);
    const deps = answering(() => 'missing');
    expect(await cancelJob(deps, jobId)).toMatchObject({ jobId, state: 'cancelled' });
  });

  it('ends at once where its execution has ended, and says so', async () => {
    system.coordinator.settle(jobId, 'aborted');
    expect(await cancelJob(system, jobId)).toMatchObject({ jobId, state: 'cancelled' });
    expect((await job()).state).toBe('cancelled');
    expect([...system.coordinator.endings]).toEqual([jobId]);
  });

  it('ends where the scheduler died after it was asked to', async () => {
    expect((await cancelJob(system, jobId)).state).toBe('submitted');
    system.coordinator.settle(jobId, 'failed');
    expect((await cancelJob(system, jobId)).state).toBe('cancelled');
  });
});

describe('the end of an execution', () => {
  const name = (): string => jobId;

  it.each([
    ['ABORTED', 'its execution was aborted: Console: by hand'],
    ['TIMED_OUT', 'its execution ran for longer than 8 days: Console: by hand'],
    ['FAILED', 'its execution failed and could not say so: Console: by hand'],
  ] as const)('as %s ends its job, which says why, once', async (status, message) => {
    await system.ledger.resize(jobId, 2, { totalSlots: 4, now: system.clock.now(), length: durationMs(9e9) });
    const left = { bucket: system.dataBucket, key: `jobs/${jobId}/plan.json` };
    await system.objects.write(left, new Uint8Array(1));
    const end = { name: name(), status, error: 'Console', cause: 'by hand' };
    await settleExecution(system.deps, end, patienceMs);
    expect(await job()).toMatchObject({ state: 'failed', error: { name: 'ExecutionEnded', message } });
    expect((await system.ledger.view()).usedSlots).toBe(0);
    expect(await system.objects.head(left)).toBeUndefined();
    const first = await job();
    await system.clock.advance(1_000);
    await settleExecution(system.deps, { name: name(), status: 'ABORTED' }, patienceMs);
    expect(await job()).toEqual(first);
  });

  it('ends a job as cancelled where that was asked for', async () => {
    await system.jobs.update(jobId, ['submitted'], { cancelRequestedAt: system.clock.now() });
    await settleExecution(system.deps, { name: name(), status: 'ABORTED' }, patienceMs);
    expect(await job()).toMatchObject({
      state: 'cancelled',
      error: { message: 'its execution was aborted' },
    });
  });

  it('leaves a job that ended well as it is, output included', async () => {
    const { output } = await job();
    const part = { bucket: system.dataBucket, key: `${output.split('/').slice(3).join('/')}part-00000` };
    await system.objects.write(part, new Uint8Array(3), {
      metadata: { 'outrider-attempt': `${jobId}/map/0/0` },
    });
    await system.jobs.update(jobId, ['submitted'], { state: 'succeeded', startedAt: system.clock.now() });
    await settleExecution(system.deps, { name: name(), status: 'FAILED' }, patienceMs);
    expect((await job()).state).toBe('succeeded');
    expect((await system.objects.head(part))?.sizeBytes).toBe(3);
  });

  it.each(['by-hand', 'words-0123456789ab', 'words-0123456789ab-end'])(
    'named %s, of no job on record, has no effect',
    async (other) => {
      await settleExecution(system.deps, { name: other, status: 'ABORTED' }, patienceMs);
      expect((await job()).state).toBe('submitted');
    },
  );
});
