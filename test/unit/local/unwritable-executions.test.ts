import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { InvokeLambda } from '../../../src/local/sfn/execution.ts';
import { StatesApi } from '../../../src/local/sfn/states-api.ts';

const stateMachineArn = 'arn:aws:states:us-east-1:000000000000:stateMachine:M';
const functionArn = 'arn:aws:lambda:us-east-1:000000000000:function:f';
const executionArn = stateMachineArn.replace(':stateMachine:', ':execution:') + ':x';
const definition = {
  StartAt: 'A',
  States: {
    A: {
      Type: 'Task',
      Resource: functionArn,
      Next: 'B',
      Catch: [{ ErrorEquals: ['States.ALL'], Next: 'B' }],
    },
    B: { Type: 'Task', Resource: functionArn, End: true },
  },
};

async function scratchDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'outrider-states-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  return dir;
}

/** The file of the only execution; what is written to it fails once it is this device. */
const fileOf = (dir: string): string => join(dir, 'M.x.jsonl');
async function fill(dir: string): Promise<void> {
  await rm(fileOf(dir), { force: true });
  await symlink('/dev/full', fileOf(dir));
}

function serve(runDir: string, invokeLambda: InvokeLambda) {
  const failed = Promise.withResolvers<Error>();
  const onUnwritable = vi.fn((error: Error) => {
    failed.resolve(error);
  });
  const machine = { name: 'M', arn: stateMachineArn, type: 'STANDARD', definition } as const;
  const api = new StatesApi({
    ...{ region: 'us-east-1', runDir, stateMachines: [machine], invokeLambda, onUnwritable },
  });
  const start = () => api.perform('StartExecution', { stateMachineArn, name: 'x', input: '{}' });
  const status = () => api.perform('DescribeExecution', { executionArn })['status'];
  return { api, start, status, failed: failed.promise, onUnwritable };
}

describe.skipIf(!existsSync('/dev/full'))('an execution that cannot be kept on record', () => {
  it('is suspended, and whoever owns the stack hears why', async () => {
    const dir = await scratchDir();
    const calls: unknown[] = [];
    const { api, start, status, failed, onUnwritable } = serve(dir, async (name) => {
      calls.push(name);
      await fill(dir);
      return { ok: 1 };
    });
    start();
    expect(await failed).toMatchObject({ code: 'ENOSPC' });
    // It neither goes on nor tells what the next server would not find.
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(calls).toEqual([functionArn]);
    expect(onUnwritable).toHaveBeenCalledTimes(1);
    expect(status()).toBe('RUNNING');
    expect(() => api.perform('StopExecution', { executionArn })).toThrow('is suspended');
  });

  it('is gone on with by the next server, from what is on record', async () => {
    const dir = await scratchDir();
    let kept: string | undefined;
    const first = serve(dir, async () => {
      kept = await readFile(fileOf(dir), 'utf8');
      await fill(dir);
      return {};
    });
    first.start();
    await first.failed;
    await rm(fileOf(dir));
    await writeFile(fileOf(dir), kept ?? '');
    const next = serve(dir, () => Promise.resolve({ done: true }));
    await vi.waitFor(() => {
      expect(next.status()).toBe('SUCCEEDED');
    });
  });

  it('is none where its very begin cannot be written, and can be begun again', async () => {
    const dir = await scratchDir();
    const { start, status, onUnwritable } = serve(dir, () => Promise.resolve({}));
    await fill(dir);
    expect(start).toThrow('ENOSPC');
    expect(status).toThrow('Execution Does Not Exist');
    expect(onUnwritable).not.toHaveBeenCalled();
    expect(start()).toMatchObject({ executionArn });
    await vi.waitFor(() => {
      expect(status()).toBe('SUCCEEDED');
    });
  });

  it('is not stopped where its end cannot be written', async () => {
    const dir = await scratchDir();
    const called = Promise.withResolvers<undefined>();
    const { api, start, status, failed } = serve(dir, () => {
      called.resolve(undefined);
      return Promise.withResolvers<unknown>().promise;
    });
    start();
    await called.promise;
    await fill(dir);
    expect(() => api.perform('StopExecution', { executionArn })).toThrow('is suspended');
    expect(await failed).toMatchObject({ code: 'ENOSPC' });
    expect(status()).toBe('RUNNING');
  });
});
