import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { GATED, useLocalLambda } from './local-lambda-support.ts';

const { fixture, invoke, logged, stack, start, until } = useLocalLambda();

describe('an asynchronous invocation', () => {
  it('is accepted with an empty answer, and runs', async () => {
    await start([fixture('later', 'exports.handler = async (e) => console.log("ran " + e.id);')]);
    const output = await invoke('later', { id: 7 }, { InvocationType: 'Event' });
    expect(output.StatusCode).toBe(202);
    expect(output.Payload?.length ?? 0).toBe(0);
    await logged('ran 7');
  });

  it('is tried again as often as the function says, then dropped', async () => {
    await start([
      fixture('fails', 'exports.handler = async () => { throw new Error("no"); };', { asyncRetries: 2 }),
    ]);
    await invoke('fails', {}, { InvocationType: 'Event' });
    await until(() => stack.dropped.length > 0);
    expect(stack.lines.filter(({ line }) => line.startsWith('START '))).toHaveLength(3);
    expect(stack.dropped).toMatchObject([{ functionName: 'fails', reason: 'retries-exhausted' }]);
  });

  it('waits while its function is full, and runs as room appears', async () => {
    await start([fixture('gated', GATED, { reservedConcurrency: 1 })]);
    const gate = join(stack.root, 'gate');
    for (const id of ['a', 'b', 'c']) await invoke('gated', { id, gate }, { InvocationType: 'Event' });
    await logged('started a');
    expect(stack.server?.environments()).toHaveLength(1);
    writeFileSync(gate, '');
    await logged('started c');
    await logged('END ', 3);
    expect(stack.server?.environments()).toHaveLength(1);
  });

  it('is dropped when it waited longer than its age allows', async () => {
    await start([fixture('gated', GATED, { reservedConcurrency: 1, maxEventAgeMs: -1 })]);
    await invoke('gated', {}, { InvocationType: 'Event' });
    await until(() => stack.dropped.length > 0);
    expect(stack.dropped).toMatchObject([{ reason: 'too-old' }]);
  });

  it('is refused when the queue is full', async () => {
    await start([fixture('gated', GATED)], { maxQueuedEvents: 2 });
    const event = { id: 'a', gate: join(stack.root, 'gate') };
    await invoke('gated', event, { InvocationType: 'Event' });
    await invoke('gated', event, { InvocationType: 'Event' });
    await expect(invoke('gated', event, { InvocationType: 'Event' })).rejects.toMatchObject({
      name: 'TooManyRequestsException',
    });
  });
});
