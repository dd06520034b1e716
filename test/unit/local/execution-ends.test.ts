import { expect, it } from 'vitest';
import { ExecutionEnds } from '../../../src/local/sfn/execution-ends.ts';

it('wakes all that wait when an execution ends, and not when one begins', async () => {
  const ends = new ExecutionEnds();
  const woken: string[] = [];
  const signal = new AbortController().signal;
  const waits = ['a', 'b'].map(async (name) => {
    await ends.wait(signal);
    woken.push(name);
  });
  ends.put({ status: 'RUNNING' });
  await Promise.resolve();
  expect(woken).toEqual([]);
  ends.put({ status: 'FAILED' });
  await Promise.all(waits);
  expect(woken).toEqual(['a', 'b']);
});

it('lets go at the signal, also at one that has fired', async () => {
  const ends = new ExecutionEnds();
  const controller = new AbortController();
  const wait = ends.wait(controller.signal);
  controller.abort();
  await wait;
  await ends.wait(controller.signal);
});

it('tells of an end that nobody waited for to the next that waits, and once', async () => {
  const ends = new ExecutionEnds();
  ends.put({ status: 'SUCCEEDED' });
  await ends.wait(new AbortController().signal);
  const controller = new AbortController();
  let woken = false;
  const wait = ends.wait(controller.signal).then(() => (woken = true));
  await Promise.resolve();
  await Promise.resolve();
  expect(woken).toBe(false);
  controller.abort();
  await wait;
});
