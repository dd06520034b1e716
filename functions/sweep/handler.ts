import type { Context } from 'aws-lambda';
import { sweepJobs, type SweepReport } from '../../src/app/sweep-jobs.ts';
import { durationMs, later } from '../../src/contracts/units.ts';
import { buildSweepDeps } from '../shared/build-deps.ts';
import { patienceOf } from '../shared/settings.ts';

const deps = buildSweepDeps(process.env); // Per cold start; fails on missing settings.

const patienceMs = patienceOf(process.env);
/** To end in order what it is at when its time is up. */
const reserveMs = 120_000;

/** Looks for jobs whose end nobody has told, and for what ended jobs have left. */
export const handler = async (_event: unknown, context: Context): Promise<SweepReport> => {
  const stay = durationMs(context.getRemainingTimeInMillis() - reserveMs);
  return sweepJobs(deps, { until: later(deps.clock.now(), stay), patienceMs });
};
