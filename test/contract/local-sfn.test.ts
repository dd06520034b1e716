import { existsSync } from 'node:fs';
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DescribeExecutionCommand,
  DescribeStateMachineCommand,
  GetExecutionHistoryCommand,
  ListExecutionsCommand,
  StartExecutionCommand,
  StopExecutionCommand,
} from '@aws-sdk/client-sfn';
import type { HistoryEvent } from '@aws-sdk/client-sfn';
import { afterEach, describe, expect, it } from 'vitest';
import {
  ARN,
  cleanUp,
  cleanUpLater,
  clientFor,
  ended,
  gate,
  named,
  oneTask,
  stack,
  start,
} from '../support/states-stack.ts';

afterEach(cleanUp);

describe('StartExecution', () => {
  it('is idempotent for the same name and input while it runs, and refuses both otherwise', async () => {
    const held = gate();
    const { client } = await stack(oneTask(), held.invoke);
    const send = (input: string) =>
      client.send(new StartExecutionCommand({ stateMachineArn: ARN, name: 'once', input }));
    const first = await send('{"a":1}');
    const again = await send('{"a":1}');
    expect(first.executionArn).toBe('arn:aws:states:us-east-1:000000000000:execution:machine:once');
    expect([again.executionArn, again.startDate]).toEqual([first.executionArn, first.startDate]);
    await expect(send('{"a":2}')).rejects.toMatchObject({ name: 'ExecutionAlreadyExists' });
    held.open({});
    await ended(client, first.executionArn ?? '');
    await expect(send('{"a":1}')).rejects.toMatchObject({ name: 'ExecutionAlreadyExists' });
  });

  it('runs once under many racing starts of one name', async () => {
    let calls = 0;
    const held = gate();
    const { client } = await stack(oneTask(), (name, payload) => {
      calls++;
      return held.invoke(name, payload);
    });
    const arns = await Promise.all(Array.from({ length: 10 }, () => start(client, {}, 'race')));
    held.open({});
    await ended(client, arns[0] ?? '');
    expect(new Set(arns).size).toBe(1);
    expect(calls).toBe(1);
  });

  it.each([
    ['InvalidName', { name: 'a b' }],
    ['InvalidName', { name: 'x'.repeat(81) }],
    ['InvalidName', { name: 'a/b' }],
    ['InvalidExecutionInput', { input: '{' }],
    ['ValidationException', { input: JSON.stringify('x'.repeat(262_144)) }],
    ['StateMachineDoesNotExist', { stateMachineArn: `${ARN}2` }],
    ['InvalidArn', { stateMachineArn: 'machine' }],
  ])('answers %s to %o', async (name, request) => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1));
    await expect(
      client.send(new StartExecutionCommand({ stateMachineArn: ARN, ...request })),
    ).rejects.toMatchObject({ name });
  });

  it('refuses a wrong secret', async () => {
    const { server } = await stack(oneTask(), () => Promise.resolve(1));
    const stranger = clientFor(server.endpoint, { accessKeyId: 'local', secretAccessKey: 'wrong' });
    await expect(start(stranger)).rejects.toMatchObject({ name: 'InvalidSignatureException' });
  });

  it.skipIf(!existsSync('/dev/full'))('says in words that the disk is full, and begins nothing', async () => {
    const runDir = await mkdtemp(join(tmpdir(), 'outrider-full-'));
    cleanUpLater(() => rm(runDir, { recursive: true }));
    const { client } = await stack(oneTask(), () => Promise.resolve(1), { runDir });
    await symlink('/dev/full', join(runDir, 'machine.full.jsonl'));
    await expect(start(client, {}, 'full')).rejects.toMatchObject({
      name: 'StorageFull',
      message: expect.stringMatching(
        /^the disk is full where the stack keeps its data: make room there/,
      ) as string,
      $metadata: { httpStatusCode: 400, attempts: 1 },
    });
    const { executions } = await client.send(new ListExecutionsCommand({ stateMachineArn: ARN }));
    expect(executions).toEqual([]);
  });

  it('can be made to fail', async () => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1), {
      onRequest: ({ operation }) =>
        operation === 'StartExecution' ? { error: { status: 400, code: 'ThrottlingException' } } : undefined,
    });
    await expect(start(client)).rejects.toMatchObject({ name: 'ThrottlingException' });
  });
});

describe('StopExecution', () => {
  it('ends the execution at once, with the reason given, and nothing follows', async () => {
    const held = gate();
    let calls = 0;
    const { client } = await stack(
      oneTask({ Retry: [{ ErrorEquals: ['States.ALL'], IntervalSeconds: 1 }] }),
      (name, payload) => {
        calls++;
        return held.invoke(name, payload);
      },
    );
    const executionArn = await start(client);
    await held.called;
    await client.send(new StopExecutionCommand({ executionArn, error: 'Cancelled', cause: 'by its owner' }));
    const execution = await client.send(new DescribeExecutionCommand({ executionArn }));
    expect(execution).toMatchObject({ status: 'ABORTED', error: 'Cancelled', cause: 'by its owner' });
    held.open({ late: true });
    await client.send(new StopExecutionCommand({ executionArn, error: 'Again' }));
    const { events = [] } = await client.send(new GetExecutionHistoryCommand({ executionArn }));
    expect(events.at(-1)?.type).toBe('ExecutionAborted');
    expect(events.at(-1)?.executionAbortedEventDetails).toEqual({
      error: 'Cancelled',
      cause: 'by its owner',
    });
    expect(events.at(-2)?.type).toBe('LambdaFunctionStarted');
    expect(calls).toBe(1);
  });

  it('calls no function any more when it comes while a retry is waited for', async () => {
    let calls = 0;
    const { client } = await stack(
      oneTask({ Retry: [{ ErrorEquals: ['States.ALL'], IntervalSeconds: 60 }] }),
      () => {
        calls++;
        return Promise.reject(named('Passing'));
      },
    );
    const executionArn = await start(client);
    let events: HistoryEvent[] = [];
    for (
      let polls = 0;
      polls < 1_000 && !events.some(({ type }) => type === 'LambdaFunctionFailed');
      polls++
    ) {
      events = (await client.send(new GetExecutionHistoryCommand({ executionArn }))).events ?? [];
    }
    await client.send(new StopExecutionCommand({ executionArn }));
    expect((await ended(client, executionArn)).status).toBe('ABORTED');
    expect(calls).toBe(1);
  });
});

describe('queries', () => {
  it('page through histories and executions without gaps or doubles', async () => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1));
    const arns: string[] = [];
    for (const name of ['a', 'b', 'c']) arns.push(await start(client, {}, name));
    for (const arn of arns) await ended(client, arn);

    const listed: (string | undefined)[] = [];
    let nextToken: string | undefined;
    for (let page = 0; page < 5; page++) {
      const answer = await client.send(
        new ListExecutionsCommand({ stateMachineArn: ARN, maxResults: 2, nextToken }),
      );
      listed.push(...(answer.executions ?? []).map(({ name }) => name));
      nextToken = answer.nextToken;
      if (nextToken === undefined) break;
    }
    expect(listed).toEqual(['c', 'b', 'a']);

    const ids: (number | undefined)[] = [];
    for (let page = 0; page < 5; page++) {
      const answer = await client.send(
        new GetExecutionHistoryCommand({ executionArn: arns[0], maxResults: 3, nextToken }),
      );
      ids.push(...(answer.events ?? []).map(({ id }) => id));
      nextToken = answer.nextToken;
      if (nextToken === undefined) break;
    }
    expect(ids).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it('list by status', async () => {
    const held = gate();
    const { client } = await stack(oneTask(), held.invoke);
    await start(client, {}, 'running');
    const names = async (statusFilter: 'RUNNING' | 'FAILED') =>
      (await client.send(new ListExecutionsCommand({ stateMachineArn: ARN, statusFilter }))).executions?.map(
        ({ name }) => name,
      );
    expect(await names('RUNNING')).toEqual(['running']);
    expect(await names('FAILED')).toEqual([]);
  });

  it('describe the machine as it was given', async () => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1));
    const machine = await client.send(new DescribeStateMachineCommand({ stateMachineArn: ARN }));
    expect(machine).toMatchObject({ name: 'machine', status: 'ACTIVE', type: 'STANDARD' });
    expect(JSON.parse(machine.definition ?? '')).toEqual(oneTask());
  });

  it('answer that an execution does not exist', async () => {
    const { client } = await stack(oneTask(), () => Promise.resolve(1));
    const executionArn = 'arn:aws:states:us-east-1:000000000000:execution:machine:none';
    await expect(client.send(new DescribeExecutionCommand({ executionArn }))).rejects.toMatchObject({
      name: 'ExecutionDoesNotExist',
    });
  });
});

describe('a record on disk', () => {
  it('outlives the server; what ran then goes on, and names stay taken', async () => {
    const runDir = await mkdtemp(join(tmpdir(), 'local-sfn-'));
    cleanUpLater(() => rm(runDir, { recursive: true, force: true }));
    const held = gate();
    const first = await stack(
      oneTask(),
      (_, payload) => (payload === 'hold' ? held.invoke(_, payload) : Promise.resolve('ok')),
      { runDir },
    );
    const done = await start(first.client, 'quick', 'done');
    await ended(first.client, done);
    const cut = await start(first.client, 'hold', 'cut');
    await held.called;
    await first.server.close();

    const second = await stack(oneTask(), () => Promise.resolve('late'), { runDir });
    expect(await ended(second.client, done)).toMatchObject({
      status: 'SUCCEEDED',
      output: '"ok"',
      input: '"quick"',
    });
    expect(await ended(second.client, cut)).toMatchObject({ status: 'SUCCEEDED', output: '"late"' });
    await expect(start(second.client, 'quick', 'done')).rejects.toMatchObject({
      name: 'ExecutionAlreadyExists',
    });
    const { events } = await second.client.send(new GetExecutionHistoryCommand({ executionArn: done }));
    expect(events).toHaveLength(7);
  });
});
