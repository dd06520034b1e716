import { expect, it } from 'vitest';
import { MemoryClock } from '../../../src/adapters/memory/memory-clock.ts';
import { endLeftWorkers, endWorkers } from '../../../src/app/end-workers.ts';
import { attemptIdOf } from '../../../src/contracts/ids.ts';
import type { AttemptRecord, AttemptState } from '../../../src/contracts/records.ts';
import { epochMs } from '../../../src/contracts/units.ts';
import type { Log } from '../../../src/ports/log.ts';
import { freshJobId } from '../../contract/ports/builders.ts';

const attemptIn = (state: AttemptState, task: number, node?: string): AttemptRecord => ({
  attemptId: attemptIdOf('map', task, 0),
  state,
  order: 'cancel',
  launchedAt: epochMs(0),
  beat: 1,
  ...(node === undefined ? {} : { node }),
});

it('ends workers that still work, and once more those that were given up, and tells what could not be ended', async () => {
  const asked: string[] = [];
  const warnings: unknown[] = [];
  const log: Log = {
    info: () => undefined,
    warn: (event, fields) => warnings.push([event, fields]),
  };
  const workers = {
    stop: (node: string) => {
      asked.push(node);
      return Promise.resolve(node === 'hung' ? 'ThrottlingException: slow down' : undefined);
    },
    living: () => Promise.resolve({ nodes: [] }),
  };
  const jobId = freshJobId();
  const attempts = [
    attemptIn('running', 0, 'hung'),
    attemptIn('lost', 1, 'given-up'),
    attemptIn('cancelled', 2, 'obeyed'),
    attemptIn('done', 3, 'done'),
    attemptIn('failed', 4, 'failed'),
    // Never claimed: it was told to stop before, and does nothing.
    attemptIn('launched', 5),
    attemptIn('lost', 6),
  ];
  await endWorkers({ log, workers }, jobId, attempts);
  expect(asked.toSorted()).toEqual(['given-up', 'hung']);
  expect(warnings).toEqual([
    [
      'worker-not-stopped',
      { jobId, attemptId: 'map/0/0', node: 'hung', cause: 'ThrottlingException: slow down' },
    ],
  ]);
  await endWorkers({ log }, jobId, attempts);
  expect(asked).toHaveLength(2);
});

it('ends workers that are still there some seconds after their attempts and their job have ended', async () => {
  const [asked, stopped, warnings]: [string[][], string[], string[]] = [[], [], []];
  const clock = new MemoryClock();
  const began = clock.now();
  const workers = {
    stop: (node: string) => {
      stopped.push(node);
      return Promise.resolve(undefined);
    },
    // One of them leaves within three seconds.
    living: (nodes: readonly string[]) => {
      asked.push([...nodes]);
      const left = nodes.filter(
        (node) => node === 'stays' || (node === 'leaves' && clock.now() < began + 3_000),
      );
      return Promise.resolve({ nodes: left, ...(asked.length === 1 ? { wrong: 'ServerException' } : {}) });
    },
  };
  const log: Log = { info: () => undefined, warn: (event) => warnings.push(event) };
  const attempts = [
    attemptIn('done', 0, 'stays'),
    attemptIn('failed', 1, 'leaves'),
    attemptIn('cancelled', 2, 'gone'),
    attemptIn('running', 3, 'stopped before'),
    attemptIn('launched', 4),
  ];
  const ending = endLeftWorkers({ log, workers, clock }, freshJobId(), attempts);
  await clock.advance(10_000);
  await ending;
  expect(asked).toEqual([
    ['stays', 'leaves', 'gone'],
    ['stays', 'leaves'],
  ]);
  expect(stopped).toEqual(['stays']);
  expect(warnings).toEqual(['workers-not-found']);
  // Nothing is waited for where all are gone.
  await endLeftWorkers({ log, workers, clock }, freshJobId(), [attemptIn('done', 2, 'gone')]);
  expect(stopped).toHaveLength(1);
});
