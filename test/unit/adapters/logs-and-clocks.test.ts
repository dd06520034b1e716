import { CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import {
  SFNClient,
  SFNServiceException,
  StartExecutionCommand,
  DescribeExecutionCommand,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import { mockClient } from 'aws-sdk-client-mock';
import { describe, expect, it } from 'vitest';
import { CloudWatchLogReader } from '../../../src/adapters/aws/cloudwatch-log-reader.ts';
import { SfnCoordinator } from '../../../src/adapters/aws/sfn-coordinator.ts';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { JsonLog } from '../../../src/adapters/node/json-log.ts';
import { RandomIdSource } from '../../../src/adapters/node/random-id-source.ts';
import { SystemClock } from '../../../src/adapters/node/system-clock.ts';
import {
  AccessDeniedError,
  InvalidInputError,
  NotFoundError,
  StoreUnavailableError,
} from '../../../src/contracts/errors.ts';
import { at, freshJobId, seconds, T0 } from '../../contract/ports/builders.ts';

describe('the memory clock', () => {
  it('stands still but for advance, and wakes sleepers each at its own time', async () => {
    const clock = new MemoryClock(T0);
    const woken: number[] = [];
    const ticking = (async () => {
      for (let tick = 0; tick < 3; tick++) {
        await clock.sleep(seconds(2));
        woken.push(clock.now());
      }
    })();
    expect(clock.now()).toBe(T0);
    await clock.advance(5_000);
    expect(woken).toEqual([at(2), at(4)]);
    expect(clock.now()).toBe(at(5));
    await clock.advance(1_000);
    await ticking;
    expect(woken).toEqual([at(2), at(4), at(6)]);
    expect(clock.sleeping).toBe(0);
  });

  it('ends a sleep when the signal fires', async () => {
    const clock = new MemoryClock(T0);
    const abort = new AbortController();
    const sleep = clock.sleep(seconds(100), abort.signal);
    abort.abort();
    await sleep;
    await clock.sleep(seconds(100), abort.signal);
    expect(clock.now()).toBe(T0);
    expect(clock.sleeping).toBe(0);
  });
});

describe('the system clock', () => {
  it('ends a sleep when the signal fires, without an error', async () => {
    const abort = new AbortController();
    const sleep = new SystemClock().sleep(seconds(1_000), abort.signal);
    abort.abort();
    await sleep;
    await new SystemClock().sleep(seconds(1_000), abort.signal);
  });
});

describe('ids', () => {
  it('are 32 random hex digits', () => {
    const ids = new RandomIdSource();
    expect(ids.token()).toMatch(/^[0-9a-f]{32}$/);
    expect(ids.token()).not.toBe(ids.token());
  });

  it('digest as SHA-256 does', () => {
    expect(new RandomIdSource().digest('abc')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
  });
});

describe('the JSON log', () => {
  const written = (write: (log: JsonLog) => void): unknown[] => {
    const lines: string[] = [];
    write(new JsonLog({ jobId: 'j' }, (line) => lines.push(line)));
    for (const line of lines) expect(line.indexOf('\n')).toBe(line.length - 1);
    return lines.map((line): unknown => JSON.parse(line));
  };

  it('writes one line an event, with all facts, errors and their causes', () => {
    const cause = new InvalidInputError('bad\nline', { field: 'name' }, { cause: new TypeError('why') });
    const lines = written((log) => {
      log.info('started', { n: 1 });
      log.with({ task: 't' }).warn('failed', { cause, big: 3n });
    });
    expect(lines).toMatchObject([
      { level: 'info', event: 'started', jobId: 'j', n: 1 },
      {
        level: 'warn',
        event: 'failed',
        jobId: 'j',
        task: 't',
        big: '3',
        cause: {
          name: 'InvalidInput',
          message: 'bad\nline',
          details: { field: 'name' },
          cause: { name: 'TypeError', message: 'why' },
        },
      },
    ]);
  });

  it('does not throw on facts that cannot be written', () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    expect(
      written((log) => {
        log.info('odd', { circle });
      }),
    ).toMatchObject([{ event: 'odd', facts: 'unwritable' }]);
    const broken = new JsonLog({}, () => {
      throw new Error('closed');
    });
    broken.info('lost');
  });
});

describe('the log reader', () => {
  const mock = mockClient(CloudWatchLogsClient);
  const reader = new CloudWatchLogReader(new CloudWatchLogsClient({ region: 'us-east-1' }), 'jobs');

  it('reads the lines of a job over all pages, oldest first, up to the limit', async () => {
    const jobId = freshJobId();
    mock.reset();
    mock
      .on(FilterLogEventsCommand)
      .resolvesOnce({
        events: [{ timestamp: at(3), logStreamName: 'b', message: 'three\n' }],
        nextToken: 't',
      })
      .resolvesOnce({ events: [], nextToken: 'u' })
      .resolvesOnce({ events: [{ timestamp: at(1), logStreamName: 'a', message: 'one' }], nextToken: 'v' });
    expect(await reader.read(jobId, { since: at(0), until: at(9), limit: 2 })).toEqual({
      lines: [
        { at: at(1), source: 'a', text: 'one' },
        { at: at(3), source: 'b', text: 'three' },
      ],
      isCut: false,
    });
    const inputs = mock.commandCalls(FilterLogEventsCommand).map(({ args }) => args[0].input);
    expect(inputs).toMatchObject([
      { logGroupName: 'jobs', filterPattern: `"${jobId}"`, startTime: at(0), endTime: at(9), limit: 2 },
      { nextToken: 't' },
      { nextToken: 'u' },
    ]);
  });

  it.each([
    [2, ['yes 2', 'yes 6']],
    [9, ['yes 2', 'yes 6', 'yes 7', 'yes 8']],
  ])('reads on over pages of other lines until it has %d that are wanted', async (limit, wanted) => {
    mock.reset();
    const [first, second, third] = [
      ['no 1', 'yes 2', 'no 3'],
      ['no 4', 'no 5'],
      ['yes 6', 'yes 7', 'yes 8'],
    ].map((texts) =>
      texts.map((message) => ({ timestamp: at(Number(message.split(' ')[1])), logStreamName: 's', message })),
    );
    mock
      .on(FilterLogEventsCommand)
      .resolvesOnce({ events: first, nextToken: 't' })
      .resolvesOnce({ events: second, nextToken: 'u' })
      .resolvesOnce({ events: third });
    const wants = ({ text }: { readonly text: string }): boolean => text.startsWith('yes');
    const { lines } = await reader.read(freshJobId(), { since: at(0), limit, wants });
    expect(lines.map(({ text }) => text)).toEqual(wanted);
    const inputs = mock.commandCalls(FilterLogEventsCommand).map(({ args }) => args[0].input);
    expect(inputs.map((input) => [input.limit, input.nextToken])).toEqual([
      [10_000, undefined],
      [10_000, 't'],
      [10_000, 'u'],
    ]);
  });

  it('takes no line of another job that names it, and asks for none of those that are wanted', async () => {
    const jobId = freshJobId();
    const of = (job: string, second: number) => ({
      timestamp: at(second),
      logStreamName: 's',
      message: JSON.stringify({
        event: 'user-output',
        jobId: job,
        text: `reading output/${jobId}/part-00000`,
      }),
    });
    mock.reset();
    mock
      .on(FilterLogEventsCommand)
      .resolvesOnce({ events: [of('second-ba9876543210', 1), of(jobId, 2)], nextToken: 't' })
      .resolvesOnce({ events: [{ timestamp: at(3), logStreamName: 's', message: `REPORT ${jobId}` }] });
    const asked: string[] = [];
    const wants = ({ text }: { readonly text: string }): boolean => asked.push(text) > 0;
    const { lines } = await reader.read(jobId, { since: at(0), limit: 2, wants });
    expect(lines.map((line) => line.at)).toEqual([at(2), at(3)]);
    expect(asked).toHaveLength(2);
  });

  it('says that it gave up where pages of nothing never end', async () => {
    mock.reset();
    mock
      .on(FilterLogEventsCommand)
      .resolvesOnce({ events: [{ timestamp: at(1), logStreamName: 'a', message: 'one' }], nextToken: 't' })
      .resolves({ events: [], nextToken: 'u' });
    expect(await reader.read(freshJobId(), { since: at(0), limit: 2 })).toEqual({
      lines: [{ at: at(1), source: 'a', text: 'one' }],
      isCut: true,
    });
    expect(mock.commandCalls(FilterLogEventsCommand)).toHaveLength(1_000);
  });

  it.each([
    ['ResourceNotFoundException', NotFoundError, 'there is no log group jobs'],
    [
      'AccessDeniedException',
      AccessDeniedError,
      'access denied: logs:FilterLogEvents on jobs: AccessDeniedException said',
    ],
    [
      'ServiceUnavailableException',
      StoreUnavailableError,
      'logs in jobs cannot be read: ServiceUnavailableException',
    ],
  ])('says of which group logs cannot be read, and why: %s', async (name, kind, message) => {
    mock.reset();
    mock.on(FilterLogEventsCommand).rejects(Object.assign(new Error('said'), { name }));
    const failure: unknown = await reader
      .read(freshJobId(), { since: at(0), limit: 2 })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(kind);
    expect(failure).toMatchObject({ message });
  });

  it('ends with the reason of its signal, however many pages are left', async () => {
    mock.reset();
    const controller = new AbortController();
    const reason = new Error('ended by SIGINT');
    mock.on(FilterLogEventsCommand).callsFake(() => {
      controller.abort(reason);
      return Promise.reject(new Error('aborted'));
    });
    const { signal } = controller;
    await expect(reader.read(freshJobId(), { since: at(0), limit: 2, signal })).rejects.toBe(reason);
    expect(mock.commandCalls(FilterLogEventsCommand)[0]?.args).toMatchObject([{}, { abortSignal: signal }]);
  });
});

describe('the coordinator', () => {
  const mock = mockClient(SFNClient);
  const coordinator = new SfnCoordinator(
    new SFNClient({ region: 'us-east-1' }),
    'arn:aws:states:r:1:stateMachine:m',
  );
  const fault = (name: string): SFNServiceException =>
    new SFNServiceException({ name, message: name, $fault: 'client', $metadata: { httpStatusCode: 400 } });

  it('names the execution as the job', async () => {
    mock.reset();
    const jobId = freshJobId();
    mock.on(DescribeExecutionCommand).rejects(fault('ExecutionDoesNotExist'));
    mock.on(StartExecutionCommand).resolves({});
    mock.on(StopExecutionCommand).resolves({});
    expect(await coordinator.start(jobId)).toBe('started');
    await coordinator.stop(jobId, 'because');
    expect(mock.commandCalls(StartExecutionCommand)[0]?.args[0].input).toEqual({
      stateMachineArn: 'arn:aws:states:r:1:stateMachine:m',
      name: jobId,
      input: `{"jobId":"${jobId}"}`,
    });
    expect(mock.commandCalls(StopExecutionCommand)[0]?.args[0].input).toMatchObject({
      executionArn: `arn:aws:states:r:1:execution:m:${jobId}`,
      cause: 'because',
    });
  });

  it.each([
    ['RUNNING', 'running'],
    ['PENDING_REDRIVE', 'running'],
    ['SUCCEEDED', 'succeeded'],
    ['FAILED', 'failed'],
    ['TIMED_OUT', 'failed'],
    ['ABORTED', 'aborted'],
  ] as const)('reads %s as %s', async (status, expected) => {
    mock.reset();
    mock.on(DescribeExecutionCommand).resolves({ status });
    expect(await coordinator.status(freshJobId())).toBe(expected);
  });

  it('finds an execution that a rival started in between, and says when Step Functions does not answer', async () => {
    mock.reset();
    mock.on(DescribeExecutionCommand).rejects(fault('ExecutionDoesNotExist'));
    mock.on(StartExecutionCommand).rejects(fault('ExecutionAlreadyExists'));
    expect(await coordinator.start(freshJobId())).toBe('exists');
    mock.on(StartExecutionCommand).rejects(fault('ThrottlingException'));
    await expect(coordinator.start(freshJobId())).rejects.toMatchObject({ name: 'StoreUnavailable' });
    mock.on(StartExecutionCommand).rejects(fault('StateMachineDoesNotExist'));
    await expect(coordinator.start(freshJobId())).rejects.toMatchObject({
      name: 'StoreRefused',
      message: 'start of an execution was refused: StateMachineDoesNotExist: StateMachineDoesNotExist',
    });
  });
});
