import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { CREDENTIALS, GATED, connect, decode, useLocalLambda } from './local-lambda-support.ts';

const { fixture, invoke, logged, stack, start } = useLocalLambda();

describe('what the service refuses', () => {
  it('more calls at once than were reserved', async () => {
    await start([
      fixture('gated', GATED, { reservedConcurrency: 1 }),
      fixture('free', 'exports.handler = () => 1;'),
    ]);
    const gate = join(stack.root, 'gate');
    const first = invoke('gated', { id: 'a', gate });
    await logged('started');
    await expect(invoke('gated', { gate })).rejects.toMatchObject({
      name: 'TooManyRequestsException',
      Reason: 'ReservedFunctionConcurrentInvocationLimitExceeded',
      $metadata: { httpStatusCode: 429 },
    });
    expect(decode(await invoke('free'))).toBe(1);
    writeFileSync(gate, '');
    await first;
  });

  it('more calls at once than the account allows', async () => {
    await start([fixture('gated', GATED), fixture('other', 'exports.handler = () => 1;')], {
      maxConcurrency: 1,
    });
    const gate = join(stack.root, 'gate');
    const first = invoke('gated', { id: 'a', gate });
    await logged('started');
    await expect(invoke('other')).rejects.toMatchObject({ Reason: 'ConcurrentInvocationLimitExceeded' });
    writeFileSync(gate, '');
    await first;
    // The idle environment gives way to the other function's.
    expect(decode(await invoke('other'))).toBe(1);
    expect(stack.server?.environments().filter(({ state }) => state !== 'stopping')).toHaveLength(1);
  });

  it('payloads over 6 MB, or 1 MB if asynchronous, and those that are not JSON', async () => {
    await start([fixture('size', 'exports.handler = async (e) => e.length;')]);
    const sized = (bytes: number) => 'x'.repeat(bytes - 2);
    expect(decode(await invoke('size', sized(6_291_456)))).toBe(6_291_454);
    await expect(invoke('size', sized(6_291_457))).rejects.toMatchObject({
      name: 'RequestTooLargeException',
      $metadata: { httpStatusCode: 413 },
    });
    expect((await invoke('size', sized(1_048_576), { InvocationType: 'Event' })).StatusCode).toBe(202);
    await expect(invoke('size', sized(1_048_577), { InvocationType: 'Event' })).rejects.toMatchObject({
      name: 'RequestTooLargeException',
    });
    await expect(invoke('size', {}, { Payload: '{' })).rejects.toMatchObject({
      name: 'InvalidRequestContentException',
    });
  });

  it('a wrong signature', async () => {
    await start([fixture('one', 'exports.handler = () => 1;')]);
    stack.client = connect(stack.server?.endpoint ?? '', { ...CREDENTIALS, secretAccessKey: 'wrong' });
    await expect(invoke('one')).rejects.toMatchObject({
      name: 'InvalidSignatureException',
      $metadata: { httpStatusCode: 403 },
    });
  });

  it('what the fault hook wants refused', async () => {
    await start([fixture('one', 'exports.handler = () => 1;')], {
      onRequest: ({ resource }) =>
        resource === 'one' ? { error: { status: 500, code: 'ServiceException' } } : undefined,
    });
    await expect(invoke('one')).rejects.toMatchObject({
      name: 'ServiceException',
      $metadata: { httpStatusCode: 500 },
    });
  });

  it('nothing on a dry run, which runs nothing', async () => {
    await start([fixture('one', 'exports.handler = () => 1;')]);
    expect((await invoke('one', {}, { InvocationType: 'DryRun' })).StatusCode).toBe(204);
    expect(stack.server?.environments()).toEqual([]);
  });
});
