import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { GetExecutionHistoryCommand, type SFNClient } from '@aws-sdk/client-sfn';
import { afterEach, describe, expect, it } from 'vitest';
import * as z from 'zod';
import {
  ARN,
  cleanUp,
  cleanUpLater,
  ended,
  FUNCTION,
  gate,
  type Invoke,
  named,
  oneTask,
  stack,
  start,
} from '../support/states-stack.ts';

afterEach(cleanUp);

const executionArn = 'arn:aws:states:us-east-1:000000000000:execution:machine:job';

/** The shape of a job's machine: a step, a loop, a last step, and a way out for each. */
const step = (name: string, more: object): object => ({
  Type: 'Task',
  Resource: `${FUNCTION}-${name}`,
  Catch: [{ ErrorEquals: ['States.ALL'], ResultPath: '$.error', Next: 'Fail' }],
  ...more,
});
const machine = {
  StartAt: 'Plan',
  States: {
    Plan: step('plan', { ResultPath: null, Next: 'Schedule' }),
    Schedule: step('schedule', { Next: 'IsDone' }),
    IsDone: {
      Type: 'Choice',
      Choices: [{ Variable: '$.round', NumericLessThan: 2, Next: 'Schedule' }],
      Default: 'Finish',
    },
    Finish: step('finish', { Next: 'Told' }),
    Told: { Type: 'Pass', Parameters: { 'of.$': '$$.Execution.Input.job', 'with.$': '$' }, End: true },
    Fail: { Type: 'Task', Resource: `${FUNCTION}-fail`, ResultPath: null, Next: 'Failed' },
    Failed: { Type: 'Fail', ErrorPath: '$.error.Error', CausePath: '$.error.Cause' },
  },
};

const roundSchema = z.looseObject({ round: z.number().default(0) });

/** Steps that count the rounds in what they hand on, and tell who was called. */
const steps =
  (calls: string[], finish: () => Promise<unknown>): Invoke =>
  async (name, payload) => {
    const called = name.slice(FUNCTION.length + 1);
    calls.push(called);
    if (called === 'schedule') return { round: roundSchema.parse(payload).round + 1 };
    return called === 'finish' ? finish() : 'ignored';
  };

async function scratch(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'local-sfn-'));
  cleanUpLater(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** The lines that an execution left on disk when it had ended. */
async function recordOf(invoke: Invoke): Promise<{ file: string; lines: readonly string[] }> {
  const runDir = await scratch();
  const { client, server } = await stack(machine, invoke, { runDir });
  await ended(client, await start(client, { job: 'j' }, 'job'));
  await server.close();
  const [file = ''] = await readdir(runDir);
  const lines = (await readFile(join(runDir, file), 'utf8')).trimEnd().split('\n');
  return { file, lines };
}

const historyOf = async (client: SFNClient): Promise<readonly (string | undefined)[]> =>
  (await client.send(new GetExecutionHistoryCommand({ executionArn, maxResults: 1_000 }))).events?.map(
    ({ type }) => type,
  ) ?? [];

describe('an execution whose server goes away', () => {
  it.each([
    [
      'ends well',
      async () => ({ parts: 3 }),
      { status: 'SUCCEEDED', output: '{"of":"j","with":{"parts":3}}' },
    ],
    [
      'fails by its own Fail state',
      () => Promise.reject(named('Boom', 'no')),
      { status: 'FAILED', error: 'Boom', cause: '{"errorType":"Boom","errorMessage":"no"}' },
    ],
  ])('%s, whichever line it wrote last, and however much of the next', async (_what, finish, outcome) => {
    const whole: string[] = [];
    const { file, lines } = await recordOf(steps(whole, finish));
    expect(whole.slice(0, 4)).toEqual(['plan', 'schedule', 'schedule', 'finish']);
    for (let written = 1; written < lines.length; written++) {
      const torn = (lines[written] ?? '').slice(0, written % 2 === 0 ? 0 : 20);
      const runDir = join(await scratch(), 'executions');
      await mkdir(runDir);
      await writeFile(join(runDir, file), `${lines.slice(0, written).join('\n')}\n${torn}`);
      const calls: string[] = [];
      const { client, server } = await stack(machine, steps(calls, finish), { runDir });
      expect(await ended(client, executionArn), `after ${written} lines`).toMatchObject(outcome);
      // Nothing that had its answer on record is called again, and nothing else is left out.
      expect(whole.slice(whole.length - calls.length)).toEqual(calls);
      const types = await historyOf(client);
      expect(types[0]).toBe('ExecutionStarted');
      expect(types.filter((type) => type === 'ExecutionStarted')).toHaveLength(1);
      await server.close();

      // The record of the second server is whole: a third one finds the same end.
      const third = await stack(machine, steps(calls, finish), { runDir });
      expect(await ended(third.client, executionArn)).toMatchObject(outcome);
      await third.server.close();
    }
  });

  it('goes on with many at once, each in its own state', async () => {
    const runDir = await scratch();
    const held = gate();
    const first = await stack(oneTask(), held.invoke, { runDir });
    const arns = await Promise.all(
      Array.from({ length: 20 }, (_, n) => start(first.client, { n }, `job-${n}`)),
    );
    await held.called;
    await first.server.close();
    held.open('an answer that comes too late');
    const second = await stack(oneTask(), async (_name, payload) => payload, { runDir });
    for (const [n, arn] of arns.entries()) {
      expect(await ended(second.client, arn)).toMatchObject({ status: 'SUCCEEDED', output: `{"n":${n}}` });
    }
  });

  it('is resumed again where the next server goes away too, and can be stopped then', async () => {
    const runDir = await scratch();
    for (let round = 0; round < 3; round++) {
      const held = gate();
      const { client, server } = await stack(oneTask(), held.invoke, { runDir });
      if (round === 0) await start(client, {}, 'job');
      await held.called;
      await server.close();
    }
    const held = gate();
    const { client, server } = await stack(oneTask(), held.invoke, { runDir });
    await held.called;
    expect((await historyOf(client)).filter((type) => type === 'TaskStateEntered')).toHaveLength(1);
    const { StopExecutionCommand } = await import('@aws-sdk/client-sfn');
    await client.send(new StopExecutionCommand({ executionArn, error: 'Enough' }));
    expect(await ended(client, executionArn)).toMatchObject({ status: 'ABORTED', error: 'Enough' });
    await server.close();
  });

  it('has no more time than it was given when it started', async () => {
    const runDir = await scratch();
    const held = gate();
    const timed = { ...oneTask(), TimeoutSeconds: 3_600 };
    const first = await stack(timed, held.invoke, { runDir });
    await start(first.client, {}, 'job');
    await held.called;
    await first.server.close();
    const [file = ''] = await readdir(runDir);
    const path = join(runDir, file);
    const startMs = /"startMs":(\d+)/.exec(await readFile(path, 'utf8'))?.[1] ?? '';
    const earlier = String(Number(startMs) - 3_600_000);
    await writeFile(path, (await readFile(path, 'utf8')).replace(startMs, earlier));
    const second = await stack(timed, held.invoke, { runDir });
    expect((await ended(second.client, executionArn)).status).toBe('TIMED_OUT');
  });

  it.each([
    [
      'its state is gone from the machine',
      { StartAt: 'Other', States: { Other: { Type: 'Succeed' } } },
      'FAILED',
    ],
    ['the machine is gone', undefined, 'ABORTED'],
  ] as const)('ends where %s, and says so', async (_what, definition, status) => {
    const runDir = await scratch();
    const held = gate();
    const first = await stack(oneTask(), held.invoke, { runDir });
    await start(first.client, {}, 'job');
    await held.called;
    await first.server.close();
    const { client } = await stack(
      definition ?? oneTask(),
      held.invoke,
      definition === undefined
        ? {
            runDir,
            stateMachines: [{ name: 'other', arn: `${ARN}2`, definition: oneTask(), type: 'STANDARD' }],
          }
        : { runDir },
    );
    const end = await ended(client, executionArn);
    expect(end.status).toBe(status);
    expect(end.cause).toMatch(/any more/);
  });
});
