import { limits } from '../../contracts/limits.ts';
import type { AttemptPayload } from '../../contracts/payloads.ts';
import type { LaunchRequest } from '../../ports/launcher.ts';

/** Launches that one call may make: of one stage and size, at least one. */
export type LaunchBatch = readonly [LaunchRequest, ...LaunchRequest[]];

/**
 * Launches parted into those that one call may make, in the order of their first. Tasks of a call are given the same
 * overrides, so that only launches go together whose payloads differ in what `AttemptPayload.batch` holds, and of which
 * `placeOf` says the same. One with others behind it goes alone, and so does one that replaces a result.
 */
export function batchesOf(
  requests: readonly LaunchRequest[],
  placeOf: (request: LaunchRequest) => string,
): LaunchBatch[] {
  const alike = Map.groupBy(requests, (request) => {
    const { payload, size } = request;
    const isAlone = payload.next !== undefined || payload.replaces !== undefined;
    const own = isAlone
      ? {}
      : { attemptId: undefined, inputs: undefined, copies: undefined, saved: undefined };
    return JSON.stringify([size, placeOf(request), { ...payload, ...own }]);
  });
  return [...alike.values()].flatMap((group) => {
    const calls = Math.ceil(group.length / limits.launchesPerCall);
    return Array.from({ length: calls }, (_, call) =>
      group.slice(call * limits.launchesPerCall, (call + 1) * limits.launchesPerCall),
    ).flatMap(batchIn);
  });
}

const batchIn = ([first, ...others]: readonly LaunchRequest[]): LaunchBatch[] =>
  first === undefined ? [] : [[first, ...others]];

/** What each task of a call is given. */
export function payloadOf([{ payload }, ...others]: LaunchBatch): AttemptPayload {
  if (others.length === 0) return payload;
  const batch = others.map(({ payload: { attemptId, inputs, copies, saved } }) => ({
    attemptId,
    inputs,
    ...(copies === undefined ? {} : { copies }),
    ...(saved === undefined ? {} : { saved }),
  }));
  return { ...payload, batch };
}

/** The same without copies to read: those are read of winners' outputs, which are named elsewhere. */
export const withoutCopies = ({ batch, ...payload }: AttemptPayload): AttemptPayload => ({
  ...payload,
  copies: undefined,
  ...(batch === undefined ? {} : { batch: batch.map((each) => ({ ...each, copies: undefined })) }),
});

/** Two batches of about the same length; the batch itself where it cannot be parted. */
export function halvesOf(batch: LaunchBatch): readonly LaunchBatch[] {
  const half = Math.ceil(batch.length / 2);
  return [batch.slice(0, half), batch.slice(half)].flatMap(batchIn);
}
