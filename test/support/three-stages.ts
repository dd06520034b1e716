import { MemoryObjectStore } from '../../src/adapters/memory/memory-object-store.ts';
import type { AttemptId, JobId } from '../../src/contracts/ids.ts';
import { attemptDataKey } from '../../src/contracts/keys.ts';
import type { LossKind } from '../../src/contracts/records.ts';
import { epochMs as at } from '../../src/contracts/units.ts';
import { applyDecisions } from '../../src/core/decide-tick.ts';
import { applyAttempt, applyResult, createJobState, openStage } from '../../src/core/model/job-state.ts';
import type { JobState } from '../../src/core/model/job-view.ts';
import { attempt, attemptRecord, failure, resultOf } from './job-states.ts';

export const jobId = 'words-0123456789ab' as JobId;
export const bytes = Buffer.from('0123456789');
/** CRC-32 of "3456". */
export const crcOfRange = 0x8d339230;

export const refOf = (id: string): { bucket: string; key: string } => ({
  bucket: 'data',
  key: attemptDataKey(jobId, id as AttemptId),
});

/** Three maps, three that read all of them (`mid`), and one that reads those (`end`), which runs; outputs are in the data bucket. */
export async function threeStages(): Promise<{ state: JobState; objects: MemoryObjectStore }> {
  const objects = new MemoryObjectStore();
  const shape = (name: string, tasks: number, upstream: readonly number[]) => ({
    ...{ name, tasks, upstream, sourceBytes: Array.from({ length: tasks }, () => 1) },
  });
  const state = createJobState([shape('map', 3, []), shape('mid', 3, [0]), shape('end', 1, [1])]);
  const launch = (id: string) => ({
    ...{ kind: 'launch' as const, attemptId: attempt(id), reason: 'first' as const },
  });
  const ids = ['map/0/0', 'map/1/0', 'map/2/0', 'mid/0/0', 'mid/1/0', 'mid/2/0', 'end/0/0'];
  const openAll = (stage: number): void => {
    openStage(state, stage, [], at(1));
  };
  const opens = [0, 1, 2].map((stage) => ({ kind: 'open-stage' as const, stage }));
  applyDecisions(state, [...opens, ...ids.map(launch)], { now: at(1), openStage: openAll });
  for (const id of ids.slice(0, 6)) {
    applyResult(state, resultOf(id, 5), at(5));
    await objects.write(refOf(id), bytes);
  }
  return { state, objects };
}

/** A reader, which ran from 1 ms to 9 ms or at another time, has missed a range of an output. */
export function missedBy(
  state: JobState,
  reader: string,
  missed: { readonly id: string; readonly how: LossKind },
  [from, until] = [1, 9],
): void {
  const lost = [{ attemptId: attempt(missed.id), how: missed.how, offset: 3, length: 4, crc: crcOfRange }];
  const why = { ...failure('input-lost'), lost };
  const ran = { claimedAt: at(from), failure: why };
  applyAttempt(state, attemptRecord(reader, 'failed', until, ran), at(until));
}
