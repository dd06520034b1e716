import { beforeEach, describe, expect, it } from 'vitest';
import { workerEndOf } from '../../functions/shared/worker-death.ts';
import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { MemoryClock } from '../../src/adapters/memory/memory-clock.ts';
import { recordWorkerEnd, type WorkerEndDeps } from '../../src/app/record-worker-end.ts';
import type { AttemptId, JobId } from '../../src/contracts/ids.ts';
import type { AttemptRecord } from '../../src/contracts/records.ts';
import { epochMs } from '../../src/contracts/units.ts';

const jobId = 'words-0123456789ab' as JobId;
const attemptId = 'map/3/1' as AttemptId;
const word = '0123456789abcdef0123456789abcdef';
const payload = {
  jobId,
  attemptId,
  access: word,
  shards: 4,
  stageKey: 'jobs/words-0123456789ab/plans/n/stages/map.json',
  inputs: [],
  heartbeatMs: 10_000,
};
const requestId = '7c6f6dcb-7f5f-4f3e-9e3b-5d8f2f7a9a11';

/** A record as Lambda sends it to an on-failure destination. */
const record = (responsePayload: unknown, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  version: '1.0',
  timestamp: '2026-11-22T04:20:05.568Z',
  requestContext: {
    requestId,
    functionArn: 'arn:aws:lambda:us-east-1:123456789012:function:worker:$LATEST',
    condition: 'RetriesExhausted',
    approximateInvokeCount: 1,
  },
  requestPayload: payload,
  responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: 'Unhandled' },
  responsePayload,
  ...more,
});
const failed = (errorType: string | undefined, errorMessage: string): Record<string, unknown> =>
  record({ ...(errorType === undefined ? {} : { errorType }), errorMessage });

const taskArn = 'arn:aws:ecs:us-east-1:123456789012:task/cluster/0123456789abcdef0123456789abcdef';
/** An event as EventBridge delivers it. */
const stopped = (detail: Record<string, unknown>): Record<string, unknown> => ({
  version: '0',
  id: '105f6bb1-4da6-c630-4965-35383018cbca',
  'detail-type': 'ECS Task State Change',
  source: 'aws.ecs',
  account: '123456789012',
  time: '2026-11-22T04:20:05Z',
  region: 'us-east-1',
  resources: [taskArn],
  detail: {
    taskArn,
    clusterArn: 'arn:aws:ecs:us-east-1:123456789012:cluster/cluster',
    launchType: 'FARGATE',
    lastStatus: 'STOPPED',
    desiredStatus: 'STOPPED',
    stopCode: 'EssentialContainerExited',
    stoppedReason: 'Essential container in task exited',
    containers: [{ name: 'worker', lastStatus: 'STOPPED', exitCode: 1 }],
    overrides: {
      containerOverrides: [
        { name: 'worker', environment: [{ name: 'OUTRIDER_ATTEMPT', value: JSON.stringify(payload) }] },
      ],
    },
    ...detail,
  },
});
const container = (exitCode: number | undefined, reason?: string): Record<string, unknown> => ({
  containers: [
    {
      name: 'worker',
      ...(exitCode === undefined ? {} : { exitCode }),
      ...(reason === undefined ? {} : { reason }),
    },
  ],
});

const causeOf = (event: unknown): string | undefined => workerEndOf(event)?.death.failure.cause;

describe('the end of an invocation', () => {
  it.each([
    [
      'out-of-memory',
      failed(
        'Runtime.OutOfMemory',
        `RequestId: ${requestId} Error: Runtime exited with error: signal: killed`,
      ),
    ],
    [
      'out-of-memory',
      failed('Runtime.ExitError', `RequestId: ${requestId} Error: Runtime exited with error: signal: killed`),
    ],
    [
      'out-of-memory',
      failed(
        'Runtime.ExitError',
        `RequestId: ${requestId} Error: Runtime exited with error: signal: aborted (core dumped)`,
      ),
    ],
    [
      'out-of-memory',
      failed(
        'Runtime.ExitError',
        `RequestId: ${requestId} Error: Runtime exited with error: exit status 134`,
      ),
    ],
    [
      'timeout',
      failed('Sandbox.Timedout', `RequestId: ${requestId} Error: Task timed out after 900.00 seconds`),
    ],
    [
      'timeout',
      failed(undefined, `2026-11-22T04:20:05.568Z ${requestId} Task timed out after 900.10 seconds`),
    ],
    [
      'exited',
      failed('Runtime.ExitError', `RequestId: ${requestId} Error: Runtime exited with error: exit status 1`),
    ],
    [
      'exited',
      failed('Runtime.ExitError', `RequestId: ${requestId} Error: Runtime exited without providing a reason`),
    ],
    ['exited', failed(undefined, `RequestId: ${requestId} Process exited before completing request`)],
    ['exited', failed('Sandbox.Failure', 'The sandbox was lost')],
    ['exited', record(null)],
    ['exited', record('something that is no error')],
    ['storage', failed('StoreUnavailable', 'update failed')],
    ['access-denied', failed('AccessDenied', 'access denied: dynamodb:UpdateItem on table t')],
    ['internal', failed('TypeError', 'x is not a function')],
  ])('is %s in %j', (cause, event) => {
    expect(workerEndOf(event)).toMatchObject({
      payload,
      death: { invocation: requestId, failure: { cause } },
    });
  });

  it('is told in the words of Lambda, without its request id', () => {
    const event = failed(
      'Runtime.ExitError',
      `RequestId: ${requestId} Error: Runtime exited with error: exit status 1`,
    );
    expect(workerEndOf(event)?.death.failure.message).toBe(
      'its worker exited: Runtime exited with error: exit status 1',
    );
  });

  it('is no failure where the event grew too old in the queue, whatever else is said', () => {
    const context = {
      requestContext: { requestId, condition: 'EventAgeExceeded', approximateInvokeCount: 0 },
    };
    expect(causeOf(record(undefined, context))).toBe('expired');
    expect(causeOf({ ...context, requestPayload: payload })).toBe('expired');
  });
});

describe('the end of a task', () => {
  it.each([
    ['out-of-memory', container(137, 'OutOfMemoryError: Container killed due to memory usage')],
    [
      'out-of-memory',
      { ...container(137), stoppedReason: 'OutOfMemoryError: Container killed due to memory usage' },
    ],
    ['out-of-memory', container(137)],
    ['out-of-memory', container(134)],
    ['exited', container(139)],
    ['exited', container(1)],
    ['exited', container(0)],
    ['exited', container(undefined)],
    ['exited', { containers: [] }],
    [
      'interrupted',
      { stopCode: 'SpotInterruption', stoppedReason: 'Your Spot Task was interrupted.', ...container(143) },
    ],
    ['interrupted', { stopCode: 'SpotInterruption', ...container(137) }],
    ['interrupted', { stopCode: 'SpotInterruption', ...container(134) }],
    ['interrupted', { stopCode: 'TerminationNotice', ...container(143) }],
    ['interrupted', { stopCode: 'UserInitiated', stoppedReason: 'Task stopped by user', ...container(143) }],
    [
      'expired',
      {
        stopCode: 'TaskFailedToStart',
        stoppedReason:
          'InsufficientFreeAddressesInSubnet: The specified subnet does not have enough free addresses to satisfy the request.',
        containers: [],
      },
    ],
    [
      'expired',
      {
        stopCode: 'TaskFailedToStart',
        stoppedReason: 'Timeout waiting for network interface provisioning to complete.',
        containers: [],
      },
    ],
    [
      'exited',
      {
        stopCode: 'TaskFailedToStart',
        stoppedReason: 'CannotPullContainerError: image not found',
        containers: [],
      },
    ],
  ])('is %s in %j', (cause, detail) => {
    const end = workerEndOf(stopped(detail));
    expect(end).toMatchObject({ payload, death: { invocation: taskArn, failure: { cause } } });
  });

  it('is none while the task runs', () => {
    expect(workerEndOf(stopped({ lastStatus: 'RUNNING' }))).toBeUndefined();
  });

  // As the task stopper asks for it: whoever asked has given the attempt up, or ended its job.
  it('is none where it was stopped by its own scheduler, unless its memory ran out', () => {
    const ours = { stopCode: 'UserInitiated', stoppedReason: 'the attempt is not needed', ...container(137) };
    expect(workerEndOf(stopped(ours))).toBeUndefined();
    expect(causeOf(stopped({ ...ours, stopCode: 'SpotInterruption' }))).toBe('interrupted');
    const killed = container(137, 'OutOfMemoryError: Container killed due to memory usage');
    expect(causeOf(stopped({ ...ours, ...killed }))).toBe('out-of-memory');
  });
});

it.each([
  ['nothing', undefined],
  ['text', 'boom'],
  ['an event of another source', { ...stopped({}), source: 'aws.ec2' }],
  ['a task of somebody else', stopped({ overrides: { containerOverrides: [] } })],
  ['a task without overrides', stopped({ overrides: undefined })],
  [
    'a task whose payload is no JSON',
    stopped({
      overrides: { containerOverrides: [{ environment: [{ name: 'OUTRIDER_ATTEMPT', value: '{' }] }] },
    }),
  ],
  ['an invocation without a payload', record({}, { requestPayload: undefined })],
  ['an invocation for what is no attempt', record({}, { requestPayload: { ...payload, attemptId: 'map' } })],
  ['an invocation for what is no job', record({}, { requestPayload: { ...payload, jobId: '../x' } })],
  [
    'an invocation whose riders are no attempts',
    record({}, { requestPayload: { ...payload, next: [{ attemptId: 'map', inputs: [] }] } }),
  ],
  ['an invocation without an id', record({}, { requestContext: { condition: 'RetriesExhausted' } })],
  ['an invocation that went well', record({}, { requestContext: { requestId, condition: 'Success' } })],
])('%s tells of the end of no worker', (_, event) => {
  expect(workerEndOf(event)).toBeUndefined();
});

describe('an attempt whose worker is gone', () => {
  const space = { jobId, shards: 4 };
  const outOfMemory = failed('Runtime.OutOfMemory', 'Runtime exited with error: signal: killed');
  let attempts: MemoryAttemptStore;
  let deps: WorkerEndDeps;

  beforeEach(async () => {
    attempts = new MemoryAttemptStore();
    const log = { info: () => undefined, warn: () => undefined };
    deps = { attempts, words: { wordOf: () => Promise.resolve(word) }, clock: new MemoryClock(), log };
    await attempts.create(space, attemptId, epochMs(1));
    const place = { node: 'worker/stream', zone: 'use1-az1', invocation: requestId };
    await attempts.claim(space, attemptId, place, epochMs(2));
  });

  const tell = (event: unknown): Promise<'recorded' | 'refused'> => {
    const end = workerEndOf(event);
    if (end === undefined) throw new Error('the event tells of no end');
    return recordWorkerEnd(deps, end);
  };
  const now = async (): Promise<AttemptRecord | undefined> => (await attempts.all(space)).attempts[0];

  it('is lost with its cause, and a second word of it changes nothing', async () => {
    expect(await tell(outOfMemory)).toBe('recorded');
    const lost = await now();
    expect(lost).toMatchObject({ state: 'lost', order: 'cancel', failure: { cause: 'out-of-memory' } });
    expect(await tell(failed('Sandbox.Timedout', 'Task timed out after 900.00 seconds'))).toBe('refused');
    expect(await now()).toEqual(lost);
  });

  it.each([
    [
      'another invocation',
      record({}, { requestContext: { requestId: 'other', condition: 'RetriesExhausted' } }),
    ],
    [
      'a doubled launch that expired',
      record({}, { requestContext: { requestId, condition: 'EventAgeExceeded' } }),
    ],
    ['one without the word of its job', record({}, { requestPayload: { ...payload, access: undefined } })],
    [
      'one with the word of another job',
      record({}, { requestPayload: { ...payload, access: word.replaceAll('0', 'f') } }),
    ],
    ['another job', record({}, { requestPayload: { ...payload, jobId: 'other-0123456789ab' } })],
    ['another attempt', record({}, { requestPayload: { ...payload, attemptId: 'map/3/2' } })],
    ['a task', stopped(container(137))],
  ])('is left alone by the end of %s', async (_, event) => {
    const before = await now();
    expect(await tell(event)).toBe('refused');
    expect(await now()).toEqual(before);
  });

  it('keeps its end where it came first, and its result', async () => {
    await attempts.end(space, attemptId, { state: 'done', progress: doneProgress }, epochMs(3));
    const before = await now();
    expect(await tell(outOfMemory)).toBe('refused');
    expect(await now()).toEqual(before);
  });

  describe('with others behind it', () => {
    const [second, third] = ['map/4/0', 'map/5/0'] as AttemptId[] as [AttemptId, AttemptId];
    const next = [second, third].map((id) => ({ attemptId: id, inputs: [] }));
    const requestPayload = { ...payload, next };
    const place = { node: 'worker/stream', zone: 'use1-az1', invocation: requestId };
    const states = async (): Promise<Record<string, unknown>> =>
      Object.fromEntries(
        (await attempts.all(space)).attempts.map(({ attemptId: id, state, failure }) => [
          id,
          failure === undefined ? state : `${state}: ${failure.cause}`,
        ]),
      );

    beforeEach(async () => {
      for (const id of [second, third]) await attempts.create(space, id, epochMs(1));
    });

    it('is lost alone where its worker was at it, and has the scheduler look', async () => {
      expect(await tell({ ...outOfMemory, requestPayload })).toBe('recorded');
      expect(await states()).toEqual({
        [attemptId]: 'lost: out-of-memory',
        [second]: 'launched',
        [third]: 'launched',
      });
      expect((await attempts.told(space)).notes.length).toBeGreaterThan(0);
    });

    it.each([
      ['Runtime.OutOfMemory', 'signal: killed', 'out-of-memory'],
      ['Runtime.ExitError', 'exit status 1', 'exited'],
      // It had less time than it would have had in a worker of its own.
      ['Sandbox.Timedout', 'Task timed out after 900.00 seconds', 'interrupted'],
    ])('is not, but the one that its worker was at, of %s', async (errorType, message, cause) => {
      await attempts.end(space, attemptId, { state: 'done', progress: doneProgress }, epochMs(3));
      await attempts.claim(space, second, place, epochMs(4));
      expect(await tell({ ...failed(errorType, message), requestPayload })).toBe('recorded');
      expect(await states()).toEqual({
        [attemptId]: 'done',
        [second]: `lost: ${cause}`,
        [third]: 'launched',
      });
      expect((await attempts.told(space)).notes.map(({ attemptId: id }) => id)).toContain(second);
    });

    it('is not where its worker died between two, and those behind it may be claimed by others', async () => {
      await attempts.end(space, attemptId, { state: 'done', progress: doneProgress }, epochMs(3));
      expect(await tell({ ...outOfMemory, requestPayload })).toBe('refused');
      expect(await states()).toEqual({ [attemptId]: 'done', [second]: 'launched', [third]: 'launched' });
      await attempts.claim(space, third, { ...place, invocation: 'other' }, epochMs(4));
      expect(await tell({ ...outOfMemory, requestPayload })).toBe('refused');
      expect((await states())[third]).toBe('running');
    });

    it('expires alone: those behind it are launched by themselves', async () => {
      const [fresh] = ['map/9/0'] as [AttemptId];
      await attempts.create(space, fresh, epochMs(1));
      const expired = record(
        {},
        {
          requestPayload: { ...requestPayload, attemptId: fresh },
          requestContext: { requestId, condition: 'EventAgeExceeded' },
        },
      );
      expect(await tell(expired)).toBe('recorded');
      expect(await states()).toMatchObject({ [fresh]: 'lost: expired', [second]: 'launched' });
    });
  });

  it('is believed to be gone where its job has no word', async () => {
    deps = { ...deps, words: { wordOf: () => Promise.resolve(undefined) } };
    expect(
      await tell(record({ errorMessage: 'x' }, { requestPayload: { ...payload, access: undefined } })),
    ).toBe('recorded');
  });
});

const doneProgress = {
  bytesRead: 1,
  bytesTotal: 1,
  recordsIn: 1,
  recordsOut: 1,
  phase: 'write',
  phaseMs: { init: 0, read: 0, compute: 0, write: 0 },
  peakMemoryBytes: 0,
} as const;
