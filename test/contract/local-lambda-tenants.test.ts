import { describe, expect, it } from 'vitest';
import { decode, GATED, useLocalLambda } from './local-lambda-support.ts';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';

const { stack, fixture, start, invoke, logged, until } = useLocalLambda();

/** Says which process answers, whom it serves, and what the last caller left in it. */
const REMEMBERS = `
  let last = 'nobody';
  exports.handler = async (event, context) => {
    const before = last;
    last = context.tenantId;
    return { pid: process.pid, tenantId: context.tenantId, before };
  };`;

const answer = async (tenantId: string): Promise<{ pid: number; tenantId: string; before: string }> =>
  decode(await invoke('worker', {}, { TenantId: tenantId })) as {
    pid: number;
    tenantId: string;
    before: string;
  };

describe('a function with tenant isolation', () => {
  it('serves each tenant from environments of its own, which it keeps warm', async () => {
    await start([fixture('worker', REMEMBERS, { isPerTenant: true })]);
    const first = await answer('blue');
    const other = await answer('green');
    const again = await answer('blue');
    expect(first).toMatchObject({ tenantId: 'blue', before: 'nobody' });
    expect(other).toMatchObject({ tenantId: 'green', before: 'nobody' });
    expect(again).toEqual({ pid: first.pid, tenantId: 'blue', before: 'blue' });
    expect(other.pid).not.toBe(first.pid);
    expect(stack.server?.environments().map(({ tenantId }) => tenantId)).toEqual(['blue', 'green']);
  });

  it('ends an idle environment of one tenant where another needs its room', async () => {
    await start([fixture('worker', REMEMBERS, { isPerTenant: true })], { maxConcurrency: 1 });
    const first = await answer('blue');
    const other = await answer('green');
    const back = await answer('blue');
    expect(new Set([first.pid, other.pid, back.pid]).size).toBe(3);
    expect(back.before).toBe('nobody');
  });

  it('runs asynchronous events of two tenants apart, also where they wait for room', async () => {
    await start([fixture('worker', GATED, { isPerTenant: true })], { maxConcurrency: 1 });
    const gate = join(stack.root, 'gate');
    for (const [id, TenantId] of [
      ['one', 'blue'],
      ['two', 'green'],
      ['three', 'blue'],
    ] as const) {
      await invoke('worker', { id, gate }, { InvocationType: 'Event', TenantId });
    }
    await logged('started one');
    writeFileSync(gate, '');
    await until(() =>
      ['one', 'two', 'three'].every((id) => stack.lines.some(({ line }) => line.endsWith(`started ${id}`))),
    );
    const environmentOf = (id: string) =>
      stack.lines.find(({ line }) => line.endsWith(`started ${id}`))?.environmentId;
    expect(environmentOf('two')).not.toBe(environmentOf('one'));
    expect(environmentOf('two')).not.toBe(environmentOf('three'));
  });

  it.each([
    ['none', undefined, /add a valid tenant ID/],
    ['an empty one', '', /add a valid tenant ID|not valid/],
    ['one with other characters', 'a*b', /not valid/],
    ['one that is too long', 'a'.repeat(257), /not valid/],
  ])('refuses an invocation that names %s', async (_, tenantId, message) => {
    await start([fixture('worker', REMEMBERS, { isPerTenant: true })]);
    const more = tenantId === undefined ? {} : { TenantId: tenantId };
    for (const InvocationType of ['Event', 'RequestResponse'] as const) {
      await expect(invoke('worker', {}, { ...more, InvocationType })).rejects.toMatchObject({
        name: 'InvalidParameterValueException',
        message: expect.stringMatching(message) as unknown,
      });
    }
    expect(stack.server?.environments()).toEqual([]);
  });

  it('refuses what Step Functions would invoke without a tenant', async () => {
    await start([fixture('worker', REMEMBERS, { isPerTenant: true })]);
    expect(await stack.server?.invoke('worker', '{}')).toMatchObject({
      kind: 'refused',
      refusal: { code: 'InvalidParameterValueException' },
    });
  });
});

describe('a function without tenant isolation', () => {
  it('refuses an invocation that names a tenant, and shows its handler none', async () => {
    await start([fixture('worker', REMEMBERS)]);
    await expect(invoke('worker', {}, { TenantId: 'blue' })).rejects.toMatchObject({
      name: 'InvalidParameterValueException',
    });
    expect(decode(await invoke('worker'))).not.toHaveProperty('tenantId');
  });
});
