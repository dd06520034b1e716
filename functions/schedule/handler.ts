import type { Context } from 'aws-lambda';
import { enlistJob } from '../../src/app/enlist-job.ts';
import { reside } from '../../src/app/reside.ts';
import { scheduleInputSchema } from '../../src/contracts/payloads.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { buildResidentDeps } from '../shared/build-deps.ts';
import { invocation, transitions } from '../shared/metered.ts';

const deps = buildResidentDeps(process.env); // Per cold start; fails on missing settings.

/** Stays for at most 13 of Lambda's 15 minutes, and always leaves a minute to end in order. */
const longestStayMs = 13 * 60_000;
const reserveMs = 60_000;

/**
 * Sees to it that a job has a scheduler. Either a resident that is there serves it, and this returns at once, or this
 * invocation becomes a resident itself and serves all jobs that ask. The job's outcome goes to its task token.
 */
export const handler = async (event: unknown, context: Context): Promise<void> => {
  const { jobId, taskToken } = scheduleInputSchema.parse(event);
  const stay = durationMs(Math.min(longestStayMs, context.getRemainingTimeInMillis() - reserveMs));
  const self = { owner: context.awsRequestId, until: later(deps.clock.now(), stay) };
  const seating = await invocation(deps, jobId, transitions.schedule, () =>
    enlistJob(deps, { jobId, token: taskToken }, self),
  );
  // Its time is that of the jobs which it serves, and not of the one that it began with.
  if (seating !== undefined) await reside(deps, seating, { ...self, jobId });
};
