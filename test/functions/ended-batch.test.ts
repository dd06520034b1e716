import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryClock } from '../../src/adapters/memory/memory-clock.ts';
import { recordWorkerEnd } from '../../src/app/record-worker-end.ts';
import type { AttemptId, JobId } from '../../src/contracts/ids.ts';
import { epochMs } from '../../src/contracts/units.ts';
import { workerEndOf } from '../../functions/shared/worker-death.ts';

const jobId = 'words-0123456789ab' as JobId;
const space = { jobId, shards: 4 };
const ids = ['map/6/0', 'map/7/0', 'map/8/0'] as AttemptId[] as [AttemptId, AttemptId, AttemptId];
const [first, second, third] = ids;
const payload = JSON.stringify({
  ...{ jobId, shards: 4, stageKey: 'k', heartbeatMs: 1_000, inputs: [], attemptId: first },
  batch: [second, third].map((attemptId) => ({ attemptId, inputs: [] })),
});
const taskArn = 'arn:aws:ecs:us-east-1:123456789012:task/cluster/0123456789abcdef0123456789abcdef';

/** The end of a task that was launched for all three, as EventBridge tells it. */
const ended = (detail: Record<string, unknown>): Record<string, unknown> => ({
  'detail-type': 'ECS Task State Change',
  source: 'aws.ecs',
  detail: {
    ...{ taskArn, lastStatus: 'STOPPED', stopCode: 'EssentialContainerExited' },
    overrides: {
      containerOverrides: [{ name: 'worker', environment: [{ name: 'OUTRIDER_ATTEMPT', value: payload }] }],
    },
    ...detail,
  },
});
const exited = (exitCode: number): Record<string, unknown> => ended({ containers: [{ exitCode }] });

describe('an attempt that was launched with others by one call', () => {
  let attempts: MemoryAttemptStore;
  const claim = (attemptId: AttemptId, invocation: string) =>
    attempts.claim(space, attemptId, { node: invocation, zone: 'us-east-1a', invocation }, epochMs(2));
  const tell = (event: unknown): Promise<'recorded' | 'refused'> => {
    const end = workerEndOf(event);
    if (end === undefined) throw new Error('the event tells of no end');
    const log = { info: () => undefined, warn: () => undefined };
    const words = { wordOf: () => Promise.resolve(undefined) };
    return recordWorkerEnd({ attempts, words, clock: new MemoryClock(), log }, end);
  };
  const states = async (): Promise<unknown[]> => {
    const records = (await attempts.all(space)).attempts;
    return ids.map((id) => {
      const { state, failure } = records.find(({ attemptId }) => attemptId === id) ?? {};
      return failure === undefined ? state : `${String(state)}: ${failure.cause}`;
    });
  };

  beforeEach(async () => {
    attempts = new MemoryAttemptStore();
    for (const id of ids) await attempts.create(space, id, epochMs(1));
    await claim(first, 'another task');
  });

  it('is lost alone where its task died, once, and has the scheduler look at it', async () => {
    await claim(second, taskArn);
    expect(await tell(exited(137))).toBe('recorded');
    expect(await tell(exited(137))).toBe('refused');
    expect(await states()).toEqual(['running', 'lost: out-of-memory', 'launched']);
    expect((await attempts.told(space)).notes).toEqual([{ attemptId: second, kind: 'end' }]);
  });

  it('is lost as the first that nobody has, where a task never came so far as to take one', async () => {
    const unstarted = ended({ stopCode: 'TaskFailedToStart', stoppedReason: 'no image' });
    expect(await tell(unstarted)).toBe('recorded');
    expect(await states()).toEqual(['running', 'lost: exited', 'launched']);
    // Such events may be delivered again.
    expect(await tell(unstarted)).toBe('refused');
    expect(await states()).toEqual(['running', 'lost: exited', 'launched']);
    expect((await attempts.told(space)).notes).toEqual([{ attemptId: second, kind: 'end' }]);
  });

  it('is lost once for each task that took none, also where one is told of twice at a time', async () => {
    const unstarted = ended({ stopCode: 'TaskFailedToStart', stoppedReason: 'no image' });
    // Neither has seen what the other writes.
    const before = await attempts.read(space, ids, 'records');
    const read = attempts.read.bind(attempts);
    attempts.read = (of, wanted, what) =>
      what === 'records' ? Promise.resolve(before) : read(of, wanted, what);
    await Promise.all([tell(unstarted), tell(unstarted)]);
    expect(await states()).toEqual(['running', 'lost: exited', 'launched']);
    await tell(ended({ taskArn: `${taskArn}0`, stopCode: 'TaskFailedToStart', stoppedReason: 'no image' }));
    expect(await states()).toEqual(['running', 'lost: exited', 'lost: exited']);
  });

  it('is left to another call where ECS has started fewer than were asked for, one of which dies', async () => {
    // Two were started: the other has taken the first, and the third is asked for anew, alone.
    await tell(
      ended({ stopCode: 'TaskFailedToStart', stoppedReason: 'Capacity is unavailable at this time' }),
    );
    expect(await states()).toEqual(['running', 'lost: expired', 'launched']);
    expect(await claim(third, 'the task that is started later')).toBe('claimed');
  });

  it('is left alone where a task ended by itself, with another or with none', async () => {
    expect(await tell(exited(0))).toBe('refused');
    await claim(second, taskArn);
    const phaseMs = { init: 0, read: 0, compute: 0, write: 0 };
    const counts = { bytesRead: 1, bytesTotal: 1, recordsIn: 1, recordsOut: 1, peakMemoryBytes: 0 };
    await attempts.end(
      space,
      second,
      { state: 'done', progress: { ...counts, phase: 'write', phaseMs } },
      epochMs(3),
    );
    expect(await tell(exited(0))).toBe('refused');
    expect(await states()).toEqual(['running', 'done', 'launched']);
  });
});
