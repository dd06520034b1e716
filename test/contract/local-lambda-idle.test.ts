import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { decode, GATED, useLocalLambda } from './local-lambda-support.ts';

const { fixture, invoke, logged, stack, start } = useLocalLambda();

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
};
const livingProcesses = (): number =>
  (stack.server?.environments() ?? []).filter(({ pid }) => pid !== undefined && isAlive(pid)).length;

/** Runs so many invocations at once, each in a process of its own; answers their processes. */
async function burst(invocations: number, name: string): Promise<readonly number[]> {
  const gate = join(stack.root, `gate-${name}`);
  const answers = Array.from({ length: invocations }, (_, id) => invoke(name, { id, gate }));
  await logged('started', invocations);
  writeFileSync(gate, '');
  return (await Promise.all(answers)).map((output) => Number(decode(output)));
}

describe('environments that nobody uses', () => {
  it('are ended after a while, all of them, and others are started when they are needed again', async () => {
    await start([fixture('gated', GATED)], { idleMs: 300, maxConcurrency: 12 });
    const pids = await burst(12, 'gated');
    expect(new Set(pids).size).toBe(12);
    await until(() => !pids.some(isAlive));
    await until(() => stack.server?.environments().length === 0);
    const gate = join(stack.root, 'gate-gated');
    expect(pids).not.toContain(Number(decode(await invoke('gated', { id: 'again', gate }))));
  });

  it('stay up to a bound at once, those that were used last', async () => {
    await start([fixture('gated', GATED)], { idleMs: 3_600_000, maxIdle: 3, maxConcurrency: 10 });
    const pids = await burst(10, 'gated');
    await until(() => livingProcesses() === 3);
    const gate = join(stack.root, 'gate-gated');
    expect(pids).toContain(Number(decode(await invoke('gated', { id: 'again', gate }))));
    expect(livingProcesses()).toBe(3);
  });

  it('are not ended while they work, for however long that is', async () => {
    await start([fixture('gated', GATED)], { idleMs: 50, maxIdle: 1 });
    const gate = join(stack.root, 'gate');
    const working = invoke('gated', { id: 'long', gate });
    await logged('started long');
    const other = join(stack.root, 'other');
    writeFileSync(other, '');
    const short = Number(decode(await invoke('gated', { id: 'short', gate: other })));
    await until(() => !isAlive(short));
    expect(livingProcesses()).toBe(1);
    writeFileSync(gate, '');
    const output = await working;
    expect(output.FunctionError).toBeUndefined();
    expect(Number(decode(output))).not.toBe(short);
  });

  it('serve what comes while they start yet, where they were started ahead of it, and no more are started', async () => {
    await start([fixture('gated', GATED)], { idleMs: 3_600_000, maxConcurrency: 3 });
    const warm = (): void => {
      stack.server?.warm('gated');
    };
    warm();
    warm();
    const living = stack.server?.environments().map(({ environmentId }) => environmentId);
    expect(living).toHaveLength(2);
    const pids = await burst(2, 'gated');
    expect(new Set(pids).size).toBe(2);
    expect(stack.server?.environments().map(({ environmentId }) => environmentId)).toEqual(living);
    // As many as there is room for, and no more.
    warm();
    warm();
    expect(stack.server?.environments()).toHaveLength(3);
  });
});
