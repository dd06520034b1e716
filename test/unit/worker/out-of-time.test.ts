import { describe, expect, it } from 'vitest';
import { AccessDeniedError, StoreUnavailableError } from '../../../src/contracts/errors.ts';
import type { ObjectRef } from '../../../src/contracts/keys.ts';
import type { Failure } from '../../../src/contracts/records.ts';
import { durationMs, later } from '../../../src/contracts/units.ts';
import { operators } from '../../../src/operators/registry.ts';
import type { Operator } from '../../../src/worker/operator.ts';
import { runAttempt } from '../../../src/worker/run-attempt.ts';
import { inputBucket, InterruptedWorker } from '../../support/interrupted-worker.ts';
import { latin1, putSource } from '../../support/worker-fixtures.ts';

/** Some 2 MB, of which a worker reads 64 KiB at a time. */
const text = `${Array.from({ length: 60_000 }, (_, line) => `word${String(line % 977)} and ${String(line)} more words`).join('\n')}\n`;
const planned = { kind: 'source', format: 'text', header: true, onBadRecord: 'fail' } as const;
/** On Lambda: of 15 minutes 20 s are kept to stop, and the minute before to hand on what was done. */
const lifeMs = 900_000;
const noticeAtMs = 820_000;
const stopAtMs = 881_000;

/** What befalls the worker at its calls of the object store. */
interface Befalls {
  readonly atWrite?: (passTo: (ms: number) => Promise<void>) => Promise<void>;
  readonly atReadOfPlan?: (passTo: (ms: number) => Promise<void>) => Promise<void>;
  /** When it is once it has read a quarter of its input; absent: about when it is to hand on what it has done. */
  readonly hasReadAtMs?: number;
}

/** How an attempt fails whose time passes for the most part before it has read all. */
async function failureOfOne(
  operator: Operator,
  { atWrite, atReadOfPlan, hasReadAtMs = noticeAtMs }: Befalls,
): Promise<Failure | undefined> {
  const worker = new InterruptedWorker();
  const { objects, clock } = worker;
  const inputs = [
    { planned, segments: [await putSource(objects, { bucket: inputBucket, key: 'a' }, latin1(text))] },
  ];
  const begunAt = clock.now();
  const passTo = (ms: number): Promise<void> => clock.advance(ms - (clock.now() - begunAt));
  const stage = { output: 'sorted', partitions: 3, inputs, run: () => Promise.resolve() } as const;
  const payload = await worker.prepare(stage, 0);
  objects.afterReading(500_000, () => passTo(hasReadAtMs));
  const write = objects.write.bind(objects);
  objects.write = async (ref: ObjectRef, ...rest) => {
    await atWrite?.(passTo);
    return write(ref, ...rest);
  };
  const readAll = objects.readAll.bind(objects);
  objects.readAll = async (ref: ObjectRef, ...rest) => {
    if (ref.key === payload.stageKey) await atReadOfPlan?.(passTo);
    return readAll(ref, ...rest);
  };
  const deps = worker.deps(stage, { log: worker.log(), endsAt: later(begunAt, durationMs(lifeMs)) });
  await runAttempt({ ...deps, operators: { ...deps.operators, grep: operator } }, payload);
  const { failure, saved } = await worker.ended(0);
  expect(saved).toBeUndefined();
  expect(await worker.leftovers()).toEqual({ data: [], uploads: [] });
  return failure;
}

const { tokenize } = operators;
const unresumed: Operator = { ...tokenize };
delete (unresumed as { resumes?: unknown }).resumes;
const left =
  "it left its task 80 s before its environment's time was up, in which it would not have been done";
const stopped = "it stopped itself 20 s before its environment's time was up";

describe('an attempt that runs out of time and hands on nothing', () => {
  it.each<[string, Operator, Befalls, Failure]>([
    [
      'may pass where what it hands on cannot be written just then',
      tokenize,
      { atWrite: () => Promise.reject(new StoreUnavailableError('S3 is slow')) },
      { cause: 'timeout', message: left, mayPass: true },
    ],
    [
      'may pass where what it hands on takes too long to be written',
      tokenize,
      { atWrite: (passTo) => passTo(stopAtMs) },
      { cause: 'timeout', message: stopped, mayPass: true },
    ],
    [
      'may pass where it had not begun, whatever its operator',
      unresumed,
      { atReadOfPlan: (passTo) => passTo(stopAtMs) },
      { cause: 'timeout', message: stopped, mayPass: true },
    ],
    [
      'may pass where it began too late',
      unresumed,
      { atReadOfPlan: (passTo) => passTo(noticeAtMs + 1_000), hasReadAtMs: stopAtMs },
      { cause: 'timeout', message: stopped, mayPass: true },
    ],
    [
      'would come again where it may not write what it hands on',
      tokenize,
      { atWrite: () => Promise.reject(new AccessDeniedError('no right to write')) },
      { cause: 'timeout', message: left },
    ],
    [
      'would come again where its operator cannot be gone on with',
      unresumed,
      { hasReadAtMs: stopAtMs },
      { cause: 'timeout', message: stopped },
    ],
  ])('%s', async (_name, operator, befalls, failure) => {
    expect(await failureOfOne(operator, befalls)).toEqual(failure);
  });
});
