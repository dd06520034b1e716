import type { Context } from 'aws-lambda';
import { runScheduler } from '../../src/app/run-scheduler.ts';
import { jobInputSchema, type ScheduleOutput } from '../../src/contracts/payloads.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { buildSchedulerDeps } from '../shared/build-deps.ts';
import { invocation, transitions } from '../shared/metered.ts';

const deps = buildSchedulerDeps(process.env); // Per cold start; fails on missing settings.

/** Stays for at most 13 of Lambda's 15 minutes, and always leaves a minute to end in order. */
const longestStayMs = 13 * 60_000;
const reserveMs = 60_000;

/** Runs a job's resident scheduler for as long as this invocation may last. */
export const handler = async (event: unknown, context: Context): Promise<ScheduleOutput> => {
  const { jobId } = jobInputSchema.parse(event);
  const stay = durationMs(Math.min(longestStayMs, context.getRemainingTimeInMillis() - reserveMs));
  return invocation(deps, jobId, transitions.schedule, () =>
    runScheduler(deps, jobId, { owner: context.awsRequestId, until: later(deps.clock.now(), stay) }),
  );
};
