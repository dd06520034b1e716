import type * as childProcess from 'node:child_process';
import { spawn } from 'node:child_process';
import { expect, it, vi } from 'vitest';
import { openPipes } from '../../../src/worker/processes/program-pipes.ts';

vi.mock('node:child_process', async (original) => {
  const real = await original<typeof childProcess>();
  return { ...real, spawn: vi.fn(real.spawn) };
});

it.runIf(process.platform === 'linux')(
  'has pipes of the kernel also where the worker stood still while they were made',
  async () => {
    const opening = openPipes(['in', 'out'], 20);
    // Longer than all looks together.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
    const pipes = await opening;
    expect(pipes?.theirs.length).toBe(2);
    pipes?.handOver();
    for (const pipe of pipes?.ours ?? []) pipe.destroy();
  },
);

it('does without where the shell cannot be run, as one of another architecture', async () => {
  vi.mocked(spawn).mockImplementationOnce(() => {
    throw Object.assign(new Error('spawn Unknown system error -8'), { code: 'ENOEXEC' });
  });
  expect(await openPipes(['in', 'out'])).toBeUndefined();
});
