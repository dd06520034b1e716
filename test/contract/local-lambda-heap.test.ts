import { describe, expect, it } from 'vitest';

import { decode, useLocalLambda } from './local-lambda-support.ts';

const { fixture, invoke, start } = useLocalLambda();

/** Streams bytes through buffers, a few of which live at a time, and counts how often V8 marks the whole heap. */
const STREAMER = `
  const { PerformanceObserver, constants } = require('node:perf_hooks');
  let marked = 0;
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) marked++;
  }).observe({ entryTypes: ['gc'] });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  exports.handler = async ({ megabytes }) => {
    const live = [];
    for (let chunk = 0; chunk < 16 * megabytes; chunk++) {
      live[chunk % 64] = Buffer.allocUnsafeSlow(65_536);
      if (chunk % 8 === 0) await turn();
    }
    await turn();
    return marked;
  };`;

describe('a function that streams through buffers', () => {
  it('has its heap marked no more than every hundred megabytes, since its buffers are no heap', async () => {
    await start([fixture('streamer', STREAMER, { memoryMb: 1_769 })]);
    const marked = decode(await invoke('streamer', { megabytes: 1_024 }));
    expect(marked).toBeLessThanOrEqual(10);
  });
});
