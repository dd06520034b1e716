import { recordWorkerEnd } from '../../src/app/record-worker-end.ts';
import { buildWorkerEndDeps } from '../shared/build-deps.ts';
import { workerEndOf } from '../shared/worker-death.ts';

const deps = buildWorkerEndDeps(process.env); // Per cold start; fails on missing settings.

/** Ends the attempt of a worker that Lambda or ECS says is gone. What tells of no attempt is logged and dropped. */
export const handler = async (event: unknown): Promise<{ outcome: string }> => {
  const end = workerEndOf(event);
  if (end === undefined) {
    deps.log.warn('event-ignored', { why: 'it tells of the end of no worker' });
    return { outcome: 'ignored' };
  }
  return { outcome: await recordWorkerEnd(deps, end) };
};
