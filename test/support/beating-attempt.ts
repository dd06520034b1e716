import { MemoryAttemptStore } from '../../src/adapters/memory/memory-attempt-store.ts';
import { durationMs, type EpochMs } from '../../src/contracts/units.ts';
import type { Clock } from '../../src/ports/clock.ts';
import { AttemptMeter } from '../../src/worker/attempt-meter.ts';
import { startHeartbeat } from '../../src/worker/heartbeat.ts';
import { attempt, freshJobId } from '../contract/ports/builders.ts';

/** An attempt that was claimed now and has its heartbeat; `everyMs`: the longest time between two reports. */
export async function beatingAttempt(clock: Clock, everyMs: number, cpuMs?: () => number) {
  const attempts = new MemoryAttemptStore();
  const space = { jobId: freshJobId(), shards: 1 };
  const attemptId = attempt(0);
  const claimedAt: EpochMs = clock.now();
  await attempts.create(space, attemptId, claimedAt);
  await attempts.claim(space, attemptId, { node: 'n', zone: 'z' }, claimedAt);
  const meter = new AttemptMeter(clock, new AbortController().signal, () => 0);
  const log = { info: () => undefined, warn: () => undefined };
  const heart = startHeartbeat({
    ...{ attempts, clock, log, space, meter, attemptId, claimedAt, every: durationMs(everyMs) },
    ...(cpuMs === undefined ? {} : { cpuMs }),
    onCancel: () => undefined,
  });
  return { attempts, space, claimedAt, meter, heart };
}
